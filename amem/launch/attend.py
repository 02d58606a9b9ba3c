"""Watch a session from the moment its harness runs: serve it, stop it when asked, settle it, and decide the exit code."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from amem import exits
from amem.errors import UnavailableError
from amem.harnesses.base import AnswerKind, Auth
from amem.launch.presence import STOP_SIGNAL, Presence, Stop
from amem.model.label import Label
from amem.settings.grants import size_text
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.launch.composition import Composition
    from amem.launch.outbox import Filed
    from amem.launch.plan import Asked
    from amem.launch.run import Prepared
    from amem.launch.served import Served
    from amem.memory.session import Session
    from amem.sandbox.run import Running
    from amem.sandbox.worktree import Change

LIMITS = {
    "memory": ("it used up its memory", "{memory} for each process and for all together; --max-memory"),
    "processes": ("it used up its processes", "{processes}; --max-procs"),
    "file_size": ("it wrote a file beyond the limit", "{file_size}; --max-file-size"),
}
"""By the word that is a session's `reason`: what happened, and the limit that it ran into."""
SILENCE, DISK_FULL = "upstream_silent", "disk_full"
HOW = {
    DISK_FULL: "the disk was full",
    "timeout": "its time limit", "stopped": "it was stopped", "empty_answer": "it printed no answer", SILENCE: "its provider fell silent",
    **{name: what for name, (what, _) in LIMITS.items()},
}  # fmt: skip
"""How a session ended, by its `reason`; its exit code says it where there is none of these."""
MAX_ANSWER_BYTES = 64 << 20
MAX_ERROR_BYTES = 4 << 10


class Outcome:
    """What came of a session; the command prints it. No data class: a launch would pay for the definition before its harness runs."""

    exit: int = 1
    harness_exit: int | None = None
    reason: str | None = None
    answer: str | None = None
    handoffs: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    plan_window: Mapping[str, float] = MappingProxyType({})
    """How much of its plan the harness says is used."""
    changed: "tuple[Change, ...]" = ()
    """What the session left that programs of the host may run or obey."""

    def __init__(self, *, session: str, label: Label) -> None:
        self.session = session
        self.label = label
        self.notes: list[str] = []
        """Sentences for the person."""
        self.errors = bytearray()
        """The end of what a headless harness wrote to stderr."""


class Ended(NamedTuple):
    """How a session counts: its exit code and, where that is not 0, the word for why."""

    exit: int
    reason: str | None = None


class Sitting(NamedTuple):
    """All that takes part in one session."""

    asked: "Asked"
    ready: "Prepared"
    work: "Composition"
    served: "Served"
    presence: Presence
    outcome: Outcome
    on_output: Callable[[int, bytes], None]
    began: Callable[["Running"], None] = lambda running: None
    """Called when the harness runs."""
    finish: Callable[[Ended], Ended] | None = None
    """Called once the harness has ended and its notes are filed, while the memory server still answers the launcher: how it counts
    after all."""


def attend(sitting: Sitting, running: "Running") -> None:
    """Serve the session while its harness runs, then settle everything and fill in the outcome.

    Raises UnavailableError when the egress failed: a harness without it can only hang, so it was ended.
    """
    asked, ready, outcome, work = sitting.asked, sitting.ready, sitting.outcome, sitting.work
    listener_fd, running.listener_fd = running.listener_fd, -1
    sitting.served.listen(listener_fd, running.kill)
    sitting.served.start()
    kept = bytearray()
    sitting.began(running)
    began, killed_before = time.monotonic(), _killed_for_memory()
    with stoppable(running, work, sitting.presence):
        code = running.wait(None if asked.interactive else _output(sitting, kept), ready.plan.timeout_s or None)
    full = sitting.presence.make_room()
    if full:
        outcome.notes.append(f"the disk of {work.root.path} is full (df -h; df -i); what came of the session may not all be kept")
    late = code == exits.TIMED_OUT and 0 < ready.plan.timeout_s <= time.monotonic() - began
    if sitting.finish is None:
        _end_server(sitting)
    outcome.harness_exit = code
    if running.exec_errno:
        outcome.notes.append(_not_started(ready, running.exec_errno))
    if asked.prompt is not None:
        _answer(sitting, bytes(kept))
    filed = work.settle()
    _left(outcome, work.session, filed)
    ended = _conclude(asked, outcome, code, late_s=ready.plan.timeout_s if late else 0.0, stopped=work.stopped, silent=work.silent)
    if ended.reason == "harness" and (limit := _limit(code, running, killed_before)) is not None:
        outcome.notes.append(_ran_into(limit, ready))
        ended = ended._replace(reason=limit)
    elif ended.reason == "harness" and full:
        ended = ended._replace(reason=DISK_FULL)
    if sitting.finish is not None:
        ended = sitting.finish(ended)
        _left(outcome, work.session, filed._replace(problems=()))
        _end_server(sitting)
    elif not running.exec_errno and _unnoted(asked, outcome, ended):
        _left(outcome, work.session, work.leave(undone(ready, outcome, how(ended, code))))
    _account(sitting)
    outcome.exit, outcome.reason = ended


