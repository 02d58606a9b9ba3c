"""Run one launch: the order of everything, and the exit code.

Composition root of a session. The stage process exists already. Settings and plan come first, then the sandbox; only when the
harness runs are the packages of egress and memory server imported, in their own thread.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import amem
from amem.egress import meter
from amem.errors import SandboxError, UnavailableError
from amem.harnesses import answer, base
from amem.harnesses.base import AnswerKind, LaunchFacts
from amem.launch.inside import memory_dir
from amem.launch.plan import PORT, Asked, Plan, plan
from amem.launch.served import Served
from amem.model import clock, ids
from amem.model.label import Label
from amem.sandbox import host, spec
from amem.sandbox.plan import plan as sandbox_plan

if TYPE_CHECKING:
    from amem.launch.outbox import Filed
    from amem.memory.session import Session
    from amem.sandbox.child import Stage
    from amem.sandbox.run import Running
    from amem.settings.credentials import Credentials
    from amem.settings.grants import Grants
    from amem.settings.root import Root

MAX_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a launch works with."""

    root: "Root"
    grants: "Grants"
    credentials: "Credentials"
    environment: Mapping[str, str]
    domain: str


@dataclass(kw_only=True)
class Outcome:
    """What came of a session; the command prints it."""

    session: str
    exit: int
    harness_exit: int | None = None
    reason: str | None = None
    answer: str | None = None
    label: Label
    handoffs: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    """Sentences for the person."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A session that is ready to start: everything that can be refused was."""

    id: str
    plan: Plan
    launch: base.Launch
    spec: spec.SandboxSpec
    home: str


def prepare(asked: Asked, settings: Settings) -> Prepared:
    """Resolve a launch into arguments, files and a sandbox. Makes nothing on disk. Raises AmemError."""
    found = plan(asked, settings.root, settings.grants, settings.credentials, settings.environment, settings.domain)
    session = asked.session_id or ids.draw("session")
    args = asked.args
    if found.harness.name == "command":
        args = (*args[1:], *([asked.prompt] if asked.prompt is not None else []))
    facts = LaunchFacts(
        auth=found.auth,
        destination=found.destination,
        program=found.program.argv,
        egress_url=f"http://127.0.0.1:{PORT}",
        session=session,
        workdir=str(found.workdir),
        placeholder=f"amem-{session}",
        model=found.model,
        prompt=asked.prompt,
        args=args,
    )
    launch = base.launch(found.harness, facts)
    home = str(settings.root.homes / session)
    inside = spec.SandboxSpec(
        argv=launch.argv,
        env=tuple({**spec.base_env(settings.environment, facts.home, "agent"), **launch.env}.items()),
        workdir=str(found.workdir),
        cwd=str(found.workdir),
        home=home,
        home_inside=facts.home,
        port=PORT,
        memory_dir=None,
        binds=_binds(found),
        interactive=asked.interactive,
        limits=found.limits,
        protect=tuple(name for name in spec.PROTECT if not (asked.git_config_writable and name.startswith(".git/config"))),
    )
    return Prepared(id=session, plan=found, launch=launch, spec=inside, home=home)


def _binds(found: Plan) -> tuple[spec.Bind, ...]:
    """The interpreter that runs the hooks, the harness, what the owner added, and amem itself where it lies in the tree."""
    package = os.path.dirname(os.path.realpath(amem.__file__))
    binds = [
        *spec.interpreter_binds(sys.executable, sys.prefix, sys.base_prefix),
        *(spec.Bind(root, root) for root in found.program.roots),
        *found.binds,
        *spec.own_paths(str(found.workdir), package, sys.prefix),
    ]
    return tuple({bind.target: bind for bind in binds}.values())


def launch(
    asked: Asked, settings: Settings, stage: "Stage", on_output: Callable[[int, bytes], None], note: Callable[[str], None]
) -> Outcome:
    """Run a session from start to end. Raises AmemError when it could not start; what it started is then gone."""
    ready = prepare(asked, settings)
    _write_home(ready)
    sandbox = ready.spec._replace(memory_dir=str(memory_dir(settings.root)))
    meter.start_session(settings.root, _row(ready, settings))
    outcome = Outcome(session=ready.id, exit=1, label=ready.plan.label)
    try:
        running = stage.start(sandbox, sandbox_plan(sandbox, host.facts(sandbox)))
        for warning in running.warnings:
            note(warning)
        _attend(asked, settings, ready, running, outcome, on_output)
    except SandboxError as error:
        outcome.exit, outcome.reason = error.exit_code, error.message
        raise
    finally:
        meter.end_session(settings.root, ready.id, exit=outcome.exit, reason=outcome.reason, ended_at=clock.stamp(clock.now()))
    return outcome


