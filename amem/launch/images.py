"""Unpacked harness images: root file systems whose programs a session is shown in place of this machine's.

Owns `state/image/` of a root: one folder for each image, named after its digest, and `current`, the link that new sessions follow. An image
is there whole or not at all, and is never written again; a session holds a lock on the one it shows, so it keeps it while a new one
is unpacked, and none is removed under it. What an image's links lead to is looked up within the image.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from amem.errors import ConflictError, IntegrityError, NotFoundError, UnavailableError
from amem.harnesses import registry
from amem.harnesses.base import Harness
from amem.launch import backends
from amem.sandbox import host, reader
from amem.sandbox.spec import is_below
from amem.settings.root import Root

NAME = "amem-harness"
"""What the harness image is called where a container runtime holds it."""
RUNTIMES = ("wslc", "podman", "docker")
HARNESSES = "/opt/amem/harnesses"
"""Where an image has the pinned harnesses, laid out as in the cache of `make harnesses`."""
MANIFEST = "opt/amem/image.json"
_MANIFEST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20


class Image(NamedTuple):
    """An unpacked image."""

    id: str
    digest: str
    """Of the archive that it was unpacked from."""
    harnesses: dict[str, str]
    """The version of each harness in it."""
    current: bool
    in_use: bool
    path: Path


def images(root: Root) -> list[Image]:
    """The images of a root, the newest first."""
    current = backends.image(root)
    folder = root.state / "image"
    found = [path for path in folder.glob("img-*") if path.is_dir()]
    found.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [_read(path, str(path.resolve()) == current) for path in found]


def find_program(image: str, harness: Harness) -> registry.Program | None:
    """The harness in an image, by its paths inside."""
    return registry.find(
        harness, path="/usr/local/bin:/usr/bin", cache=HARNESSES, machine=os.uname().machine, resolve=lambda path: _program(image, path)
    )


def hold(image: str) -> int:
    """Lock an image for a session; the descriptor holds it. Raises UnavailableError when it was removed meanwhile."""
    try:
        fd = os.open(f"{image}.lock", os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.stat(f"{image}/usr")
    except OSError as error:
        raise UnavailableError(f"the image {os.path.basename(image)} is not whole: {error.strerror}", hint="make unpack") from error
    return fd


def unpack(root: Root, source: str | None) -> Image:
    """Unpack an archive, or what a container runtime holds, and make it the one that new sessions use.

    Raises UnavailableError where there is nothing to unpack, IntegrityError for what is no root file system.
    """
    folder = root.state / "image"
    folder.mkdir(mode=0o700, exist_ok=True)
    with _alone(folder):
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
        try:
            with _archive(source) as stream:
                digest = _extract(stream, part / "root")
            return _put(folder, part, digest)
        finally:
            _remove_tree(part)


def _put(folder: Path, part: Path, digest: str) -> Image:
    """Give an unpacked image its place, and make it the current one."""
    unpacked = part / "root"
    if not (unpacked / "usr/bin").is_dir() or not (unpacked / "etc").is_dir():
        raise IntegrityError("the archive holds no root file system: it has no usr/bin or no etc", hint="make image")
    unpacked.chmod(0o755)
    target = folder / f"img-{digest[:12]}"
    if not target.exists():
        Path(f"{target}.json").write_text(json.dumps({"digest": f"sha256:{digest}", "harnesses": _manifest(unpacked)}))
        Path(f"{target}.lock").touch(mode=0o600)
        unpacked.rename(target)
    link = part / "current"
    link.symlink_to(target.name)
    link.rename(folder / "current")
    return _read(target, True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One at a time unpacks or removes, so what an ended one left half done is known to be nobody's."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(".part-*"):
            _remove_tree(left)
        yield


def remove(root: Root, id: str) -> None:
    """Remove an image. Raises NotFoundError, and ConflictError while a session shows it."""
    target = root.state / "image" / id
    if "/" in id or not id.startswith("img-") or not target.is_dir():
        raise NotFoundError(f"no image {id}", hint="amem image list")
    with _alone(root.state / "image"):
        fd = os.open(f"{target}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if backends.image(root) == str(target.resolve()):
                (root.state / "image" / "current").unlink()
            gone = target.with_name(f".part-{id}")
            target.rename(gone)
            for suffix in (".json", ".lock"):
                Path(f"{target}{suffix}").unlink(missing_ok=True)
        except BlockingIOError as error:
            raise ConflictError(f"a running session shows {id}", hint="amem session list --state running") from error
        finally:
            os.close(fd)
        _remove_tree(gone)


def _program(image: str, path: str) -> str | None:
    end = host.resolved(image, path)
    if end is None or not os.path.isfile(image + end):
        return None
    return end if os.access(image + end, os.X_OK) or end.endswith((".js", ".mjs", ".cjs")) else None


def _read(path: Path, current: bool) -> Image:
    try:
        about: dict[str, Any] = json.loads(Path(f"{path}.json").read_text())
    except (OSError, ValueError):
        about = {}
    return Image(path.name, about.get("digest", ""), about.get("harnesses", {}), current, _in_use(path), path)


def _in_use(path: Path) -> bool:
    try:
        fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _manifest(image: Path) -> dict[str, str]:
    """The harnesses that an image says it has; none for one that says nothing that can be read."""
    found = reader.read_file(str(image), MANIFEST, _MANIFEST_BYTES)
    if isinstance(found, reader.Refused):
        return {}
    try:
        said = json.loads(found)["harnesses"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {str(name): str(version) for name, version in said.items()} if isinstance(said, dict) else {}


# Archives


@contextmanager
def _archive(source: str | None) -> Iterator[IO[bytes]]:
    """The archive as a stream: a file, or the export of a container that a runtime makes of its image and that is removed again."""
    if source is not None and source not in RUNTIMES:
        try:
            with open(source, "rb") as file:
                yield file
        except FileNotFoundError as error:
            raise UnavailableError(f"--from {source}: there is no such archive or runtime", hint="make image") from error
        return
    runtime = source or next((name for name in RUNTIMES if shutil.which(name) and _has_image(name)), None)
    if runtime is None or shutil.which(runtime) is None:
        asked = source or f"none of {', '.join(RUNTIMES)}"
        raise UnavailableError(f"no harness image: {asked} has {NAME}, and no archive was named", hint="make image unpack")
    container = _run(runtime, "create", NAME, "true").strip()
    try:
        with subprocess.Popen([runtime, "export", container], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as export:
            assert export.stdout is not None
            yield export.stdout
            export.stdout.close()
        if export.returncode != 0:
            raise UnavailableError(f"{runtime} export ended with {export.returncode}", hint=f"{runtime} images")
    finally:
        _run(runtime, "rm", container)


def _has_image(runtime: str) -> bool:
    try:
        _run(runtime, "image", "inspect", NAME)
    except UnavailableError:
        return False
    return True


def _run(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnavailableError(f"{' '.join(command)}: {done.stderr.strip()[-300:] or done.returncode}", hint="make image")
    return done.stdout


def _extract(stream: IO[bytes], target: Path) -> str:
    """Unpack a stream and return its SHA-256. Nothing is written outside the target, no device is made, no special bit is kept."""
    digest = _Digesting(stream)
    target.mkdir(mode=0o700)
    try:
        with tarfile.open(fileobj=cast(IO[bytes], digest), mode="r|*") as archive:
            # What may be taken is settled here: Python before 3.11.4 has no filters, and one from 3.12 on asks for their name.
            trusted: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
            # Not `extractall`: it gives folders their owner and mode at the end, by names that may lead out of the image by then (shown).
            for member in _members(archive, os.path.realpath(target)):
                archive.extract(member, target, numeric_owner=True, **trusted)
    except (tarfile.TarError, EOFError) as error:
        raise IntegrityError(f"the archive cannot be unpacked: {error}", hint="make image") from error
    while digest.read(_PIECE_BYTES):
        pass
    return digest.hexdigest()


def _members(archive: tarfile.TarFile, target: str) -> Iterator[tarfile.TarInfo]:
    """What is unpacked, as it is. Raises tarfile.ExtractError for a name, or a hard link, that leads out of the target."""
    for member in archive:
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            continue
        taken = copy(member)
        taken.name = member.name.lstrip("/")
        place = os.path.realpath(os.path.join(target, taken.name))  # through the links that were unpacked before
        if not is_below(place, target):
            raise tarfile.ExtractError(f"{member.name[:200]!r} leads out of the image")
        if member.islnk():  # what it leads to could be a file of this machine
            first = os.path.realpath(os.path.join(target, member.linkname))
            if not (is_below(first, target) and os.path.isfile(first)):
                raise tarfile.ExtractError(f"{member.name[:200]!r} is a link to {member.linkname[:200]!r}, which is not in the image")
        taken.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0)
        yield taken


class _Digesting:
    """A stream that is read once, with the digest of what was read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _remove_tree(path: Path) -> None:
    reader.remove(str(path))