def _not_started(ready: "Prepared", number: int) -> str:
    said = f"{ready.spec.argv[0]} was not started inside: {os.strerror(number)}"
    if number != errno.ENOENT or not ready.plan.backend.confined:
        return said
    return f"{said}; it, or the interpreter that its first line names, is not among what a session is shown: --ro shows its folder"


def _output(sitting: Sitting, kept: bytearray) -> Callable[[int, bytes], None]:
    """What becomes of each piece that a headless harness prints: its answer and the end of its errors are kept, plain text is passed on."""
    outcome, plain = sitting.outcome, sitting.ready.launch.answer is AnswerKind.TEXT

    def output(stream: int, data: bytes) -> None:
        if stream == 1 and len(kept) < MAX_ANSWER_BYTES:
            kept.extend(data)
        if stream == 2:
            outcome.errors.extend(data)
            del outcome.errors[:-MAX_ERROR_BYTES]
        if stream == 2 or plain:
            sitting.on_output(stream, data)

    return output


def _answer(sitting: Sitting, printed: bytes) -> None:
    """Read the answer from what a headless harness printed, and pass on one that came in an envelope."""
    from amem.harnesses import answer

    ready, outcome = sitting.ready, sitting.outcome
    said = answer.read(ready.launch.answer, printed)
    outcome.answer = said.text
    if said.error:
        outcome.notes.append(f"{ready.plan.harness.name}: {said.error}")
        outcome.errors.extend(f"\n{said.error}".encode()[:MAX_ERROR_BYTES])
    if ready.launch.answer is not AnswerKind.TEXT and said.text:
        sitting.on_output(1, said.text.encode() + b"\n")


def _account(sitting: Sitting) -> None:
    """What is left to settle and to say once it stands how the session ended: its login, its usage, its transcript, its label."""
    ready, outcome, work = sitting.ready, sitting.outcome, sitting.work
    if ready.login is not None:
        from amem.launch.login import carry_home

        outcome.notes += filter(None, [carry_home(ready.login, ready.home, work.stranger)])
    if ready.plan.auth is Auth.SUBSCRIPTION:
        _count(sitting)
    outcome.notes += filter(None, [work.unguarded(), work.keep_transcript()])
    outcome.notes += _alarms(sitting)
    outcome.label = work.session.label if work.session else ready.plan.label


def how(ended: Ended, code: int | None) -> str:
    """How a session ended that did not end well, in a few words."""
    return HOW.get(ended.reason or "", f"exit code {code}")


def undone(ready: "Prepared", outcome: Outcome, how: str) -> str:
    """The launcher's note on a session that ended before its work was done."""
    from amem.launch import leftover

    errors = bytes(outcome.errors).decode("utf-8", "replace").strip()
    return leftover.handoff(
        ready.plan.harness, ready.home, ready.id, how=how, answer=outcome.answer or "", errors=errors, noted=bool(outcome.handoffs)
    )  # fmt: skip


def _end_server(sitting: Sitting) -> None:
    """Let the server's thread settle what is open. Raises UnavailableError when it failed meanwhile."""
    if not sitting.served.stop():
        sitting.outcome.notes.append("the egress did not settle in time; calls that were open are recorded as partial")
    failure = sitting.served.failure
    if failure is not None:
        raise UnavailableError(f"the egress failed: {failure}", hint="amem doctor") from failure


def _count(sitting: Sitting) -> None:
    """Keep what the harness says it used, where its login's tunnel showed nothing of it."""
    from amem.launch import counted
    from amem.settings import database

    found, session, outcome = counted.read(sitting.ready), sitting.work.session, sitting.outcome
    outcome.plan_window = found.window
    outcome.notes += filter(None, [counted.sentence(found.window)])
    try:
        counted.keep(sitting.work.root, sitting.ready, session.task if session else None, found)
    except database.Error as error:
        outcome.notes.append(f"what the harness says it used could not be kept: {error}")


