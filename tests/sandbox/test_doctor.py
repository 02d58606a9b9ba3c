"""The doctor's rows on this machine, and on machines that are described to it."""

import os
import sys
from pathlib import Path

import pytest

from amem.sandbox import apparmor, causes, doctor, scope
from amem.sandbox.doctor import Check
from tests.sandbox.launching import ROOT, unavailable


def test_one_row_is_the_launch_itself() -> None:
    rows = {(row.area, row.name): row for row in doctor.checks()}
    row = rows["backend", "user namespaces"]
    if not unavailable("root" if os.geteuid() == 0 else "user"):
        assert row == Check("backend", "user namespaces", "ok", "a whole sandbox was made and a program ran in it")
    else:
        assert row.state == "missing" and row.why
    assert all(row.fix for row in rows.values() if row.state == "missing")


STOPPED = Check("backend", "user namespaces", "missing", causes.BY_APPARMOR.why, causes.BY_APPARMOR.fix)
LAUNCHED = Check("backend", "user namespaces", "ok", "a whole sandbox was made and a program ran in it")


def test_apparmor_row_prints_the_path_of_this_very_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = tmp_path / "venv/bin/amem"
    real.parent.mkdir(parents=True)
    real.touch()
    link = tmp_path / "amem"
    link.symlink_to(real)
    monkeypatch.setattr(sys, "argv", [str(link)])
    monkeypatch.setattr(causes, "read", lambda path: "1" if path == causes.APPARMOR else "")
    row = doctor._apparmor(STOPPED)
    assert row.state == "missing"
    assert str(real) in row.why and str(link) + "," not in row.why
    assert "apparmor_parser -r" in row.fix


def test_a_restriction_that_does_not_stop_a_launch_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root is free of it, and so is a program with a profile of its own."""
    monkeypatch.setattr(causes, "read", lambda path: "1" if path == causes.APPARMOR else "")
    row = doctor._apparmor(LAUNCHED)
    assert row.state == "ok" and "apparmor_restrict_unprivileged_userns is 1" in row.why
    spent = LAUNCHED._replace(state="missing", why=causes.NONE_ALLOWED.why, fix=causes.NONE_ALLOWED.fix)
    assert doctor._apparmor(spent).state == "ok"


def test_a_profile_that_stops_a_launch_without_the_switch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "read", lambda path: "strict (enforce)" if path.endswith("/attr/apparmor/current") else "")
    monkeypatch.setattr(sys, "argv", ["/opt/venv/bin/amem"])
    row = doctor._apparmor(STOPPED._replace(fix=causes.BY_PROFILE.fix))
    assert row.state == "missing" and "strict (enforce)" in row.why and "apparmor_parser -r" in row.fix


def test_no_namespaces_allowed_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "read", lambda path: "0" if path == causes.MAX_USER else "")
    assert doctor._namespaces_left().state == "missing"


@pytest.mark.parametrize(
    ("release", "state"),
    [("5.11.0-1-generic", "missing"), ("5.12.0", "ok"), ("6.1.0+deb", "ok"), ("10.0-rc1", "ok"), ("4.19.0", "missing")],
)
def test_kernel_row(monkeypatch: pytest.MonkeyPatch, release: str, state: str) -> None:
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((real.sysname, real.nodename, release, real.version, real.machine)))
    assert doctor._kernel().state == state


def test_the_profile_for_the_usual_places_is_the_one_that_is_shipped() -> None:
    assert (ROOT / "packaging/apparmor/amem").read_text() == apparmor.profile()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/opt/venv/bin/amem", "/opt/venv/bin/amem"),
        ("/home/me/my tools/amem", '"/home/me/my tools/amem"'),
        ("/home/a{b}*?[c]@x/amem", r'"/home/a\{b\}\*\?\[c\]\@x/amem"'),
    ],
)
def test_the_profile_of_an_install_names_its_path_and_no_other(path: str, line: str) -> None:
    text = apparmor.profile(path)
    assert [row for row in text.splitlines() if row.startswith("@{amem_program}")] == [f"@{{amem_program}} = {line}"]
    assert text.count("userns,") == 1


def test_a_path_that_could_add_a_rule_is_refused() -> None:
    for path in ("/x\nprofile y /** flags=(unconfined) {", "amem"):
        with pytest.raises(ValueError, match="cannot stand"):
            apparmor.profile(path)


def test_python_m_amem_is_told_that_it_can_have_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/amem/__main__.py"])
    monkeypatch.setattr(causes, "read", lambda path: "1" if path == causes.APPARMOR else "")
    row = doctor._apparmor(STOPPED)
    assert row.state == "missing" and "python -m amem" in row.why and row.fix == "start it as `amem`"


def test_subordinate_ids_are_explained_and_never_missing() -> None:
    row = doctor._subordinate_ids()
    assert row.state == "ok" and "/etc/subuid" in row.why


@pytest.mark.parametrize("limited", [True, False])
def test_a_scope_without_a_bound_on_memory_is_not_called_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limited: bool) -> None:
    """A manager that was not given the memory controller takes MemoryMax, and says nothing."""
    monkeypatch.setattr(scope, "bus", lambda environment: True)
    monkeypatch.setattr(scope, "hold", lambda *words: True)
    monkeypatch.setattr(scope, "joined", lambda *words: True)
    watched = scope.Memory(os.open(tmp_path, os.O_RDONLY)) if limited else None
    monkeypatch.setattr(scope, "memory", lambda *words: watched)
    assert doctor._cgroup().state == ("ok" if limited else "weak")
