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

POM = "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version></project>\n"
TEX = "\\documentclass{article}\\begin{document}x\\end{document}\n"
REDIS = (
    "redis-server --port 0 --unixsocket $HOME/it.sock --save '' --daemonize yes > log"
    "; until redis-cli -s $HOME/it.sock set a b; do :; done; redis-cli -s $HOME/it.sock shutdown nosave"
)


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


@pytest.mark.parametrize(
    ("programs", "files", "script", "said"),
    [
        pytest.param(("php",), {}, "php -r 'echo json_encode(extension_loaded(\"posix\"));'", "true", id="php"),
        pytest.param(("mvn",), {"pom.xml": POM}, "mvn -q validate && echo valid", "valid", id="maven"),
        pytest.param(("Rscript",), {}, "Rscript -e 'cat(median(1:3))'", "2", id="R"),
        pytest.param(("ghc",), {"it.hs": "main = print 1\n"}, "ghc -v0 it.hs && ./it", "1", id="ghc"),
        pytest.param(
            ("ocamlfind", "ocamlopt"), {"it.ml": "print_int 1\n"}, "ocamlfind ocamlopt -package unix it.ml -o it && ./it", "1", id="ocaml"
        ),
        pytest.param(("pdflatex",), {"it.tex": TEX}, "pdflatex -interaction=batchmode it.tex && head -c 4 it.pdf", "%PDF", id="latex"),
        pytest.param(("emacs",), {}, "emacs --batch --eval '(princ 1)'", "1", id="emacs"),
        pytest.param(("dpkg",), {}, "dpkg-query -W -f '${Package}' dpkg", "dpkg", id="dpkg"),
        pytest.param(("fakeroot",), {}, "fakeroot sh -c 'touch it && chown root it && stat -c %U it'", "root", id="fakeroot"),
        pytest.param(("redis-server",), {}, REDIS, "OK", id="redis"),
        pytest.param(("go",), {"it.go": "package main\n\nfunc main() { print(1) }\n"}, "go run it.go 2>&1", "1", id="go"),
        pytest.param(
            ("tmux",),
            {},
            "tmux new-session -d 'echo made > it; tmux wait-for -S made; cat' && tmux wait-for made && cat it",
            "made",
            id="tmux",
        ),
    ],
)
def test_a_tool(desk: Place, programs: tuple[str, ...], files: dict[str, str], script: str, said: str) -> None:
    need(*programs)
    for name, text in files.items():
        (desk.tree / name).write_text(text)
    assert run(desk, script).out.rstrip().endswith(said)


def test_message_queues(desk: Place) -> None:
    (desk.tree / "it.py").write_text(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "made = libc.mq_open(b'/it', os.O_CREAT | os.O_RDWR, 0o600, None)\n"
        "print(os.strerror(ctypes.get_errno()) if made < 0 else os.listdir('/dev/mqueue'))\n"
    )
    assert run(desk, f"{sys.executable} it.py").out == "['it']\n"


def test_a_debugger_where_a_launch_allows_tracing(desk: Place) -> None:
    need("gcc", "gdb")
    (desk.tree / "it.c").write_text("int main(void) { return 0; }\n")
    script = "gcc -g it.c && gdb -q -batch -ex 'break main' -ex run -ex bt ./a.out 2>&1"
    assert "Could not trace" in run(desk, f"{script} || true").out
    traced = run(desk, script, "--allow-ptrace").out
    assert "#0  main () at it.c:1" in traced and "randomization" not in traced


def test_a_compilers_sanitizers_where_a_launch_lets_them(desk: Place) -> None:
    need("gcc")
    (desk.tree / "it.c").write_text("#include <stdlib.h>\nint main(void) { return malloc(3) == 0; }\n")
    script = "gcc -fsanitize=address it.c 2>/dev/null || exit 9; ./a.out 2>&1 || true"
    done = desk.launch("--allow-ptrace", "--max-memory", "64T", "--", "sh", "-c", script)
    if done.code == 9:
        pytest.skip("this compiler has no AddressSanitizer")
    assert "SUMMARY: AddressSanitizer: 3 byte(s) leaked" in done.out, done.out + done.err


# Package managers, from a registry of the host that the session may reach, and where there is none


@pytest.mark.parametrize(
    ("program", "script", "retry"),
    [
        ("npm", "npm view nothing --loglevel http", "attempt 2"),
        ("pip", "python3 -m venv env && env/bin/pip download --disable-pip-version-check nothing", "Retrying"),
    ],
)
def test_a_package_manager_says_at_once_that_there_is_no_network(desk: Place, program: str, script: str, retry: str) -> None:
    need(program)
    done = desk.launch("--", "sh", "-c", script)
    assert done.code == 1
    assert retry not in done.out + done.err
    assert "ENOTFOUND" in done.err or "No matching distribution" in done.err


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
