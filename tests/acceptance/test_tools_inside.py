"""What people build and test with works inside a session, as it does outside: compilers, package managers, test runners, a browser."""

import base64
import functools
import hashlib
import http.server
import io
import json
import shutil
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import Done, Place


@pytest.fixture
def desk(place: Place, provider: Running) -> Place:
    place.destination(provider.url)
    return place


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
            pytest.skip(f"{program} is not installed where a session sees it")


def run(desk: Place, script: str, *flags: str) -> Done:
    done = desk.launch(*flags, "--", "sh", "-ec", script)
    assert done.code == 0, done.err + done.out
    return done


def test_a_compiler_and_make_with_two_jobs(desk: Place) -> None:
    need("gcc", "make")
    for number in range(4):
        (desk.tree / f"part{number}.c").write_text(f"int part{number}(void) {{ return {number}; }}\n")
    calls = " + ".join(f"part{number}()" for number in range(4))
    heads = "".join(f"int part{number}(void);" for number in range(4))
    (desk.tree / "main.c").write_text(f'#include <stdio.h>\n{heads}\nint main(void) {{ printf("%d\\n", {calls}); }}\n')
    (desk.tree / "Makefile").write_text("sum: main.o part0.o part1.o part2.o part3.o\n\tgcc -o $@ $^\n")
    assert run(desk, "make -s -j2 && ./sum").out == "6\n"


def test_pytest(desk: Place) -> None:
    (desk.tree / "test_it.py").write_text(
        "import asyncio, multiprocessing, sqlite3, subprocess\n"
        "def test_files(tmp_path):\n    (tmp_path / 'x').write_text('y')\n"
        "def test_loop():\n    assert asyncio.run(asyncio.sleep(0, 5)) == 5\n"
        "def test_processes():\n    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        assert pool.map(abs, [-1, -2]) == [1, 2]\n"
        "def test_database(tmp_path):\n    sqlite3.connect(tmp_path / 'd').execute('create table t (x)')\n"
        "def test_child():\n    assert subprocess.check_output(['echo', 'on']) == b'on\\n'\n"
    )
    assert "5 passed" in run(desk, f"{sys.executable} -m pytest -q -p no:cacheprovider").out


def test_git_from_clone_to_merge(desk: Place) -> None:
    need("git")
    script = (
        "git -c init.defaultBranch=main init -q a && cd a && git config user.name A && git config user.email a@e && echo 1 > f && git add f"
        " && git commit -qm one && git switch -qc side && echo 2 > g && git add g && git commit -qm two && git switch -q main"
        " && git merge -q --no-edit side && git worktree add -q ../w side && git stash list && git gc -q && cd .. && git clone -q a b"
        " && git -C b log --format=%s"
    )
    assert run(desk, script).out == "two\none\n"


def test_threads_and_children_of_node(desk: Place) -> None:
    need("node")
    (desk.tree / "it.js").write_text(
        "const { Worker, isMainThread, parentPort } = require('worker_threads');\n"
        "if (!isMainThread) { parentPort.postMessage(require('os').userInfo().username); } else {\n"
        "  const child = require('child_process').spawnSync('echo', ['child']).stdout.toString().trim();\n"
        "  const server = require('http').createServer((q, a) => a.end('served')).listen(0, '127.0.0.1', async () => {\n"
        "    const text = await (await fetch(`http://127.0.0.1:${server.address().port}`)).text();\n"
        "    new Worker(__filename).on('message', name => { console.log(name, child, text); process.exit(); });\n"
        "  });\n}\n"
    )
    assert run(desk, "node it.js").out == "agent child served\n"


# Package managers, from a registry of the host that the session may reach


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder, and the loopback port where it is served."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield folder, server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_npm_installs_from_a_registry_and_from_a_folder(desk: Place, shelf: tuple[Path, int]) -> None:
    need("npm", "node")
    folder, port = shelf
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        files = {"package.json": json.dumps({"name": "far", "version": "1.0.0"}), "index.js": "module.exports = 'far'\n"}
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    (folder / "far.tgz").write_bytes(packed.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    dist = {"tarball": f"http://127.0.0.1:{port}/far.tgz", "integrity": integrity}
    about = {"name": "far", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "far", "version": "1.0.0", "dist": dist}}}
    (folder / "far").write_text(json.dumps(about))
    near = desk.tree / "near"
    near.mkdir()
    (near / "package.json").write_text(json.dumps({"name": "near", "version": "1.0.0", "scripts": {"install": "echo built > built"}}))
    (near / "index.js").write_text("module.exports = 'near'\n")
    (desk.tree / "package.json").write_text(json.dumps({"name": "it", "version": "1.0.0"}))
    npm = f"npm install --no-audit --no-fund --loglevel error --registry http://127.0.0.1:{port}"
    done = run(desk, f"{npm} far ./near && node -p \"require('far') + require('near')\"", "--host-port", str(port))
    assert done.out.splitlines()[-1] == "farnear"
    assert (desk.tree / "node_modules" / "far" / "index.js").exists()


def test_pip_installs_from_an_index(desk: Place, shelf: tuple[Path, int]) -> None:
    folder, port = shelf
    made = "far-1.0-py3-none-any.whl"
    (folder / "wheels" / "far").mkdir(parents=True)
    with zipfile.ZipFile(folder / "wheels" / "far" / made, "w") as wheel:
        wheel.writestr("far.py", "NAME = 'far'\n")
        wheel.writestr("far-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: far\nVersion: 1.0\n")
        wheel.writestr("far-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: it\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(
            "far-1.0.dist-info/RECORD", "far.py,,\nfar-1.0.dist-info/METADATA,,\nfar-1.0.dist-info/WHEEL,,\nfar-1.0.dist-info/RECORD,,\n"
        )
    (folder / "wheels" / "far" / "index.html").write_text(f'<a href="{made}">{made}</a>')
    pip = f"env/bin/pip install -q --disable-pip-version-check -i http://127.0.0.1:{port}/wheels/ far"
    script = f"{sys.executable} -m venv env && {pip} && env/bin/python -c 'import far; print(far.NAME)'"
    assert run(desk, script, "--host-port", str(port)).out.splitlines()[-1] == "far"


@pytest.mark.real
def test_a_browser_without_its_own_sandbox(desk: Place) -> None:
    need("chromium")
    (desk.tree / "page.html").write_text("<body><script>document.body.textContent = 'made by ' + (40 + 2)</script></body>")
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --user-data-dir=$HOME/browser"
    done = run(desk, f"chromium {flags} --dump-dom file://$PWD/page.html; chromium {flags} --screenshot=shot.png file://$PWD/page.html")
    assert "made by 42" in done.out
    assert (desk.tree / "shot.png").read_bytes().startswith(b"\x89PNG")
