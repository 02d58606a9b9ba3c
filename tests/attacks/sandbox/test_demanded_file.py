"""A file that a harness demands of a protected folder is there inside, nowhere else, and opens nothing of the folder."""

import json

import pytest

from tests.sandbox.launching import Place
from tests.sandbox.test_tree import listing

DEMAND = {"protect": [".tool"], "added": [[".tool", ".gitignore", ".gitignore\n"]]}
TRY = """
import ctypes, json, os, sys
os.chdir(sys.argv[1])
names = sorted(os.listdir(".tool"))
found = {name: open(f".tool/{name}").read() for name in names if os.path.isfile(f".tool/{name}")}
found["links"] = [os.readlink(f".tool/{name}") for name in names if os.path.islink(f".tool/{name}")]
def attempt(name, act):
    try:
        act()
        found[name] = "done"
    except OSError as error:
        found[name] = error.strerror
for name in ("settings.json", "deep/er", ".gitignore", "new", "deep/new", "link"):
    attempt(f"write {name}", lambda: open(f".tool/{name}", "a").write("evil"))
    attempt(f"remove {name}", lambda: os.unlink(f".tool/{name}"))
    attempt(f"mode {name}", lambda: os.chmod(f".tool/{name}", 0o777))
    attempt(f"move {name}", lambda: os.rename(f".tool/{name}", "out"))
    attempt(f"over {name}", lambda: (open("mine", "w").write("evil"), os.rename("mine", f".tool/{name}")))
    attempt(f"hard {name}", lambda: os.link(f".tool/{name}", "hard"))
    attempt(f"time {name}", lambda: os.utime(f".tool/{name}"))
attempt("folder", lambda: os.mkdir(".tool/deep/folder"))
attempt("mode", lambda: os.chmod(".tool", 0o777))
attempt("move", lambda: os.rename(".tool", "aside"))
attempt("remove", lambda: os.rmdir(".tool/deep"))
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
attempt("unmount", lambda: call(libc.umount2(b".tool", 2)))
attempt("remount", lambda: call(libc.mount(None, b".tool", None, 32 | 4096, None)))
print(json.dumps(found))
"""


def fill(here: Place) -> None:
    tool = here.work / ".tool"
    (tool / "deep").mkdir(parents=True)
    (tool / "settings.json").write_text("{}")
    (tool / "deep" / "er").write_text("deep")
    (tool / "link").symlink_to("deep/er")
    (tool / "nowhere").symlink_to("/etc/shadow")
    here.own()


@pytest.mark.parametrize("read_only", [False, True], ids=["writable", "shown"])
def test_all_in_it_stays_as_strictly_read_only(here: Place, read_only: bool) -> None:
    fill(here)
    before = listing(here.work / ".tool")
    found = json.loads(here.launch("{python}", "-c", TRY, str(here.work), spec={**DEMAND, "read_only": read_only})["out"])
    shown = {name: found.pop(name) for name in ("settings.json", ".gitignore", "link", "links")}
    assert shown == {"settings.json": "{}", ".gitignore": ".gitignore\n", "link": "deep", "links": ["deep/er", "/etc/shadow"]}
    assert "done" not in found.values(), {name: said for name, said in found.items() if said == "done"}
    assert listing(here.work / ".tool") == before


def test_without_the_layer_the_probes_bite(here: Place) -> None:
    fill(here)
    found = json.loads(here.launch("{python}", "-c", TRY, str(here.work), spec=DEMAND, without=["protect"])["out"])
    assert found["write settings.json"] == found["write new"] == "done"


@pytest.mark.parametrize("shape", ["absent", "there already", "link", "file", "crowded", "unreadable"])
def test_a_folder_it_cannot_be_added_to_is_held_as_ever(here: Place, shape: str) -> None:
    tool = here.work / ".tool"
    if shape == "link":
        (here.work / "real").mkdir()
        tool.symlink_to("real")
    elif shape == "file":
        tool.write_text("{}")
    elif shape != "absent":
        tool.mkdir()
        for name in [".gitignore"] if shape == "there already" else [f"n{number}" for number in range(300 if shape == "crowded" else 1)]:
            (tool / name).write_text("own\n")
    here.own()
    if shape == "unreadable":
        tool.chmod(0o300)
    report = here.launch("sh", "-c", "echo evil >> .tool/.gitignore || echo evil >> .tool; cat .tool/.gitignore; echo ran", spec=DEMAND)
    assert report["out"].splitlines()[-1] == "ran"
    assert report["warnings"] == ([".tool is a symbolic link: not protected"] if shape == "link" else [])
    if shape in ("file", "there already", "crowded"):
        assert all(b"evil" not in path.read_bytes() for path in (tool, *here.work.glob(".tool/*")) if path.is_file())
    if shape == "unreadable":
        tool.chmod(0o700)
        assert [path.name for path in tool.iterdir()] == ["n0"]
