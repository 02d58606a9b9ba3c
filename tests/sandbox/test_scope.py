"""What a scope says of its memory."""

from pathlib import Path

import pytest

from amem.sandbox import scope

EVENTS = "low 0\nhigh 0\nmax 7\noom 2\noom_kill {}\noom_group_kill 0\n"


@pytest.fixture
def proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_text(path: Path) -> str:
        assert str(path) == "/proc/7/cgroup"
        return "1:name=systemd:/other\n0::/user.slice/amem-ses-00000001.scope\n"

    monkeypatch.setattr(scope.Path, "read_text", read_text)


def test_a_kill_for_memory_is_seen_in_the_events_of_the_scope(tmp_path: Path, proc: None) -> None:
    events = tmp_path / "user.slice/amem-ses-00000001.scope/memory.events"
    events.parent.mkdir(parents=True)
    events.write_text(EVENTS.format(0))
    found = scope.memory("ses-00000001", 7, str(tmp_path))
    assert found is not None
    assert not found.ran_out()
    events.write_text(EVENTS.format(1))
    assert found.ran_out()
    found.close()


def test_another_sessions_scope_or_none_with_events_is_not_watched(tmp_path: Path, proc: None) -> None:
    assert scope.memory("ses-00000002", 7, str(tmp_path)) is None
    assert scope.memory("ses-00000001", 7, str(tmp_path)) is None
