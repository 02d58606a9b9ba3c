"""Keep decision contexts: each call's request as it left and its answer as it came, beside the session's domain.

Owns `record/<domain>/.contexts/<session>/`: `calls.jsonl`, one line a call, and `blobs/`, each body once under its digest,
compressed. Written by a thread of its own, an answer piece by piece, so that neither the loop nor memory feels a long one.
Never indexed and never served to a session; a context that cannot be kept is said on the line of the next, and stops no call.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from amem.egress.asked import tools_asked
from amem.egress.encodings import DecodeError, decoder
from amem.errors import IntegrityError
from amem.model.call import Dialect, ObservedBy
from amem.model.label import Label

_PARSED_BYTES = 8 << 20
"""An answer longer than this is kept, and the tools it asks for are not read."""
MOST_PLAIN_BYTES = 64 << 20
"""Of a body without its encoding, unless another bound is asked for."""
_SHORT_BYTES = 1 << 16
_PART_BYTES = 1 << 16
"""A longer body is looked through for credentials by so much at a time: in one go it would keep the loop waiting."""
_RUN_BYTES = 1 << 20
"""Bytes without an end of a line or a text are looked through by so much."""
_GATHERED_S = 0.02
"""The thread that writes waits so long for more: woken for each call it would stand in the loop's way each time."""
_WAITING_BYTES = 32 << 20
"""Of all answers together that wait to be written; an answer beyond it is not kept, and its line says so."""
_kept = threading.local()

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Context:
    """One call being kept. `feed` the answer's bytes as they pass, then `Contexts.end` it."""

    call: str
    at: str
    dialect: Dialect
    model: str
    label: Label
    shaping: tuple[str, ...]
    path: str
    request: bytes
    """As it left, without its headers: there is no credential in here."""
    status: int = 0
    content_type: str = ""
    content_encoding: str = ""
    response_class: str | None = None
    partial: bool = False
    dropped: bool = False
    """Its answer came faster than it could be kept, and is not kept."""
    feed: Any = field(default=lambda piece: None, repr=False)


