"""Facts of the host, read from real folders."""

import os
from pathlib import Path

import pytest

from amem.errors import SandboxError
from amem.sandbox import host
from amem.sandbox.spec import SandboxSpec


def spec(work: Path, home: Path) -> SandboxSpec:
    return SandboxSpec(argv=("true",), env=(), workdir=str(work), cwd=str(work), home=str(home), port=1)


def test_nothing_of_etc_that_can_hold_a_secret_is_shown(tmp_path: Path) -> None:
    names = {name for name, _ in host.facts(spec(tmp_path, tmp_path)).etc}
    assert not names & {
        "shadow",
        "gshadow",
        "passwd",
        "sudoers",
        "npmrc",
        "wgetrc",
        "gitconfig",
        "environment",
        "ssl",
        "pki",
        "ssl/private",
        "profile",
        "maven",
        "maven/settings.xml",
        "php",
        "R",
        "R/Renviron.site",
    }
    for name in names:
        assert os.stat(f"/etc/{name}").st_mode & 0o004, name  # what only root may read is not shown


def test_links_are_repeated_only_into_what_is_shown_whole(tmp_path: Path) -> None:
    for _, link in host.facts(spec(tmp_path, tmp_path)).etc:
        assert link is None or link.startswith(("/usr/", "/nix/store/", "/gnu/store/"))


def test_missing_home_is_named(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's launch finds it at the step itself")
    with pytest.raises(SandboxError, match="absent"):
        host.facts(spec(tmp_path, tmp_path / "absent"))


@pytest.mark.parametrize("name", ["ssl/ca-bundle.pem", "php/8.4/cli", "php/8.4/mods-available", "maven/m2.conf", "R/Renviron"])
def test_parts_of_a_folder_whose_other_parts_can_hold_a_secret_are_shown_alone(tmp_path: Path, name: str) -> None:
    for beside in (name, "ssl/private", "php/8.4/fpm", "maven/settings.xml", "R/Renviron.site"):
        (tmp_path / "etc" / beside).mkdir(parents=True)
    (tmp_path / "usr").mkdir()
    assert [found for found, _ in host.of_machine(str(tmp_path)).etc] == [name]
