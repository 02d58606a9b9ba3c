"""What a session leaves for programs of the host to obey does not go unsaid, and does not void the next session's protection."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import Place, confinement, place, provider

__all__ = ["confinement", "place", "provider"]

LEAVE = "mkdir evil; echo ../evil > .git/commondir; echo x > .envrc; echo done"


def test_a_redirection_of_git_is_told_and_then_refused(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    subprocess.run(["git", "init", "-q", str(place.tree)], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(place.base)})
    quiet = place.launch("--", "sh", "-c", "echo x > file; echo done")
    assert (quiet.code, quiet.out) == (0, "done\n"), quiet.err
    assert "obey" not in quiet.err
    left = place.launch("--", "sh", "-c", LEAVE)
    assert (left.code, left.out) == (0, "done\n"), left.err
    assert ".envrc appeared, .git/commondir appeared: programs outside the sandbox obey these" in left.err
    again = place.launch("--", "sh", "-c", "echo done")
    assert (again.code, again.out) == (125, "")
    assert f"{Path(place.tree, '.git/commondir')} would have git obey another configuration" in again.err


WRITE_ON = "echo >> .git/config || echo held; echo > ready; cat go; echo '[evil]' >> .git/config && echo wrote"


@pytest.mark.parametrize("replaced", [True, False])
def test_a_protected_file_that_the_host_replaced_meanwhile_is_told_to_be_no_longer_so(
    place: Place, provider: Running, replaced: bool
) -> None:
    """The kernel takes a mount away with the name that it was on, in every namespace."""
    place.destination(provider.url)
    git = {"PATH": "/usr/bin:/bin", "HOME": str(place.base)}
    subprocess.run(["git", "init", "-q", str(place.tree)], check=True, env=git)

    def meanwhile() -> None:
        (place.tree / "ready").read_text()  # once the session runs
        if replaced:
            subprocess.run(["git", "-C", str(place.tree), "config", "branch.x.remote", "origin"], check=True, env=git)
        (place.tree / "go").write_text("")

    for name in ("ready", "go"):
        os.mkfifo(place.tree / name)
    host = threading.Thread(target=meanwhile)
    host.start()
    done = place.launch("--", "sh", "-c", WRITE_ON)
    host.join()
    assert done.out == ("held\nwrote\n" if replaced else "held\n"), done.err
    assert ("changed outside while the session ran" in done.err) is replaced
    assert not replaced or f"{place.tree}/.git/config: " in done.err


PROGRAMS = ("git", "rm", "busctl", "sleep", "sh", "env", "python3")


def test_no_program_of_the_tree_is_run_by_amem_though_the_search_path_leads_there(place: Place, provider: Running) -> None:
    """As where the owner works in an active `.venv` of the tree."""
    place.destination(provider.url)
    folder, ran = place.tree / ".venv/bin", place.base / "ran"
    folder.mkdir(parents=True)
    own = {"PATH": f"{folder}:/usr/bin:/bin"}
    write = (
        f"for p in {' '.join(PROGRAMS)}; do printf '#!/bin/sh\necho {{}} >> {ran}\n' > .venv/bin/$p; chmod +x .venv/bin/$p; done; echo done"
    )
    done = place.launch("--snapshot", "--json", "--", "/bin/sh", "-c", write, **own)
    assert done.code == 0 and "the tree could not be kept" not in done.err, done.err
    for words in (("session", "diff", done.json["id"]), ("session", "undo", done.json["id"], "--yes")):
        assert place.amem(*words, **own).code == 0
    assert not ran.exists()


def test_control_the_search_path_would_find_it(place: Place) -> None:
    program, ran = place.tree / "git", place.base / "ran"
    program.write_text(f"#!/bin/sh\necho >> {ran}\n")
    program.chmod(0o755)
    subprocess.run(["git"], env={"PATH": f"{place.tree}:/usr/bin:/bin"}, check=True)
    assert ran.exists()


NESTED = (
    "git init -q deep/er/new; git -C deep/er/new config core.fsmonitor 'touch ran'; mkdir -p deep/.vscode; "
    "echo {} > deep/.vscode/tasks.json; echo 'gitdir: er/new/.git' > deep/.git; echo x > main.c; echo x > ../more/.envrc; echo done"
)


def test_a_repository_or_settings_that_a_session_makes_in_a_folder_are_told(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    more = place.base / "more"
    more.mkdir()
    left = place.launch("--json", "--rw", str(more), "--", "sh", "-c", NESTED)
    assert left.code == 0, left.err
    names = [".envrc", "deep/.git", "deep/.vscode", "deep/er/new/.git"]
    assert sorted(row["name"] for row in left.json["changed"]) == sorted([f"{more}/.envrc", *names[1:]])
    for name in names:
        assert f"{name} written" in left.err
    assert "obey" not in place.launch("--", "sh", "-c", "git -C deep/er/new log; cat deep/.git; echo done").err
    assert not (place.tree / "deep/er/new/ran").exists()


FOLDERS = (".vscode", "docs")
DEEP = """
import os
for top in (".vscode", "docs"):
    here = os.getcwd()
    os.mkdir(top)
    os.chdir(top)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    open("x", "w").close()
    os.chdir(here)
