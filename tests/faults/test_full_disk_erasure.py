"""An erasure on a disk that fills up under it: it says so, nothing is half told, and with room again the same command ends it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place
from tests.faults.disks import small

CANARY = "zebra7QuartzCanary19"
DISK_KB = 6 << 10


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with small(tmp_path, f"{DISK_KB}k") as disk:
        yield Place(disk)


def test_it_goes_on_when_there_is_room_again(place: Place, tmp_path: Path) -> None:
    assert place.amem("init", "--owner", "human:asf:you").code == 0
    entry, other = (
        place.amem("write", "--type", "fact", "--title", title, "--body", f"{title}. It was {CANARY} once.").out.strip()
        for title in ("The vault", "Doors")
    )
    assert place.amem("task", "create", f"Try {CANARY}", "--body", "b").code == 0
    shutil.copytree(place.root, tmp_path / "before")
    for free_kb in (40, 120, 240):
        shutil.rmtree(place.root)
        shutil.copytree(tmp_path / "before", place.root)
        fill = place.base / "fill"
        fill.write_bytes(bytes(max(shutil.disk_usage(place.base).free - (free_kb << 10), 0)))
        done = place.amem("erase", entry, "--why", "asked for", "--yes")
        assert done.code == 1 and "\namem: " in f"\n{done.err}" and "Traceback" not in done.err, f"{free_kb} KB: {done.err}"
        fill.unlink()
        assert place.amem("erase", entry, "--why", "asked for", "--yes").code == 0
        assert [path.name for path in place.root.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()] == []
        assert place.amem("get", other, "--json").json["body"] == "Doors. [erased]"
        assert place.amem("verify").code == 0