class Contexts:
    """The contexts of one session."""

    def __init__(self, folder: Path, mask: Callable[[bytes], bytes] = bytes) -> None:
        """Prepare to write under `folder`; nothing is made until the first call. `mask` takes credentials out of what is kept."""
        self._folder = folder
        self._mask = mask
        self._blobs = f"{folder}/blobs"
        self._hurry = threading.Event()
        """Much waits to be written, or no more will come."""
        self._count = 0
        self._taken = 0
        self._written = 0
        self._missed = 0
        self._open: dict[str, _Answer] = {}
        self._queue: queue.SimpleQueue[tuple[str, Context, bytes] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="contexts", daemon=True)
        self._thread.start()

    def begin(self, context: Context) -> None:
        """Take a call that is about to leave."""
        context.feed = lambda piece: self._take(context, piece)

    def _take(self, context: Context, piece: bytes) -> None:
        # Two counters, one for each thread: what waits to be written is held in memory, and that has a bound.
        if context.dropped or self._taken - self._written > _WAITING_BYTES:
            context.dropped = True
            return
        self._taken += len(piece)
        self._queue.put(("piece", context, piece))
        if self._taken - self._written > _SHORT_BYTES and not self._hurry.is_set():
            self._hurry.set()

    def end(self, context: Context) -> None:
        """The call is over: keep it."""
        self._queue.put(("end", context, b""))

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._queue.put(None)
        self._hurry.set()
        self._thread.join()
        for answer in self._open.values():
            answer.drop()

    def _run(self) -> None:
        going = True
        while going:
            items = deque([self._queue.get()])
            self._hurry.wait(_GATHERED_S)
            self._hurry.clear()
            while not self._queue.empty():
                items.append(self._queue.get())
            going = items[-1] is not None
            lines = []
            while items and (item := items.popleft()) is not None:  # a list would hold what is written until all of it is
                if (line := self._one(*item)) is not None:
                    lines.append(line)
            if lines:
                self._say(lines)

    def _one(self, what: str, context: Context, piece: bytes) -> bytes | None:
        """Keep a piece of an answer, or a whole call, which has a line."""
        try:
            if what == "end":
                return self._keep(context)
            self._written += len(piece)
            if (answer := self._open.get(context.call)) is None:
                answer = self._open[context.call] = _Answer(self._blobs, context.call)
            answer.write(piece)
        except Exception:  # an outer edge: what an answer holds must not end the thread
            self._missed += 1
            _log.exception("the context of %s could not be kept", context.call)
            if (answer := self._open.pop(context.call, None)) is not None:
                answer.drop()
        return None

    def _say(self, lines: list[bytes]) -> None:
        try:
            written = False
            while not written:
                with open(_opened(f"{self._folder}/calls.jsonl", os.O_APPEND), "ab") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    if written := _stands(file, f"{self._folder}/calls.jsonl"):  # else an erasure has just put another in its place
                        file.write(b"".join(lines))
        except OSError:
            self._missed += len(lines)
            _log.exception("%d contexts could not be kept", len(lines))

    def _keep(self, context: Context) -> bytes:
        """Store what a call sent and got. Its line is returned."""
        answer = self._open.pop(context.call, None)
        if answer is not None and context.dropped:
            answer.drop()
            answer = None
        encoding = context.content_encoding
        tools = self._tools(context, answer)
        response = None
        read = plain(bytes(answer.head), encoding, _PARSED_BYTES) if answer is not None and answer.head is not None else None
        if answer is not None and read is not None and (masked := self._masked(read)) != read:  # what was compressed is kept as it reads
            answer.drop()
            response, encoding = _stored(self._blobs, masked), ""
        if answer is not None and read is None:
            response, encoding = self._sealed(answer, context.call, encoding)
        elif answer is not None and response is None:
            response = answer.finish()
        request = _stored(self._blobs, self._masked(context.request))
        self._count += 1
        line = {
            "n": self._count, "call": context.call, "at": context.at, "observed_by": ObservedBy.EGRESS, "dialect": context.dialect,
            "model": context.model, "label": context.label, "path": context.path, "status": context.status or None,
            "shaping": list(context.shaping) or None, "tools": tools or None,
            "request": request, "response": response,
            "content_type": context.content_type or None, "content_encoding": encoding or None,
            "response_class": context.response_class, "partial": context.partial or None, "missed_before": self._missed or None,
            "dropped": context.dropped or None,
            "digest": _digest(f"{request}:{response}".encode()),
        }  # fmt: skip
        self._missed = 0
        text = json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace") + b"\n"  # half of a surrogate pair is an escape in JSON too

    def _masked(self, body: bytes) -> bytes:
        return self._mask(body) if len(body) <= _PART_BYTES else b"".join(map(self._mask, _parts([body])))

    def _sealed(self, answer: "_Answer", call: str, encoding: str) -> tuple[str, str]:
        """Store an answer that is long as it came or as it reads, a part at a time without its credentials; its name and encoding."""
        masked, changed = _Answer(self._blobs, f"{call}.masked", held_bytes=_SHORT_BYTES), False
        try:
            for part in _parts(answer.plain(encoding)):
                sealed = self._mask(part)
                changed = changed or sealed != part
                masked.write(sealed)
        except (DecodeError, LookupError):  # as for a short one: what cannot be read is kept as it came
            changed = False
        if changed:
            answer.drop()
            return masked.finish(), ""
        masked.drop()
        return answer.finish(), encoding

    def _tools(self, context: Context, answer: "_Answer | None") -> list[str]:
        if answer is None or answer.head is None:
            return []
        return tools_asked(context.dialect, bytes(answer.head), context.content_encoding)


