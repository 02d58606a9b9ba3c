"""A changed file is seen by the next look, an unchanged one is not read again, and a broken one stops everything."""

import os
import time
from pathlib import Path

import pytest

from amem.errors import AmemError, ConfigError, UnavailableError
from amem.model.clock import now
from amem.model.label import Label
from amem.policy import live as live_module
from amem.policy.door import Door
from amem.policy.engine import grants_data, load
from amem.policy.live import Live
from amem.policy.request import Request
from amem.settings import grants
from amem.settings.root import Root

from .asks import call

TEXT = """owner = "human:o:n"
[grants.dom-a.principals."agent:*"]
read = "internal"
[destinations.anthropic]
ceiling = "internal"
"""
CLOSED = 'package amem\ndecision := {"allow": false, "reasons": [{"code": "closed"}]}\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    found = Root(tmp_path)
    found.policy.mkdir()
    found.grants.write_text(TEXT)
    monkeypatch.setattr(live_module, "IMPORTED_NS", time.time_ns() + 10**10)  # as if this process began after the file was written
    monkeypatch.setattr(live_module, "_UNSETTLED_NS", 0)
    return found


def watched(root: Root) -> tuple[Door, Live]:
    found = grants.load(root.grants)
    live, door = Live(root, found), Door(load(root.policy, grants_data(found)), lambda event: None, now)
    door.watch(live.look)
    return door, live


def asked(label: Label = Label.INTERNAL) -> Request:
    return call(label=label, ceiling=Label.RESTRICTED)


def test_nothing_is_read_again_while_nothing_changed(root: Root) -> None:
    door, live = watched(root)
    assert [live.look() for _ in range(3)] == [None] * 3
    assert door.decide(asked()).allow and door.generation() == 0


def test_a_lowered_ceiling_and_a_removed_destination_count_at_once(root: Root) -> None:
    door, live = watched(root)
    told: list[grants.Grants] = []
    live.on_change = told.append
    root.grants.write_text(TEXT.replace('ceiling = "internal"', 'ceiling = "public"'))
    assert door.decide(asked()).code == "label_over_ceiling"
    assert door.generation() == 1 and told == [live.grants]
    root.grants.write_text(TEXT.replace("anthropic", "openai"))
    assert door.decide(asked(Label.PUBLIC)).code == "unknown_destination"
    assert door.generation() == 2


def test_a_change_that_keeps_size_and_time_is_seen_by_another_file_or_its_change_time(root: Root) -> None:
    door, _ = watched(root)
    before = os.stat(root.grants)
    other = root.path / "new.toml"
    other.write_text(TEXT.replace('ceiling = "internal"', 'ceiling = "public"  '))
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, root.grants)
    assert door.decide(asked()).code == "label_over_ceiling"


def test_a_policy_that_comes_changes_and_goes(root: Root) -> None:
    door, _ = watched(root)
    site = root.policy / "site.rego"
    site.write_text(CLOSED)
    assert door.decide(asked()).code == "closed"
    site.write_text(CLOSED.replace("closed", "shut"))
    assert door.decide(asked()).code == "shut"
    site.unlink()
    assert door.decide(asked()).allow
    assert door.generation() == 3


@pytest.mark.parametrize("broken", ["owner = ", "", None])
def test_grants_that_cannot_be_read_stop_every_decision_until_they_can(root: Root, broken: str | None) -> None:
    door, _ = watched(root)
    if broken is None:
        root.grants.unlink()
    else:
        root.grants.write_text(broken)
    for _ in range(2):
        with pytest.raises(ConfigError):
            door.decide(asked())
    root.grants.write_text(TEXT)
    assert door.decide(asked()).allow


def test_a_policy_that_does_not_load_stops_every_decision(root: Root) -> None:
    door, _ = watched(root)
    (root.policy / "site.rego").write_text("package amem\ndecision := {")
    with pytest.raises(AmemError):
        door.decide(asked())


def test_a_file_written_a_moment_ago_is_read_once_more(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    _, live = watched(root)
    monkeypatch.setattr(live_module, "_UNSETTLED_NS", 10**12)
    root.grants.write_text(TEXT + "# more\n")
    assert live.look() is not None and live.look() is not None
    monkeypatch.setattr(live_module, "_UNSETTLED_NS", 0)
    assert live.look() is not None and live.look() is None


def test_a_file_that_changed_since_the_process_began_is_read_at_the_first_look(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = grants.load(root.grants)
    root.grants.write_text(TEXT.replace("human:o:n", "human:o:m"))
    monkeypatch.setattr(live_module, "IMPORTED_NS", 0)
    live = Live(root, stale)
    assert live.look() is not None and live.grants.owner == "human:o:m"


def between(live: Live, monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    """Have the root's policy written anew while it is read, once for each text."""
    read, left = live._engine, list(texts)

    def engine(found: grants.Grants) -> object:
        try:
            return read(found)
        finally:
            if left:
                (Path(live._folder) / "site.rego").write_text(left.pop(0))

    monkeypatch.setattr(live, "_engine", engine)


def test_what_changes_while_it_is_read_is_read_again(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    door, live = watched(root)
    between(live, monkeypatch, CLOSED.replace("closed", "half_of_it"), CLOSED.replace("closed", "all"))
    (root.policy / "site.rego").write_text("package amem\ndecision := {")  # as an editor may leave it for a moment
    assert door.decide(asked()).code == "all"
    assert door.generation() == 1


def test_what_never_stays_is_not_decided_by(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    door, live = watched(root)
    between(live, monkeypatch, *(CLOSED.replace("closed", f"code{'x' * n}") for n in range(live_module._TRIES + 2)))
    (root.policy / "site.rego").write_text(CLOSED)
    with pytest.raises(UnavailableError):
        door.decide(asked())


def test_a_link_that_led_elsewhere_while_it_was_followed_is_followed_again(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    root.policy.rmdir()
    open_folder, closed_folder = (root.path / name for name in ("open", "closed"))
    open_folder.mkdir()
    closed_folder.mkdir()
    (closed_folder / "p.rego").write_text(CLOSED)

    def lead_to(folder: Path) -> None:
        fresh = root.path / "fresh"
        fresh.symlink_to(folder)
        os.replace(fresh, root.policy)

    reads = Live._engine

    def exchanged(self: Live, found: grants.Grants) -> object:
        monkeypatch.setattr(Live, "_engine", reads)
        lead_to(open_folder)
        try:
            return reads(self, found)
        finally:
            lead_to(closed_folder)

    lead_to(open_folder)
    door, _ = watched(root)
    assert door.decide(asked()).allow
    lead_to(closed_folder)
    monkeypatch.setattr(Live, "_engine", exchanged)
    assert [door.decide(asked()).allow for _ in range(2)] == [False, False]
