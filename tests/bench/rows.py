"""One row of the benchmark table, and how it prints."""

from typing import NamedTuple


class Row(NamedTuple):
    """A measured figure beside its peer's, taken in the same run."""

    bench: str
    """`P1` … `P12` of the performance budget."""
    what: str
    ours: float
    peer_name: str
    peer: float | None
    """None when the peer is not installed here; the row says so."""
    unit: str
    goal: str
    holds: bool | None
    """None when it could not be judged."""

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's."""
        return self.ours / self.peer if self.peer else None


def table(rows: list[Row]) -> str:
    """Render rows for an 80-column terminal."""
    lines = [f"{'':3} {'what':26} {'ours':>9} {'peer':>22} {'ratio':>6} goal"]
    for row in rows:
        peer = f"{row.peer_name} {row.peer:.4g}" if row.peer is not None else f"{row.peer_name} absent"
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
        verdict = {True: "holds", False: "MISSED", None: "-"}[row.holds]
        lines.append(f"{row.bench:3} {row.what[:26]:26} {row.ours:>9.4g} {peer[:22]:>22} {ratio:>6} {row.goal} {verdict} [{row.unit}]")
    return "\n".join(lines)