class _Answer:
    """An answer being written: a long one, compressed, into a part file that gets its digest as its name; a short one at its end."""

    def __init__(self, folder: str, call: str, *, held_bytes: int | None = None) -> None:
        self._held_bytes = _PARSED_BYTES if held_bytes is None else held_bytes
        self._folder = folder
        self._path = f"{folder}/.{call}.part"
        self._file: BinaryIO | None = None
        self._packer: Any = None
        self._hash: Any = None
        self.head: bytearray | None = bytearray()
        """The whole body while it is short enough to be parsed; None for a long one."""

    def write(self, piece: bytes) -> None:
        if self.head is not None:
            self.head += piece
        if self._file is not None:
            self._hash.update(piece)
            self._file.write(self._packer.compress(piece))
        elif self.head is not None and len(self.head) > _SHORT_BYTES:
            self._file = open(_opened(self._path, os.O_TRUNC), "wb")  # noqa: SIM115 (finish and drop close it)
            self._packer, self._hash = _compressor().compressobj(), hashlib.sha256()  # its own: the bodies under way take turns
            self._hash.update(self.head)
            self._file.write(self._packer.compress(self.head))
        if self.head is not None and len(self.head) > self._held_bytes:
            self.head = None

    def plain(self, encoding: str) -> Iterator[bytes]:
        """What was written, without its encoding. Raises LookupError for one that is not known, DecodeError."""
        import zstandard

        found = decoder(encoding)
        if found is None:
            raise LookupError(encoding)
        if self._file is None:
            assert self.head is not None
            yield from found.feed(bytes(self.head))
            return
        self._end()
        unpacker: Any = zstandard.ZstdDecompressor()
        with open(self._path, "rb") as file:
            for piece in unpacker.read_to_iter(file, write_size=_SHORT_BYTES):
                yield from found.feed(piece)

    def _end(self) -> None:
        if self._file is not None and not self._file.closed:
            self._file.write(self._packer.flush())
            self._file.close()

    def finish(self) -> str:
        """Store it under its digest, which is returned."""
        if self._file is None:
            assert self.head is not None
            return _stored(self._folder, bytes(self.head))
        self._end()
        name = f"sha256-{self._hash.hexdigest()}"
        os.replace(self._path, f"{self._folder}/{name}.zst")
        return name

    def drop(self) -> None:
        if self._file is not None:
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts that end where a credential does not go on: after a line or a text, if there is one in a MB."""
    held = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), _PART_BYTES):
            held += piece[start : start + _PART_BYTES]
            if len(held) < _PART_BYTES:
                continue
            end = max(held.rfind(b"\n"), held.rfind(b'"')) + 1
            begun = held.rfind(b"-----BEGIN", 0, end)
            if begun >= 0 and held.find(b"-----END", begun, end) < 0:
                end = begun  # a key of many lines
            if end == 0 and len(held) > _RUN_BYTES:
                end = len(held)
            if end:
                yield bytes(held[:end])
                del held[:end]
    if held:
        yield bytes(held)


def _stored(folder: str, data: bytes) -> str:
    """Store a body once, under its digest, which is returned."""
    name = _digest(data)
    path = f"{folder}/{name}.zst"
    try:
        descriptor = _opened(path, os.O_EXCL)
    except FileExistsError:
        return name
    try:
        left = memoryview(_at_once(data))
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.unlink(path)  # else the half would count as the whole the next time
        raise
    finally:
        os.close(descriptor)
    return name


def _opened(path: str, how: int) -> int:
    """A file to write to, its folder made where it is not there: an act of the owner may have moved it away."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | how
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, flags, 0o600)


def _stands(file: BinaryIO, path: str) -> bool:
    """Say whether an open file is the one of that name."""
    try:
        return os.fstat(file.fileno()).st_ino == os.stat(path, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return False


def plain(body: bytes, encoding: str, most_bytes: int = MOST_PLAIN_BYTES) -> bytes | None:
    """A body without its encoding; None where amem does not know it, it does not hold, or it comes to more than `most_bytes`."""
    if not encoding:
        return body
    if (found := decoder(encoding)) is None:
        return None
    pieces, size = [], 0
    try:
        for piece in found.feed(body):
            size += len(piece)
            if size > most_bytes:
                return None
            pieces.append(piece)
    except DecodeError:
        return None
    return b"".join(pieces)


def _compressor() -> Any:
    import zstandard

    return zstandard.ZstdCompressor(level=3)


def _at_once(data: bytes) -> bytes:
    """A short body compressed, by the thread's one compressor: setting one up takes five times as long as this."""
    if not hasattr(_kept, "compressor"):
        _kept.compressor = _compressor()
    packed: bytes = _kept.compressor.compress(data)
    return packed


def _digest(data: bytes) -> str:
    return "sha256-" + hashlib.sha256(data).hexdigest()


def read(folder: Path) -> list[dict[str, Any]]:
    """The kept calls of a session in order; a torn line is skipped."""
    calls = []
    try:
        lines = (folder / "calls.jsonl").read_bytes().splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            calls.append(json.loads(line))
        except ValueError:
            continue
    return calls


def body(folder: Path, name: str) -> bytes:
    """A body by the name that a line gives it, its credentials sealed.

    Raises FileNotFoundError; ValueError for a name that is none; IntegrityError for a body that is not what its name says.
    """
    import zstandard

    if not (name.startswith("sha256-") and len(name) == 71 and name[7:].isalnum()):
        raise ValueError(f"not the name of a body: {name[:80]!r}")
    path = folder / "blobs" / f"{name}.zst"
    unpacker: Any = zstandard.ZstdDecompressor().decompressobj()
    try:
        data: bytes = unpacker.decompress(path.read_bytes())
    except zstandard.ZstdError:
        data = b""
    if _digest(data) != name:
        raise IntegrityError(f"{path}: not what was kept under this name", hint="amem verify")
    return data
