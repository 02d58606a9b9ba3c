"""scripts/install-harnesses.py with a stand-in for npm: what it leaves when all goes well, and that it leaves nothing when not."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PINS = """
[node]
package = "node"
version = "24.0.0"
program = "node_modules/node/bin/node"
integrity = "sha512-node"
mb = 1
[tool]
package = "@x/tool"
version = "1.2.3"
program = "node_modules/@x/tool/bin/tool"
integrity = "sha512-tool"
mb = 1
[other]
package = "other"
version = "2.0.0"
program = "node_modules/other/cli.js"
node = true
integrity = "sha512-other"
mb = 1
"""
NPM = r"""#!{python}
# Stands in for npm: makes a package whose program prints its version, and notes how it was called.
import json, os, sys
from pathlib import Path
arguments = sys.argv[1:]
with open(os.environ["NPM_LOG"], "a") as log:
    log.write(json.dumps([arguments, os.environ.get("GROK_HOME"), os.environ.get("npm_config_omit_lockfile_registry_resolved")]) + "\n")
if arguments[0] == "install":
    name, _, version = arguments[1].rpartition("@")
    modules = Path(arguments[arguments.index("--prefix") + 1]) / "node_modules"
    place = modules / name / {{"node": "bin/node", "@x/tool": "bin/tool", "other": "cli.js"}}[name]
    place.parent.mkdir(parents=True)
    said = os.environ.get("NPM_VERSION_SAID", version)
    # As `node`, it runs what it is given.
    place.write_text("#!/bin/sh\n" + ('[ "$1" = --version ] || exec "$@"\n' if name == "node" else "") + f"echo {{said}}\n")
    place.chmod(0o755)
    key = {{"@x/tool": "tool"}}.get(name, name)
    digest = os.environ.get("NPM_DIGEST", f"sha512-{{key}}")
    (modules / ".package-lock.json").write_text(json.dumps({{"packages": {{f"node_modules/{{name}}": {{"integrity": digest}}}}}}))
if arguments[0] == os.environ.get("NPM_FAILS"):
    print("npm error: no such host", file=sys.stderr)
    sys.exit(1)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("scripts", "harnesses", "bin", "cache"):
        (tmp_path / folder).mkdir()
    script = (PROJECT / "scripts" / "install-harnesses.py").read_text()
    (tmp_path / "scripts" / "install-harnesses.py").write_text(script)
    (tmp_path / "harnesses" / "pins.toml").write_text(PINS)
    npm = tmp_path / "bin" / "npm"
    npm.write_text(NPM.format(python=sys.executable))
    npm.chmod(0o755)
    return tmp_path


def install(place: Path, *names: str, **environment: str) -> subprocess.CompletedProcess[str]:
    here = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place), "XDG_CACHE_HOME": str(place / "cache"), **environment}
    here["NPM_LOG"] = str(place / "npm.log")
    command = [sys.executable, str(place / "scripts" / "install-harnesses.py"), *names]
    return subprocess.run(command, env=here, capture_output=True, text=True, timeout=60, check=False)


def folders(place: Path) -> list[str]:
    return sorted(path.name for path in (place / "cache" / "amem" / "harnesses").iterdir() if path.name != ".lock")


def test_what_is_asked_for_is_installed_with_node_and_its_path_printed(place: Path) -> None:
    ran = install(place, "tool,other")
    assert ran.returncode == 0, ran.stderr
    assert folders(place) == ["node-24.0.0", "other-2.0.0", "tool-1.2.3"]
    names = [line.split()[:2] for line in ran.stdout.splitlines()]
    assert names == [["node", "24.0.0"], ["tool", "1.2.3"], ["other", "2.0.0"]]
    assert all(os.access(line.split(maxsplit=2)[2], os.X_OK) for line in ran.stdout.splitlines())
    modes = {stat.S_IMODE((place / "cache" / "amem" / "harnesses" / name).stat().st_mode) for name in folders(place)}
    assert modes == {0o755}


def test_a_second_run_does_nothing_and_says_the_same(place: Path) -> None:
    first = install(place, "tool")
    (place / "npm.log").unlink()
    second = install(place, "tool", PATH="/nowhere")
    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")
    assert not (place / "npm.log").exists()


def test_the_variable_selects_as_well_and_all_is_the_default(place: Path) -> None:
    assert install(place, HARNESS="tool").returncode == 0 and folders(place) == ["node-24.0.0", "tool-1.2.3"]
    assert install(place).returncode == 0 and folders(place) == ["node-24.0.0", "other-2.0.0", "tool-1.2.3"]


def test_scripts_of_a_package_run_only_after_its_digest_was_checked(place: Path) -> None:
    install(place, "node")
    log = (place / "npm.log").read_text()
    assert log.index("--ignore-scripts") < log.index('"rebuild"')
    assert str(place / "cache") in log.splitlines()[0].split("], ")[1]  # GROK_HOME is inside the folder that is being built
    (place / "npm.log").unlink()
    assert install(place, "tool", NPM_DIGEST="sha512-another").returncode == 1
    assert '"rebuild"' not in (place / "npm.log").read_text()


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"NPM_FAILS": "install"}, "npm install ended with 1:\nnpm error: no such host"),
        ({"NPM_FAILS": "rebuild"}, "npm rebuild ended with 1"),
        ({"NPM_DIGEST": "sha512-another"}, "the archive is not the pinned one: sha512-another instead of sha512-tool"),
        ({"NPM_VERSION_SAID": "9.9.9"}, "--version says '9.9.9'"),
    ],
)
def test_what_goes_wrong_is_said_and_leaves_nothing(place: Path, fault: dict[str, str], sentence: str) -> None:
    install(place, "node")
    ran = install(place, "tool", "other", **fault)
    assert ran.returncode == 1 and sentence in ran.stderr
    assert folders(place) == ["node-24.0.0"]


def test_what_an_ended_installer_left_is_cleared_away(place: Path) -> None:
    left = place / "cache" / "amem" / "harnesses" / ".part-killed"
    left.mkdir(parents=True)
    (left / "half").touch()
    install(place, "node")
    assert folders(place) == ["node-24.0.0"]


def test_without_npm_it_says_what_to_install(place: Path) -> None:
    ran = install(place, "node", PATH="/nowhere")
    assert ran.returncode == 1 and "npm is not on PATH" in ran.stderr and "apt-get install npm" in ran.stderr


def test_an_unknown_name_is_refused(place: Path) -> None:
    ran = install(place, "toool")
    assert ran.returncode == 2 and "no pin for toool; there are: node, tool, other" in ran.stderr
