"""Where everything of one root lies on disk."""

import os
from collections.abc import Mapping
from pathlib import Path

from amem.errors import ConfigError, UnavailableError

KNOWN_ENVIRONMENT = ("AMEM_ROOT", "AMEM_HOSTED", "AMEM_SESSION", "AMEM_TOKEN")
"""Every name that begins `AMEM_` and means something."""
INIT = "init --owner human:example:you"
"""What makes a root. A hint can be pasted: no `<name>` that a shell would read a file from."""


class Root:
    """The paths of a root. Makes nothing by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.grants = path / "grants.toml"
        self.prices = path / "prices.toml"
        self.credentials = path / "credentials.env"
        self.policy = path / "policy"
        self.record = path / "record"
        self.state = path / "state"
        self.index = self.state / "index.sqlite"
        self.usage = self.state / "usage.sqlite"
        self.ledger = self.state / "ledger.sqlite"
        self.quarantine = self.state / "quarantine"
        self.homes = self.state / "homes"

    def __repr__(self) -> str:
        return f"Root({str(self.path)!r})"

    def existing(self) -> "Root":
        """This root, if `amem init` made it. Raises UnavailableError."""
        if not self.grants.is_file():
            if self.path.is_file():
                raise UnavailableError(f"{self.path} is a file: a root is a folder", hint="amem --help")
            raise UnavailableError(f"there is no root at {self.path}", hint=self.command(INIT))
        return self

    def command(self, words: str) -> str:
        """The command line that acts on this very root."""
        import shlex

        return f"amem --root {shlex.quote(str(self.path))} {words}"


def locate(flag: str | None, environment: Mapping[str, str]) -> Root:
    """The root that `--root`, `AMEM_ROOT` or the default names, in this order."""
    chosen = flag or environment.get("AMEM_ROOT") or os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".amem")
    return Root(Path(os.path.abspath(os.path.expanduser(chosen))))


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuse an unknown name beginning `AMEM_`. Raises ConfigError that names the near miss."""
    for name in environment:
        if name.startswith("AMEM_") and name not in KNOWN_ENVIRONMENT:
            raise ConfigError(f"environment: {name}: not a name amem knows{near(name, KNOWN_ENVIRONMENT)}", hint=f"unset {name}")


def near(name: str, known: tuple[str, ...] | list[str]) -> str:
    """`; did you mean X?` for the closest known name, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
