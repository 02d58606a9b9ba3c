"""Start real sandboxes from tests, as root and as an ordinary user.

The checkout and the interpreter of the tests may be unreadable for an ordinary user, so the sandbox package is copied to a folder
everybody may read and run by an interpreter everybody may run.
"""

import atexit
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("driver.py")
ORDINARY_ID = 61_234
"""A user id that no account here has; needs no entry anywhere."""

CAUSES = ("user namespaces", "AppArmor", "masks parts of /proc", "limit of namespaces")
"""Words of the doctor's reasons for a machine where no sandbox can be; a failure without one of them is ours."""


class Place(NamedTuple):
    """Who launches, from where: a work tree, a home, and the copy of the code."""

    who: str
    base: Path
    python: str
    code: Path
    started: "list[Background]"
    """Ended with the place, should their test have failed before it could."""

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def home(self) -> Path:
        return self.base / "home"

    def ids(self) -> dict[str, Any]:
        if self.who == "user" and os.geteuid() == 0:
            return {"user": ORDINARY_ID, "group": ORDINARY_ID, "extra_groups": []}
        return {}

    def own(self) -> None:
        """Give everything below the base to whoever launches."""
        if self.ids():
            subprocess.run(["chown", "-Rh", f"{ORDINARY_ID}:{ORDINARY_ID}", self.base], check=True)

    def command(self, asked: dict[str, Any]) -> list[str]:
        spec = {"workdir": str(self.work), "home": str(self.home), **asked.get("spec", {})}
        return [self.python, "-B", str(self.code / "driver.py"), json.dumps({**asked, "spec": spec})]

    def env(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(self.code), "LANG": "C.UTF-8", "TERM": "xterm", "SECRET_KEY": "planted-secret"}

    def launch(self, *argv: str, pass_fds: tuple[int, ...] = (), **asked: Any) -> dict[str, Any]:
        """Run a program in a sandbox to its end; the driver's report."""
        spec = {"argv": list(argv), **asked.pop("spec", {})}
        done = subprocess.run(
            self.command({**asked, "spec": spec}),
            **self.ids(),
            env=self.env(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            pass_fds=pass_fds,
        )
        lines = done.stderr.decode().splitlines()
        assert lines and lines[-1].startswith("{"), f"driver: {done.stderr.decode()}"
        report: dict[str, Any] = json.loads(lines[-1])
        return report

    def start(self, *argv: str, **asked: Any) -> "Background":
        """Run a program in a sandbox while a test acts on it."""
        return Background(self, *argv, **asked)

    def sleep(self, seconds: int) -> str:
        """A `sleep` command that no other place has, so that what it leaves behind is found."""
        return f"sleep {seconds}.{self.mark}"

    @property
    def mark(self) -> str:
        """Digits of this place's own."""
        return str(int.from_bytes(self.base.name.encode(), "little"))[:30]


class Background:
    """A driver that runs while a test acts on it."""

    def __init__(self, here: Place, *argv: str, **asked: Any) -> None:
        asked = {"announce": True, "echo": True, **asked, "spec": {"argv": list(argv), **asked.get("spec", {})}}
        self.process = subprocess.Popen(
            here.command(asked),
            **here.ids(),
            env=here.env(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        here.started.append(self)
        assert self.process.stdout is not None
        self.seen = b""
        first = self.until(b"\n").split()
        self.init, self.stage = int(first[1]), int(first[2])

    def until(self, mark: bytes) -> bytes:
        """What comes before the mark in its output, once the mark is there."""
        assert self.process.stdout is not None
        while mark not in self.seen:
            assert select.select([self.process.stdout], [], [], 20)[0], f"nothing more than {self.seen!r}"
            data = os.read(self.process.stdout.fileno(), 4096)
            assert data, f"ended after {self.seen!r}: {self.process.stderr and self.process.stderr.read()!r}"
            self.seen += data
        before, _, self.seen = self.seen.partition(mark)
        return before

    def report(self) -> dict[str, Any]:
        """The driver's report, once it has ended by itself."""
        _, err = self.process.communicate(timeout=20)
        result: dict[str, Any] = json.loads(err.decode().splitlines()[-1])
        return result

    def end(self) -> None:
        """Kill the driver, and with it the sandbox. Safe to call twice."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def place(who: str, *, other: bool = False) -> Iterator[Place]:
    """A fresh place for `user` or `root`; skips with the reason when that cannot be here. `other`: on another Python than the default."""
    reason = unavailable(who, other=other)
    if reason:
        pytest.skip(reason)
    with _made(who, other) as made:
        yield made


@cache
def unavailable(who: str, *, other: bool = False) -> str:
    """Why no sandbox can be made here, in the doctor's words; empty when one can."""
    if who == "root" and os.geteuid() != 0:
        return "not run by root"
    if not _python(who):
        return "no Python 3.11 or later here that an ordinary user may run"
    if other and not _other_python(who):
        return "no second Python from 3.11 on here (AMEM_TEST_OTHER_PYTHON names one)"
    with _made(who, other) as made:
        report = made.launch("true")
    message = str(report.get("error", ""))
    if message and not any(words in message for words in CAUSES):
        raise AssertionError(f"a sandbox cannot be made here, and not for a known cause: {message}")
    return message


@contextmanager
def _made(who: str, other: bool = False) -> Iterator[Place]:
    base = Path(tempfile.mkdtemp(prefix="amem-test-", dir="/tmp"))
    made = Place(who, base, _other_python(who) if other else _python(who), base / "code", [])
    try:
        base.chmod(0o755)
        copy_code(made.code)
        made.work.mkdir(mode=0o755)
        made.home.mkdir(mode=0o700)
        made.own()
        yield made
    finally:
        for running in made.started:
            running.end()
        shutil.rmtree(base, ignore_errors=True)


def copy_code(target: Path) -> None:
    """The part of amem a launch needs, and the driver."""
    shutil.copytree(ROOT / "sandbox", target / "amem" / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "errors.py", "exits.py", "typed.py"):
        shutil.copy(ROOT / "amem" / name, target / "amem" / name)
    shutil.copy(DRIVER, target / "driver.py")
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@cache
def _python(who: str) -> str:
    """An interpreter that `who` may run: `$AMEM_TEST_PYTHON`, or the tests' own if possible."""
    for candidate in (os.environ.get("AMEM_TEST_PYTHON", ""), sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if _version(candidate, who) >= (3, 11):
            return candidate
    return ""


@cache
def _other_python(who: str) -> str:
    """An interpreter of another version that `who` may run, the newest that is found here."""
    named = os.environ.get("AMEM_TEST_OTHER_PYTHON")
    kept = [str(path) for folder in (".pyenv/versions", ".local/share/uv/python") for path in Path.home().glob(f"{folder}/*/bin/python3")]
    on_path = [found for minor in range(11, 20) if (found := shutil.which(f"python3.{minor}", path="/usr/bin:/usr/local/bin"))]
    default = _version(_python(who), who)
    found = {_version(path, "root"): path for path in ([named] if named else [*on_path, *kept])}
    for version in sorted(found, reverse=True):
        if version >= (3, 11) and version != default:
            return found[version] if _version(found[version], who) == version else _copied(found[version])
    return ""


def _version(python: str, who: str) -> tuple[int, ...]:
    """The version of an interpreter, as `who` runs it; empty for one that cannot."""
    ids = {"user": ORDINARY_ID, "group": ORDINARY_ID, "extra_groups": []} if who == "user" and os.geteuid() == 0 else {}
    try:
        ask = [python, "-I", "-c", "import sys; print(*sys.version_info[:2])"]
        done = subprocess.run(ask, **ids, capture_output=True, cwd="/", timeout=20, text=True, check=True)  # type: ignore[call-overload]
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(map(int, done.stdout.split()))


def _copied(python: str) -> str:
    """A copy of an interpreter where everybody may run it; it looks for its library beside itself."""
    prefix = Path(python).resolve().parents[1]
    base = Path(tempfile.mkdtemp(prefix="amem-python-", dir="/tmp"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    base.chmod(0o755)
    left_out = shutil.ignore_patterns("__pycache__", "test", "site-packages", "idlelib", "tkinter", "*.a")
    shutil.copytree(prefix / "lib", base / "lib", symlinks=True, ignore=left_out)
    (base / "bin").mkdir()
    program = base / "bin" / "python3"
    here = b"$ORIGIN/../lib"
    written = os.fsencode(prefix / "lib")
    program.write_bytes(Path(python).resolve().read_bytes().replace(written + b"\0", here.ljust(len(written), b"\0") + b"\0"))
    program.chmod(0o755)
    return str(program)
