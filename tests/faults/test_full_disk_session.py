"""A session that fills the disk of its own root: it ends with the reason for that, is kept, and can be stopped meanwhile."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from amem.egress import meter
from amem.launch import presence, run
from amem.settings import database
from amem.settings.root import Root
from amem.testing.provider import Running
from tests.acceptance.conftest import Place, confinement, provider
from tests.faults.disks import small

__all__ = ["confinement", "provider"]

DISK_MB = 24
FILL = 'cat /dev/zero > "$0" 2>/dev/null'


@pytest.fixture
def desk(tmp_path: Path, confinement: None, provider: Running) -> Iterator[Place]:
    with small(tmp_path, f"{DISK_MB}m") as disk:
        place = Place(disk)
        assert place.amem("init", "--owner", "human:asf:you").code == 0
        place.destination(provider.url)
        yield place


def test_its_end_is_kept_with_the_reason(desk: Place) -> None:
    done = desk.launch("--json", "--", "sh", "-c", f"{FILL}; exit 7", "fill")
    assert (done.code, done.json["reason"]) == (7, "disk_full"), done.err
    assert f"the disk of {desk.root} is full (df -h; df -i)" in done.err
    row = desk.amem("session", "show", done.json["id"], "--json").json
    assert (row["state"], row["exit"], row["reason"]) == ("ended", 7, "disk_full")
    assert list((desk.root / "state/running").iterdir()) == []


def test_one_that_fails_beside_a_disk_with_room_ran_into_none(desk: Place) -> None:
    done = desk.launch("--json", "--", "sh", "-c", "exit 7")
    assert (done.json["reason"], "is full" in done.err) == ("harness", False)


@pytest.mark.parametrize("why", ["enough", "enough " * 2000], ids=["what is wanted fits", "it does not"])
def test_it_can_be_stopped_while_the_disk_is_full(desk: Place, why: str) -> None:
    words = desk.command(
        "launch", "--harness", "command", *desk.launch_flags(), "--", "sh", "-c", f"{FILL}; echo full; exec sleep 600", "fill"
    )
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=desk.environment, text=True
    ) as session:
        assert session.stdout is not None and session.stdout.readline() == "full\n"
        stopped = desk.amem("session", "stop", "--all", "--why", why, "--json")
        _, err = session.communicate(timeout=60)
    assert stopped.code == 0 and len(stopped.json["stopped"]) == 1, stopped.err
    assert session.returncode == 143 and "amem: the session was stopped" in err, err
    row = desk.amem("session", "show", stopped.json["stopped"][0], "--json").json
    assert (row["exit"], row["reason"]) == (143, "stopped")


def test_where_a_quota_leaves_no_room_the_end_is_kept_on_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file system of this machine has quotas: the database is made to refuse for as long as the reserve is held."""
    root = Root(tmp_path)
    here = presence.Presence(root, "ses-00000001")
    try:
        ended: list[dict[str, object]] = []

        def end_session(root: Root, session: str, **end: object) -> None:
            if presence.mark(root, session).stat().st_size >= presence.RESERVE_BYTES:
                raise database.OperationalError("database or disk is full")
            ended.append({"session": session, **end})

        monkeypatch.setattr(meter, "end_session", end_session)
        sitting = SimpleNamespace(
            ready=SimpleNamespace(id="ses-00000001"), presence=here, outcome=SimpleNamespace(exit=1, reason="disk_full")
        )
        assert not here.make_room(), "the disk itself has room"
        run._end_row(sitting, SimpleNamespace(root=root))  # type: ignore[arg-type]
    finally:
        here.end()
    assert [(end["session"], end["exit"], end["reason"]) for end in ended] == [("ses-00000001", 1, "disk_full")]