def _alarms(sitting: Sitting) -> list[str]:
    """What a person should know of who answered the session's calls."""
    from amem.egress import identity, reading

    return [identity.sentence(*found) for found in reading.alarms(sitting.work.root, session=sitting.ready.id)]


def _left(outcome: Outcome, session: "Session | None", filed: "Filed") -> None:
    """What the session and its hooks put into the record."""
    own = tuple(session.handoffs) if session else ()
    outcome.handoffs = (*own, *(id for id in filed.handoffs if id not in own))
    outcome.entries = tuple(id for id in session.entries if id not in outcome.handoffs) if session else ()
    outcome.held = tuple(dict.fromkeys((*(session.held if session else ()), *filed.held)))
    outcome.notes += filed.problems


def _unnoted(asked: "Asked", outcome: Outcome, ended: Ended) -> bool:
    """Whether a headless run failed before there was anything that a hook or the launcher could make a note of."""
    failed = ended.exit != 0 and ended.reason != "no_handoff"
    return failed and asked.prompt is not None and not asked.no_handoff and not outcome.handoffs and not outcome.held


def _conclude(asked: "Asked", outcome: Outcome, code: int, *, late_s: float, stopped: str | None, silent: str | None) -> Ended:
    """The exit code, in this order: the time limit, the harness's own, an empty answer, no handoff, 0."""
    if late_s:
        outcome.notes.append(f"the session was ended by its time limit ({late_s:g} s; --timeout)")
        return Ended(exits.TIMED_OUT, "timeout")
    if stopped is not None:
        outcome.notes.append(f"the session was stopped: {stopped}")
        return Ended(code, "stopped")
    if silent is not None:
        outcome.notes.append(silent)
    if code != 0:
        return Ended(code, SILENCE if silent is not None else "harness")
    if asked.prompt is not None and not (outcome.answer or "").strip():
        if silent is not None:
            return Ended(exits.ERROR, SILENCE)
        outcome.notes.append("the harness ended well but printed no answer; that is not taken for success")
        return Ended(exits.ERROR, "empty_answer")
    if asked.prompt is not None and not asked.no_handoff and not outcome.handoffs:
        outcome.notes.append("the session left no handoff, so the next one starts from nothing; --no-handoff if that is intended")
        return Ended(exits.NO_HANDOFF, "no_handoff")
    return Ended(0)


def _limit(code: int, running: "Running", killed_before: int) -> str | None:
    """The limit that a harness which failed had run into; None where there is no sign of one.

    A program that is told "no" by the kernel and ends in its own way (a failed allocation, EFBIG) leaves no such sign.
    """
    import signal

    if running.limit is not None:
        return running.limit
    if code == 128 + signal.SIGXFSZ:
        return "file_size"
    return "memory" if code == 128 + signal.SIGKILL and _killed_for_memory() > killed_before else None


def _ran_into(limit: str, ready: "Prepared") -> str:
    limits, (what, bound) = ready.plan.limits, LIMITS[limit]
    sizes = {"memory": size_text(limits.memory_bytes), "file_size": size_text(limits.file_size_bytes)}
    return f"the session ended because {what} ({bound.format(processes=limits.processes, **sizes)})"


def _killed_for_memory() -> int:
    """How many processes of this machine the kernel has killed for memory, in a cgroup or without."""
    try:
        with open("/proc/vmstat", encoding="ascii") as counters:
            return next((int(line.split()[1]) for line in counters if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


@contextmanager
def stoppable(running: "Running", work: "Composition", presence: Presence) -> Iterator[None]:
    """While this lasts, `amem session stop` works: no more calls leave, SIGTERM to the harness, then the end of everything."""
    import signal  # here and below: with its many names, a launch need not wait for it

    timers: list[threading.Timer] = []

    def stop(wanted: Stop) -> None:
        if work.stopped is not None:
            return
        work.stopped = wanted.why or f"by {wanted.by}"
        running.signal(signal.SIGTERM)
        timers.append(threading.Timer(wanted.grace_s, running.kill))
        timers[-1].daemon = True
        timers[-1].start()

    # Without a word of what is wanted, the disk had no room for one.
    before = signal.signal(STOP_SIGNAL, lambda number, frame: stop(presence.asked() or Stop(by="amem session stop")))
    if (wanted := presence.asked()) is not None:  # it may have been asked for before anybody listened
        stop(wanted)
    try:
        yield
    finally:
        signal.signal(STOP_SIGNAL, before)
        for timer in timers:
            timer.cancel()
