"""Spans to a collector: a real OTLP/HTTP receiver, read with the protocol's own Python package where that is installed."""

import http.server
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amem import __version__, telemetry
from amem.ledger import spans
from amem.ledger.draft import Draft
from amem.ledger.store import Filed
from amem.ledger.task import Task
from amem.telemetry import Span, Target, Tracer, encoded, target
from tests.ledger.conftest import pg, pg_dsn, postgres_world, sqlite_world, world
from tests.ledger.worlds import World

__all__ = ["pg", "pg_dsn", "postgres_world", "sqlite_world", "world"]

DOM = "dom-me"


class Collector:
    """What came: path, headers and body of each request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._came: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """One came."""
        self._came.put((path, headers, body))

    def next(self) -> tuple[str, dict[str, str], bytes]:
        """The next that came, or comes: whoever sends waits but a moment, and may have gone on before it is taken here."""
        return self._came.get(timeout=60)


@pytest.fixture
def collector() -> Iterator[Collector]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a protobuf message, by the encoding's own definition (protobuf.dev, "Encoding")."""
    found: list[tuple[int, Any]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        match key & 7:
            case 0:
                found.append((key >> 3, varint()))
            case 1:
                found.append((key >> 3, int.from_bytes(data[at : at + 8], "little")))
                at += 8
            case 2:
                size = varint()
                found.append((key >> 3, data[at : at + size]))
                at += size
            case kind:
                raise AssertionError(kind)
    return found


def attributes(message: list[tuple[int, Any]], number: int) -> dict[str, Any]:
    made = {}
    for pair in (fields(data) for at, data in message if at == number):
        (kind, value), *_ = fields(dict(pair)[2])
        made[dict(pair)[1].decode()] = value.decode() if kind == 1 else value
    return made


def spans_in(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Names and attributes."""
    ((_, resource_spans),) = fields(body)
    scope_spans = dict(fields(resource_spans))[2]
    found = [fields(data) for at, data in fields(scope_spans) if at == 2]
    return [(dict(one)[5].decode(), attributes(one, 9)) for one in found]


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, "http://localhost:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example/otlp/"}, "https://c.example/otlp/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x"}, "http://b/x"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://a:4317"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_the_environment_names_the_collector(environment: dict[str, str], url: str | None) -> None:
    found = target(environment)
    assert (found.url if found else None) == url


def test_the_usual_variables_apply() -> None:
    found = target(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x, k = v,odd",
            "OTEL_RESOURCE_ATTRIBUTES": "team=a%2Cb,service.name=other", "OTEL_BSP_SCHEDULE_DELAY": "250",
        }
    )  # fmt: skip
    assert found is not None
    assert found.headers == {"authorization": "Bearer x", "k": "v"}
    assert found.resource == {"team": "a,b", "service.name": "amem", "service.version": __version__} and found.delay_s == 0.25


SPAN = Span("task.claimed", b"t" * 16, 5, 7, {"s": "é", "n": -1, "big": 1 << 40, "f": 2.5, "b": True, "list": ["x", "y"], "none": None})


def test_the_protocols_own_package_reads_what_is_sent() -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="pip install -r requirements/dev.txt")
    request = service.ExportTraceServiceRequest.FromString(encoded([SPAN], {"service.name": "amem"}))
    (found,) = request.resource_spans[0].scope_spans[0].spans
    assert (found.name, found.trace_id, len(found.span_id), found.kind) == ("task.claimed", b"t" * 16, 8, 1)
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (5, 7)
    values = {pair.key: pair.value for pair in found.attributes}
    assert (values["s"].string_value, values["n"].int_value, values["big"].int_value) == ("é", -1, 1 << 40)
    assert (values["f"].double_value, values["b"].bool_value) == (2.5, True)
    assert [one.string_value for one in values["list"].array_value.values] == ["x", "y"] and "none" not in values


def test_each_transition_of_a_task_is_a_span_on_either_backend(world: World, collector: Collector) -> None:
    tracer = Tracer(Target(collector.url + "/v1/traces", {"x-token": "t"}, {"service.name": "amem"}, 3600))
    with world.open(lambda event, task: tracer.add(spans.span(event, task))) as ledger:
        filed = ledger.create(Draft(domain=DOM, title="Secret plan", body="Secret words."), by="human:asf:you", admit=True)
        assert isinstance(filed, Filed)
        held = ledger.claim(DOM, by="agent:a", capabilities=("code",), session="ses-00000001")
        assert isinstance(held, Task)
        ledger.heartbeat(held.id, by="agent:a", fence=1, lease_ms=60_000)
        ledger.handoff_left(held.id, by="agent:a", fence=1, handoff="mem-me-0123456789ab")
        ledger.release(held.id, by="agent:a", fence=1)
        ledger.post(held.id, by="human:asf:you", text="Secret remark.")
        again = ledger.claim(DOM, by="agent:b", capabilities=("code",))
        assert isinstance(again, Task)
        ledger.complete(held.id, by="agent:b", fence=2, handoff="mem-me-0123456789ab")
        other = ledger.create(Draft(domain=DOM, title="Other"), by="human:asf:you")
        assert isinstance(other, Filed)
        ledger.invalidate(other.task.id, by="human:asf:you", why="the plan changed")
    tracer.close()
    path, headers, body = collector.next()
    assert (path, headers["content-type"], headers["x-token"]) == ("/v1/traces", "application/x-protobuf", "t")
    found = spans_in(body)
    kinds = "created admitted claimed heartbeat handoff_left released posted claimed completed created invalidated"
    assert [name for name, _ in found] == [f"task.{kind}" for kind in kinds.split()]
    claimed = found[2][1]
    assert (claimed["task.id"], claimed["task.status"], claimed["task.holder"], claimed["task.attempts"]) == (
        held.id,
        "claimed",
        "agent:a",
        1,
    )
    assert (claimed["task.domain"], claimed["task.creator"], claimed["task.priority"]) == (DOM, "human:asf:you", 3)
    assert found[-1][1]["task.reason"] == "the plan changed" and "task.reason" not in claimed
    assert b"Secret" not in body


def command(tmp_path: Path, *words: str, program: tuple[str, ...] = ("-m", "amem"), **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program, "--root", str(tmp_path / "root"), *words], cwd=Path(__file__).parents[1], text=True,
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


PATIENT = """
import runpy
from amem import telemetry
telemetry.TIMEOUT_S = telemetry.EXIT_S = 50.0  # a busy machine would lose what a collector is not given the time to take
runpy.run_module("amem", run_name="__main__", alter_sys=True)
"""


def test_a_command_sends_its_spans_before_it_ends(tmp_path: Path, collector: Collector) -> None:
    assert command(tmp_path, "init", "--owner", "human:asf:you").returncode == 0
    done = command(tmp_path, "task", "create", "T", "--admit", program=("-c", PATIENT), OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0, done.stderr
    _, _, body = collector.next()
    assert [name for name, _ in spans_in(body)] == ["task.created", "task.admitted"]


def test_a_collector_that_is_away_or_silent_fails_no_command(tmp_path: Path) -> None:
    import socket

    assert command(tmp_path, "init", "--owner", "human:asf:you").returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in ("http://127.0.0.1:1", f"http://127.0.0.1:{silent.getsockname()[1]}", "http://nowhere.invalid:4318"):
            done = command(tmp_path, "task", "create", "T", OTEL_EXPORTER_OTLP_ENDPOINT=url)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_nothing_is_imported_without_a_collector(tmp_path: Path) -> None:
    assert command(tmp_path, "init", "--owner", "human:asf:you").returncode == 0
    look = "import sys; from amem.cli.main import run; run(sys.argv[1:]); print('amem.telemetry' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", look, "--root", str(tmp_path / "root"), "task", "create", "T"], cwd=Path(__file__).parents[1], text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "False"


def test_the_end_of_a_process_waits_less_than_a_second_by_its_own_bounds() -> None:
    assert telemetry.EXIT_S + telemetry.TIMEOUT_S < 1.0
