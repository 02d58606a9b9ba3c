"""Keep decision contexts: each call's request as it left and its answer as it came, beside the session's domain.

Owns `record/<domain>/.contexts/<session>/`: `calls.jsonl`, one line a call, and `blobs/`, each body once under its digest,
compressed. Written by a thread of its own, an answer piece by piece, so that neither the loop nor memory feels a long one.
Never indexed and never served to a session; a context that cannot be kept is said on the line of the next, and stops no call.
"""

import hashlib
import json
import logging
import os
import queue
import threading
from collections.abc import Callable
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
_SHORT_BYTES = 1 << 16
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
        self._blobs = folder / "blobs"
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

    def end(self, context: Context) -> None:
        """The call is over: keep it."""
        self._queue.put(("end", context, b""))

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._queue.put(None)
        self._thread.join()
        for answer in self._open.values():
            answer.drop()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            what, context, piece = item
            try:
                if what == "piece":
                    self._written += len(piece)
                    self._answer(context).write(piece)
                else:
                    self._keep(context)
            except (OSError, IntegrityError):
                self._missed += 1
                _log.exception("the context of %s could not be kept", context.call)
                if (answer := self._open.pop(context.call, None)) is not None:
                    answer.drop()

    def _answer(self, context: Context) -> "_Answer":
        if context.call not in self._open:
            self._blobs.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._open[context.call] = _Answer(self._blobs / f".{context.call}.part")
        return self._open[context.call]

    def _keep(self, context: Context) -> None:
        answer = self._open.pop(context.call, None)
        if answer is not None and context.dropped:
            answer.drop()
            answer = None
        encoding = context.content_encoding
        tools = self._tools(context, answer)
        read = plain(bytes(answer.head), encoding) if answer is not None and answer.head is not None else None
        if answer is not None and read is not None and (masked := self._mask(read)) != read:  # what was compressed is kept as it reads
            answer.drop()
            answer, encoding = _Answer(self._blobs / f".{context.call}.part"), ""
            answer.write(masked)
        response = answer.finish(self._blobs) if answer is not None else None
        self._blobs.mkdir(parents=True, exist_ok=True, mode=0o700)
        sent = self._mask(context.request)
        request = _digest(sent)
        if not (self._blobs / f"{request}.zst").exists():
            whole = _Answer(self._blobs / f".{context.call}.request.part")
            whole.write(sent)
            whole.finish(self._blobs)
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
        text = json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False, separators=(",", ":"))
        descriptor = os.open(self._folder / "calls.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, text.encode() + b"\n")
        finally:
            os.close(descriptor)
        self._missed = 0

    def _tools(self, context: Context, answer: "_Answer | None") -> list[str]:
        if answer is None or answer.head is None:
            return []
        return tools_asked(context.dialect, bytes(answer.head), context.content_encoding)


class _Answer:
    """A body being written: compressed, into a part file that gets its digest as its name; a short one is written at its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._packer: Any = None
        self._hash = hashlib.sha256()
        self.head: bytearray | None = bytearray()
        """The whole body while it is short enough to be parsed; None for a long one."""

    def write(self, piece: bytes) -> None:
        self._hash.update(piece)
        if self.head is not None:
            self.head += piece
        if self._file is not None:
            self._file.write(self._packer.compress(piece))
        elif self.head is not None and len(self.head) > _SHORT_BYTES:
            # A compressor of its own: the bodies under way take turns.
            self._file, self._packer = self._opened(), _compressor().compressobj()
            self._file.write(self._packer.compress(self.head))
        if self.head is not None and len(self.head) > _PARSED_BYTES:
            self.head = None

    def finish(self, folder: Path) -> str:
        """Close the file under its digest, which is returned."""
        if self._file is None:
            assert self.head is not None
            self._file = self._opened()
            self._file.write(_at_once(bytes(self.head)))
        else:
            self._file.write(self._packer.flush())
        self._file.close()
        name = "sha256-" + self._hash.hexdigest()
        os.replace(self._path, folder / f"{name}.zst")
        return name

    def drop(self) -> None:
        if self._file is not None:
            self._file.close()
        self._path.unlink(missing_ok=True)

    def _opened(self) -> BinaryIO:
        return open(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "wb")


def plain(body: bytes, encoding: str) -> bytes | None:
    """A body without its encoding; None where amem does not know it or it does not hold."""
    if not encoding:
        return body
    found = decoder(encoding)
    try:
        return b"".join(found.feed(body)) if found is not None else None
    except DecodeError:
        return None


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
