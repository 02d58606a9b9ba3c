"""Send spans to an OpenTelemetry collector, where the environment names one; without one nothing is imported, started or sent.

OTLP/HTTP with protobuf, written here: the four messages that a span needs are sixty lines, and the SDK's exporter holds up the end of a
process for seconds when its collector is away (sdk 1.45.2, 2026-11). A collector that does not answer costs less than a second at exit
and never fails anything; spans that it did not take are dropped.
"""

import os
import struct
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from amem import __version__
from amem.typed import NamedTuple

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
MOST_WAITING, BATCH = 4096, 512
TIMEOUT_S, EXIT_S = 0.3, 0.6

Value = str | bool | int | float | Sequence[str]


class Span(NamedTuple):
    """One span. Instants are nanoseconds since the epoch; `trace` has 16 bytes."""

    name: str
    trace: bytes
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Value | None]
    """None is left out."""


class Target(NamedTuple):
    """Where spans go."""

    url: str
    headers: Mapping[str, str]
    resource: Mapping[str, Value]
    delay_s: float
    """Between two batches."""


def target(environment: Mapping[str, str]) -> Target | None:
    """What the usual variables say; None where they name no collector that speaks http."""
    whole, base = (environment.get(name, "").strip() for name in ENDPOINTS)
    url = whole or (base.rstrip("/") + "/v1/traces" if base else "")
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none"
    if off or not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
        return None
    headers = _pairs(environment.get("OTEL_EXPORTER_OTLP_HEADERS", "")) | _pairs(environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS", ""))
    own = {"service.name": "amem", "service.version": __version__}
    return Target(url, headers, {**_pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", "")), **own}, _delay_s(environment))


class Tracer:
    """Takes spans from any thread and sends them, many at once, from one of its own."""

    def __init__(self, where: Target) -> None:
        self._where = where
        self._waiting: deque[Span] = deque(maxlen=MOST_WAITING)
        self._wake = threading.Condition()  # guards everything below, and what waits
        self._ending = False
        self._thread: threading.Thread | None = None

    def add(self, span: Span) -> None:
        """Take a span; it is sent later. Of too many that wait, the oldest go."""
        with self._wake:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()
            self._waiting.append(span)

    def close(self) -> None:
        """Send what waits, within a bound."""
        with self._wake:
            self._ending, thread = True, self._thread
            self._wake.notify()
        if thread is not None:
            thread.join(EXIT_S)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._ending, self._where.delay_s)
                ending, spans = self._ending, [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH))]
            if spans:
                self._send(spans)
            elif ending:
                return

    def _send(self, spans: Iterable[Span]) -> None:
        import http.client

        found = urlsplit(self._where.url)
        kind = http.client.HTTPSConnection if found.scheme == "https" else http.client.HTTPConnection
        connection = kind(found.hostname or "", found.port, timeout=TIMEOUT_S)
        path = (found.path or "/") + (f"?{found.query}" if found.query else "")
        try:
            connection.request(
                "POST", path, encoded(spans, self._where.resource), {"Content-Type": "application/x-protobuf", **self._where.headers}
            )
            connection.getresponse().read()
        except (OSError, ValueError, http.client.HTTPException):
            return  # nothing here is worth a person's time but the collector, which they watch
        finally:
            connection.close()


_tracer: Tracer | None = None
_owner = 0
"""The process that `_tracer` works in: a fork has none of its thread."""


def tracer() -> Tracer | None:
    """This process's tracer; None where the environment names no collector."""
    global _tracer, _owner
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    if _owner != os.getpid():
        where = target(os.environ)
        _tracer, _owner = Tracer(where) if where is not None else None, os.getpid()
    return _tracer


def close() -> None:
    """The process is about to end: send what waits, within a bound."""
    if _tracer is not None and _owner == os.getpid():
        _tracer.close()


# ---- OTLP (opentelemetry-proto 1.9: collector/trace/v1, trace/v1, common/v1, resource/v1) ---------


def encoded(spans: Iterable[Span], resource: Mapping[str, Value]) -> bytes:
    """An ExportTraceServiceRequest."""
    scope = _field(1, _field(1, b"amem") + _field(2, __version__.encode()))
    body = scope + b"".join(_field(2, _span(span)) for span in spans)
    return _field(1, _field(1, _attributes(1, resource)) + _field(2, body))


def _span(span: Span) -> bytes:
    times = b"\x39" + struct.pack("<Q", span.start_ns) + b"\x41" + struct.pack("<Q", span.end_ns)
    head = _field(1, span.trace) + _field(2, os.urandom(8)) + _field(5, span.name.encode()) + b"\x30\x01"
    return head + times + _attributes(9, span.attributes)


def _attributes(number: int, values: Mapping[str, Value | None]) -> bytes:
    return b"".join(
        _field(number, _field(1, name.encode()) + _field(2, _value(value))) for name, value in values.items() if value is not None
    )


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return b"\x10" + _varint(value)
        case int():
            return b"\x18" + _varint(value & (1 << 64) - 1)
        case float():
            return b"\x21" + struct.pack("<d", value)
        case str():
            return _field(1, value.encode("utf-8", "replace"))
        case _:
            return _field(5, b"".join(_field(1, _value(one)) for one in value))


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`, percent-encoded, as W3C baggage writes it; what is not of that form is left out."""
    found = (part.partition("=") for part in text.split(","))
    return {name.strip(): unquote(value.strip()) for name, equals, value in found if equals and name.strip()}


def _delay_s(environment: Mapping[str, str]) -> float:
    try:
        return min(max(float(environment.get("OTEL_BSP_SCHEDULE_DELAY", "5000")), 1.0), 3_600_000.0) / 1000
    except ValueError:
        return 5.0
