"""Leave a note in the outbox, `$HOME/.amem/outbox`: what a session was doing before its context was compacted, or as it ended.

The launcher files the notes as handoffs when the session is over. A failure here must never break the harness: it leaves
a line in `$HOME/.amem/hook-errors.log` and the hook ends well.
"""

import json
import os
from collections.abc import Callable, Mapping
from time import gmtime, monotonic, sleep, strftime
from typing import Any

from amem.hooks import tail, turns

MAX_NOTE_BYTES = 64 << 10
MAX_NOTES = 50
COMPACTION, END, UNHOOKED = "pre-compact", "session-end", "unhooked"
EVERY_CALL = frozenset({"gemini"})
"""Harnesses that fire the compaction event before each model call (Gemini CLI 0.61.0, 2026-11): one note, rewritten, of last resort."""
BEHIND_S = {"copilot": 1.0}
"""Harnesses that write their transcript a moment after they fired the compaction event (Copilot CLI 1.0.102: 0.08 s, 2026-12): how long a
note waits for it at most, in seconds."""
_LOOK_S = 0.01
TITLES = {COMPACTION: "before its context was compacted", END: "at its end", UNHOOKED: "that left no note"}
OPENINGS = {
    COMPACTION: "Left by amem's hook: the harness no longer holds what came before.",
    END: "Left by amem's hook, not by the agent.",
    UNHOOKED: "Written by the launcher from the harness's transcript: neither the agent nor a hook left anything.",
}


def leave(kind: str, harness: str, read_event: Callable[[], bytes]) -> None:
    """Leave a note of `kind`. Never raises but for what ends a process."""
    home = os.environ.get("HOME", "/nonexistent")
    try:
        try:
            event = json.loads(read_event())
        except (ValueError, RecursionError):
            event = {}
        _leave(END if harness in EVERY_CALL else kind, harness, event if isinstance(event, dict) else {}, home)
    except Exception as error:  # the outer edge of this hook
        _complain(home, f"{kind} {harness}: {error.__class__.__name__}: {error}")


def unhooked(harness: str, path: str, found: list[turns.Turn], session: str) -> str:
    """The note that the launcher writes for a session that ended with none (Qwen headless, a SIGTERM). Pure; `path` is below the home."""
    return note(UNHOOKED, harness, {}, tail.of(path, found), session)


def note(kind: str, harness: str, event: Mapping[str, Any], found: tail.Tail | None, session: str) -> str:
    """The note as Markdown: a line that tells it from others, facts line by line, and the last turns fenced as data."""
    facts = {
        "kind": kind,
        "harness": harness,
        "trigger": event.get("trigger") or event.get("reason") or event.get("source"),
        "transcript": found.path if found else None,
        "turns": f"transcript:{session}#{found.first}-{found.last}" if found and found.first and session else None,
    }
    title = f"A session of {harness or 'a harness'} {TITLES[kind]}" + (f": {found.topic}" if found and found.topic else "")
    lines = [
        title,
        "",
        OPENINGS[kind],
        "",
        *(f"- {name}: {' '.join(value[:300].split())}" for name, value in facts.items() if isinstance(value, str)),
    ]
    if found and found.text:
        lines += ["", "The last turns:", "", fenced(found.text)]
    return "\n".join(lines) + "\n"


def _leave(kind: str, harness: str, event: Mapping[str, Any], home: str) -> None:
    found = None
    try:
        path = tail.named(event, home)
        if path is not None and kind == COMPACTION and harness in BEHIND_S:
            _await(path, BEHIND_S[harness])
        if path is not None and os.path.isfile(path):
            found = tail.read(harness, path, home)
    except (OSError, ValueError) as error:  # a note without the turns is better than none
        _complain(home, f"{kind} {harness}: the transcript: {error}")
    text = note(kind, harness, event, found, os.environ.get("AMEM_SESSION", ""))
    data = text.encode("utf-8", "replace")[:MAX_NOTE_BYTES]
    _put(f"{home}/.amem/outbox", kind, data)


def _await(path: str, seconds: float) -> None:
    """Until the transcript is written, but for no longer than that."""
    until, before = monotonic() + seconds, tail.state(path)
    while monotonic() < until and tail.state(path) == before:
        sleep(_LOOK_S)


def _put(folder: str, kind: str, data: bytes) -> None:
    """Put a note in place whole. A compaction has a note of its own; the end of a session has one, the last."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = f"{folder}/.{kind}-{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        if kind == END:
            os.replace(temporary, f"{folder}/{kind}-01.md")
            return
        for n in range(1, MAX_NOTES):
            try:
                os.link(temporary, f"{folder}/{kind}-{n:02d}.md")
            except FileExistsError:
                continue
            return
        raise OSError(f"{folder} holds {MAX_NOTES - 1} notes already")
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def fenced(text: str) -> str:
    """The text in a fence that nothing in it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _complain(home: str, why: str) -> None:
    """One line in the error log, if that can be had."""
    line = f"{strftime('%Y-%m-%dT%H:%M:%SZ', gmtime())} {why}\n".encode("utf-8", "replace")
    try:
        os.makedirs(f"{home}/.amem", mode=0o700, exist_ok=True)
        with open(
            os.open(f"{home}/.amem/hook-errors.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "ab"
        ) as file:
            file.write(line)
    except OSError:
        return