def _write_home(ready: Prepared) -> None:
    """Make the private home with the harness's files, 0600. A session id that is taken is refused by the directory."""
    try:
        os.mkdir(ready.home, 0o700)
    except FileExistsError as error:
        raise UnavailableError(f"the session {ready.id} exists already", hint="leave --session-id out") from error
    for name, data in {**ready.launch.files, ".amem/outbox/.keep": b""}.items():
        path = os.path.join(ready.home, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)


def _row(ready: Prepared, settings: Settings) -> dict[str, Any]:
    """The session as `usage.sqlite` keeps it."""
    found = ready.plan
    return {
        "id": ready.id, "harness": found.harness.name, "auth": found.auth, "destination": found.destination, "model": found.model,
        "backend": "namespaces", "label": found.label, "ceiling": found.ceiling, "handling": found.handling, "domain": settings.domain,
        "workdir": str(found.workdir), "pid": os.getpid(), "started_at": clock.stamp(clock.now()),
    }  # fmt: skip


def _attend(
    asked: Asked, settings: Settings, ready: Prepared, running: "Running", outcome: Outcome, on_output: Callable[[int, bytes], None]
) -> None:
    """Serve the session while its harness runs, then settle everything and decide the exit code."""
    from amem.launch.composition import Composition

    work = Composition(ready, settings)
    failures: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failures.append(error)
        running.kill()  # a harness without its egress can only hang

    served = Served(running.listener_fd, work.serve, failed)
    running.listener_fd = -1
    served.start()
    prompted = asked.prompt is not None
    kept = bytearray()

    def output(stream: int, data: bytes) -> None:
        if stream == 1 and len(kept) < MAX_ANSWER_BYTES:
            kept.extend(data)
        if stream == 2 or ready.launch.answer is AnswerKind.TEXT:
            on_output(stream, data)

    code = running.wait(None if asked.interactive else output, ready.plan.timeout_s or None)
    if not served.stop():
        outcome.notes.append("the egress did not settle in time; calls that were open are recorded as partial")
    if failures:
        raise UnavailableError(f"the egress failed: {failures[0]}", hint="amem doctor") from failures[0]
    filed = work.settle()
    outcome.harness_exit = code
    outcome.label = work.session.label if work.session else ready.plan.label
    if prompted:
        said = answer.read(ready.launch.answer, bytes(kept))
        outcome.answer = said.text
        if said.error:
            outcome.notes.append(f"{ready.plan.harness.name}: {said.error}")
        if ready.launch.answer is not AnswerKind.TEXT and said.text:
            on_output(1, said.text.encode() + b"\n")
    _conclude(asked, outcome, work.session, filed, code, timed_out=code == 124 and bool(ready.plan.timeout_s))


def _conclude(asked: Asked, outcome: Outcome, session: "Session | None", filed: "Filed", code: int, *, timed_out: bool) -> None:
    """The exit code, in the order: timeout, the harness's own, an empty answer, no handoff, 0."""
    own = tuple(session.handoffs) if session else ()
    outcome.handoffs = (*own, *(id for id in filed.handoffs if id not in own))
    outcome.entries = tuple(id for id in session.entries if id not in outcome.handoffs) if session else ()
    outcome.held = (*(session.held if session else ()), *filed.held)
    outcome.notes += filed.problems
    if timed_out:
        outcome.exit, outcome.reason = 124, "timeout"
        outcome.notes.append("the session was ended by its time limit")
    elif code != 0:
        outcome.exit, outcome.reason = code, "harness"
    elif asked.prompt is not None and not (outcome.answer or "").strip():
        outcome.exit, outcome.reason = 1, "empty_answer"
        outcome.notes.append("the harness ended well but printed no answer; that is not taken for success")
    elif asked.prompt is not None and not asked.no_handoff and not outcome.handoffs:
        outcome.exit, outcome.reason = 4, "no_handoff"
        outcome.notes.append("the session left no handoff, so the next one starts from nothing; --no-handoff if that is intended")
    else:
        outcome.exit = 0
