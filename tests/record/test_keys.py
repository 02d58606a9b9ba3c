"""Keys in files: one for all who ask at once, and none that others may read."""

import os
import stat
from pathlib import Path

import pytest

from amem.errors import IntegrityError
from amem.record import keys


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.key"
    made = keys.key(path)
    assert (keys.key(path), len(made), stat.S_IMODE(path.stat().st_mode)) == (made, 32, 0o600)


def test_whoever_asks_while_another_makes_it_gets_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, drawn, other = tmp_path / "a.key", os.urandom, []

    def quicker(count: int) -> bytes:
        monkeypatch.setattr(os, "urandom", drawn)
        if count == keys.KEY_BYTES:
            other.append(keys.key(path))
        return drawn(count)

    monkeypatch.setattr(os, "urandom", quicker)
    assert [keys.key(path)] == other
    assert [name.name for name in tmp_path.iterdir()] == ["a.key"]


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 33])
def test_what_is_no_key_is_refused_and_stays(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.key"
    path.touch(0o600)
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="no key"):
        keys.key(path)
    assert path.read_bytes() == data


def test_one_that_others_may_read_and_one_behind_a_link_are_refused(tmp_path: Path) -> None:
    path, link = tmp_path / "a.key", tmp_path / "b.key"
    keys.key(path)
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        keys.key(link)
    path.chmod(0o640)
    with pytest.raises(IntegrityError, match="nobody else"):
        keys.key(path)
