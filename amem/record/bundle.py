"""A bundle of entries: a plain tar of their files, with a manifest of digests first. Reading one is reading what an adversary made.

`manifest.json` names the owner, each entry's digest and that of `promotions.json`; `seal.json` is the manifest's digest under a key that
the owner's roots share, so that nobody else's bundle passes for the owner's. Nothing of a bundle is used before all of it was checked: the
names and kinds of its members (so that none can leave a folder, or be more than it says), their sizes, and every digest.
"""

import hashlib
import hmac
import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from amem.errors import IntegrityError
from amem.model.entry import Entry
from amem.model.ids import is_id
from amem.model.principal import is_principal
from amem.record import markdown
from amem.record.markdown import Malformed
from amem.record.store import MAX_FILE_BYTES, digest

VERSION = 1
MANIFEST, SEAL, PROMOTIONS = "manifest.json", "seal.json", "promotions.json"
MAX_ENTRIES = 200_000
_MAX_DOCUMENT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle whose digests hold."""

    digest: str
    """Of the manifest."""
    owner: str
    """As the bundle says."""
    sealed: bool
    """Whether the seal is of the key that was given: then it is the owner's word."""
    entries: tuple[Entry, ...]
    promotions: tuple[Mapping[str, Any], ...]
    malformed: tuple[tuple[str, str], ...]
    """Members that are no entries, and why."""


def write(
    file: Path, key: bytes, owner: str, made_at: str, label: str, entries: Sequence[Entry], promotions: Sequence[Mapping[str, Any]]
) -> str:
    """Make a bundle, 0600, whole or not at all, and return its manifest's digest. Raises OSError."""
    files = {f"entries/{entry.id}.md": markdown.format(entry) for entry in entries}
    kept = _json(list(promotions))
    manifest = _json(
        {
            "v": VERSION, "owner": owner, "made_at": made_at, "label": label,
            "entries": {name: digest(data) for name, data in files.items()}, "promotions": digest(kept),
        }
    )  # fmt: skip
    seal = _json({"seal": _seal(key, manifest)})
    temporary = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb") as out:
            with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
                for name, data in {MANIFEST: manifest, SEAL: seal, PROMOTIONS: kept, **files}.items():
                    member = tarfile.TarInfo(name)
                    member.size, member.mode = len(data), 0o600
                    tar.addfile(member, BytesIO(data))
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return digest(manifest)


def read(file: Path, key: bytes | None) -> Bundle:
    """Check a bundle and read all of it; without a key none is sealed. Raises IntegrityError that says what is wrong with it, OSError."""
    members: dict[str, bytes] = {}
    with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as source:
        for name, data in _members(source):
            if name in members:
                raise IntegrityError(f"{file.name}: {name[:80]!r} comes twice")
            members[name] = data
    try:
        manifest, seal = json.loads(members[MANIFEST]), json.loads(members[SEAL])
        listed, owner, kept = manifest["entries"], manifest["owner"], manifest["promotions"]
        promotions = json.loads(members[PROMOTIONS])
        if manifest["v"] != VERSION or not isinstance(listed, dict) or not is_principal(owner) or not isinstance(promotions, list):
            raise ValueError("not a manifest of this version")
    except KeyError as error:
        raise IntegrityError(f"{file.name}: no bundle: {error} is missing") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise IntegrityError(f"{file.name}: no bundle: {error}") from None
    wanted = {**listed, PROMOTIONS: kept}
    for name in sorted(set(wanted) ^ (set(members) - {MANIFEST, SEAL})):
        raise IntegrityError(f"{file.name}: {name[:80]!r} is {'not in the manifest' if name in members else 'missing'}")
    for name, data in members.items():
        if name in wanted and digest(data) != wanted[name]:
            raise IntegrityError(f"{file.name}: {name} is not what the manifest says: it was changed")
    entries, malformed = [], []
    for name in listed:
        try:
            entries.append(_entry(name, members[name]))
        except Malformed as error:
            malformed.append((name.removeprefix("entries/").removesuffix(".md"), error.why))
    said = seal.get("seal") if isinstance(seal, dict) else None
    return Bundle(
        digest=digest(members[MANIFEST]),
        owner=owner,
        sealed=key is not None and isinstance(said, str) and hmac.compare_digest(said.encode(), _seal(key, members[MANIFEST]).encode()),
        entries=tuple(entries),
        promotions=tuple(item for item in promotions if isinstance(item, dict)),
        malformed=tuple(malformed),
    )


def _members(source: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """The members of a plain tar: regular files of the names that a bundle has, within bounds."""
    try:
        with tarfile.open(fileobj=source, mode="r:") as tar:
            for count, member in enumerate(tar):
                if count > MAX_ENTRIES + 3:
                    raise IntegrityError(f"more than {MAX_ENTRIES} entries")
                if not _named(member.name):
                    raise IntegrityError(f"{member.name[:80]!r} is no member of a bundle")
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                    raise IntegrityError(f"{member.name} is no regular file")
                most = MAX_FILE_BYTES if member.name.startswith("entries/") else _MAX_DOCUMENT_BYTES
                if member.size > most:
                    raise IntegrityError(f"{member.name} is larger than {most} bytes")
                data = tar.extractfile(member)
                assert data is not None
                yield member.name, data.read()
    except (tarfile.TarError, EOFError, ValueError, OverflowError, UnicodeError) as error:
        raise IntegrityError(f"no bundle: not a plain tar file: {error}") from None


def _named(name: str) -> bool:
    if name in (MANIFEST, SEAL, PROMOTIONS):
        return True
    return name.startswith("entries/") and name.endswith(".md") and is_id("entry", name[len("entries/") : -len(".md")])


def _entry(name: str, data: bytes) -> Entry:
    entry = markdown.parse(data)
    if name != f"entries/{entry.id}.md":
        raise Malformed(f"the entry says that it is {entry.id}")
    return entry


def _seal(key: bytes, manifest: bytes) -> str:
    return hmac.new(key, manifest, hashlib.sha256).hexdigest()


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode()