print("done")
"""


def test_a_folder_of_any_depth_ends_no_launch(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    try:
        made = place.launch("--", sys.executable, "-c", DEEP)
        assert (made.code, made.out) == (0, "done\n"), made.err
        assert "x appeared" in made.err
        grants = place.root / "grants.toml"
        for gate in ("named", "approved"):
            grants.write_text(re.sub(r'(instruction_files = )"\w+"', rf'\1"{gate}"', grants.read_text()))
            again = place.launch("--", "echo", "done")
            assert (again.code, again.out) == (0, "done\n"), again.err
    finally:  # pytest's own tidying recurses
        subprocess.run(["rm", "-rf", *(place.tree / name for name in FOLDERS)], check=True)


UNSEEN = """
import os
os.mkdir(".vscode")
os.symlink("circle", ".vscode/circle")
here = os.getcwd()
os.chdir(".vscode")
while len(os.getcwd()) + 202 < 4090:
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("f" * 220, "w").close()
os.chdir(here)
open(".envrc", "w").close()
print("done")
"""


def test_what_cannot_be_looked_at_silences_no_report_and_ends_no_launch(place: Place, provider: Running) -> None:
    """A link that leads to itself, a name too long to be looked up: with these a session could keep what it left from being told."""
    place.destination(provider.url)
    try:
        made = place.launch("--snapshot", "--json", "--", sys.executable, "-c", UNSEEN)
        assert made.code == 0, made.err
        assert {".envrc", ".vscode/circle"} < {row["name"] for row in made.json["changed"]}
        again = place.launch("--", "echo", "done")
        assert (again.code, again.out) == (0, "done\n"), again.err
        undone = place.amem("session", "undo", made.json["id"], "--yes")
        assert not (place.tree / ".envrc").exists(), undone.err
    finally:
        subprocess.run(["rm", "-rf", place.tree / ".vscode"], check=True)


BROKEN = """
import socket
escape, no_line_ends = b"POST /a\\x1b[2Jb HTTP/1.1\\r\\n\\r\\n", b"GET / HTTP/1.1\\nHost: a\\n\\n"
tls, no_version = b"\\x16\\x03\\x01\\x00\\x05hello", b"GET / HTTP/9\\r\\n\\r\\n"
for request in (escape, no_line_ends, tls, no_version):
    with socket.create_connection(("127.0.0.1", 7431), 20) as sent:
        sent.sendall(request)
        print(b" 400 " in sent.recv(100))
"""


def test_broken_requests_say_nothing_on_the_owners_terminal(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    done = place.launch("--", sys.executable, "-c", BROKEN)
    assert (done.code, done.out.split()) == (0, ["True"] * 4), done.err
    assert "Traceback" not in done.err and "request" not in done.err, done.err


def test_a_program_of_the_tree_that_git_runs_by_itself_stays_as_it_is(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    subprocess.run(["git", "init", "-q", str(place.tree)], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(place.base)})
    for name in ("check", "other"):
        (place.tree / name).write_text("#!/bin/sh\n")
    (place.tree / ".git/hooks").mkdir(exist_ok=True)
    (place.tree / ".git/hooks/pre-commit").symlink_to("../../check")
    done = place.launch("--", "sh", "-c", "echo x >> other; echo x >> check || mv check gone || rm check || echo held")
    assert (done.code, done.out) == (0, "held\n"), done.err
    assert [(place.tree / name).read_text() for name in ("check", "other")] == ["#!/bin/sh\n", "#!/bin/sh\nx\n"]


def test_a_name_that_no_snapshot_can_have_is_told(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    (place.tree / ".gIT").mkdir()
    done = place.launch("--snapshot", "--", "sh", "-c", "mkdir .GIT; echo x > .GIT/hidden; echo x > .gIT/new; echo done")
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert done.err.count("not in the snapshot") == 2 and "not take: .GIT\n" in done.err, done.err
