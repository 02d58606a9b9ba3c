"""The folder that a session sees at `/opt/memory`: the hook program and the few modules it needs, compiled.

One folder per version of amem and interpreter, under the root's state, made once and shown read-only. The program itself is
three lines, because Python never caches the file that it is started with.
"""

import os
import sys
from binascii import crc32
from pathlib import Path

import amem
from amem.launch.plan import PORT
from amem.settings.root import Root

_PACKAGE = Path(amem.__file__).parent
_FILES = ("__init__.py", "sandbox/__init__.py", "sandbox/relay.py")
_FOLDER = "hooks"
_PROGRAM = """\
{start}
import sys; sys.path.append({library!r})
from amem.hooks.run import main; main()
"""
_THROUGH_SHELL = """\
#!/bin/sh
'''exec' {python} -ISB "$0" "$@"
' '''"""
"""Both languages read it: for the shell a command, for Python a text."""
_LONGEST = 120
"""What any kernel takes as the path of an interpreter."""


IMAGE_PYTHON = "/usr/bin/python3"
"""What runs the hooks in an image: the image's own, since this machine's is not shown."""


def own_bin(home: str) -> str:
    """Where a session without a sandbox has the hook program: in its private home."""
    return f"{home}/.amem/bin"


def write_own_bin(home: str, port: int) -> None:
    """Put the hook program into a private home, with the port on this machine that its egress has."""
    folder = Path(own_bin(home))
    folder.mkdir(parents=True, mode=0o700)
    (folder / "port").write_text(f"{port}\n")
    program = folder / "memory"
    program.write_text(_program(os.path.realpath(sys.executable), str(_PACKAGE.parent)))
    program.chmod(0o700)


def memory_dir(root: Root, *, image: bool = False) -> Path:
    """The folder for this version of amem; made on first use, whole or not at all."""
    hooks = (f"{_FOLDER}/{name}" for name in sorted(os.listdir(_PACKAGE / _FOLDER)) if name.endswith(".py"))
    sources = {name: _PACKAGE / name for name in (*_FILES, *hooks)}
    program = _program(IMAGE_PYTHON if image else os.path.realpath(sys.executable), "/opt/memory/lib")
    marks = "".join(f"{name} {(found := path.stat()).st_mtime_ns} {found.st_size}\n" for name, path in sources.items())
    # A checksum is enough to tell versions of our own files apart, and hashlib would cost the launch 20 ms.
    target = root.state / "inside" / f"{amem.__version__}-{crc32(f'{program}{marks}{PORT}{sys.version}'.encode()):08x}"
    if not target.is_dir():
        _make(target, program, sources)
    return target


def _program(python: str, library: str) -> str:
    """The hook program. The first line of a script ends its interpreter's path at a space, and is cut where it is long."""
    start = f"#!{python} -ISB"
    if " " in python or len(python) > _LONGEST:
        import shlex

        start = _THROUGH_SHELL.format(python=shlex.quote(python))
    return _PROGRAM.format(start=start, library=library)


def _make(target: Path, program: str, sources: dict[str, Path]) -> None:
    import py_compile
    import shutil
    import tempfile

    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        for name, source in sources.items():
            copy = made / "lib" / "amem" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            # Unchecked: the tree is read-only inside, and a stat a module is time in every hook.
            py_compile.compile(str(copy), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        # Read-only inside, so no setting of a work tree can send the hook to a guard of its own.
        (made / "port").write_text(f"{PORT}\n")
        memory = made / "memory"
        memory.write_text(program)
        memory.chmod(0o755)
        made.chmod(0o755)
        os.rename(made, target)
    except FileExistsError:
        shutil.rmtree(made)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not target.is_dir():
            raise
