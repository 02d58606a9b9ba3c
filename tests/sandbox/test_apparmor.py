"""The AppArmor profile, read by AppArmor's own parser."""

import re
import shutil
import subprocess

import pytest

from amem.sandbox import apparmor

PARSER = shutil.which("apparmor_parser", path="/usr/sbin:/sbin:/usr/bin")
NEW_IN_4 = re.compile(r"^abi <abi/4\.0>,$|^  userns,$", re.MULTILINE)
"""What a parser before 4.0 does not know; the systems that restrict user namespaces have a newer one."""


def compiled(text: str) -> subprocess.CompletedProcess[bytes]:
    """Not loaded, which needs neither root nor a kernel with AppArmor."""
    if PARSER is None:
        pytest.skip("apparmor_parser is not installed")
    version = subprocess.run([PARSER, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.search(r"version (\d+)\.", version)
    assert found is not None, version
    if int(found[1]) < 4:
        text = NEW_IN_4.sub("", text)
    words = ["--skip-kernel-load", "--skip-cache", "--stdout"]
    return subprocess.run([PARSER, *words], input=text.encode(), capture_output=True, timeout=60)


@pytest.mark.parametrize(
    "program", [None, "/opt/venv/bin/amem", "/home/me/my tools/amem", "/home/a{b}*?[c]@x/a^m,e#m", "/opt/new!/a;b=(c)|'$~/ü"]
)
def test_the_profile_is_read_by_apparmor(program: str | None) -> None:
    done = compiled(apparmor.profile(program))
    assert done.returncode == 0 and b"amem" in done.stdout, done.stderr


def test_a_broken_profile_is_not() -> None:
    assert compiled(apparmor.profile().replace("{share/pipx", "{{share/pipx")).returncode != 0
    assert compiled(apparmor.profile("/x/amem").replace("flags=(unconfined) {", "flags=(unconfined) { no such rule")).returncode != 0
