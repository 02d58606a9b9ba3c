"""How adapters write configuration files: JSON, TOML and the hook table most harnesses share."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from amem.harnesses.base import Hook, LaunchFacts
from amem.typed import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_json(value: Mapping[str, Any]) -> bytes:
    """A JSON document, indented, with a newline at its end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def as_toml(value: Mapping[str, Any]) -> bytes:
    """A TOML document of strings, integers, booleans, lists and tables."""
    lines: list[str] = []
    _table(value, (), lines)
    return ("\n".join(lines).lstrip("\n") + "\n").encode()


def command(facts: LaunchFacts, harness: str, hook: Hook) -> str:
    """The shell command of a hook. The harness is named, because not every event says whose it is."""
    return shlex.join((*facts.hook, "hook", hook.kind, harness))


def asset(name: str, facts: LaunchFacts) -> bytes:
    """A plugin or extension from `assets`, package data, with the hook program's command put in."""
    text = (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")
    return text.replace("@HOOK@", json.dumps(facts.hook)).encode()


def hook_table(facts: LaunchFacts, harness: str, hooks: Iterable[Hook], *, per_second: int = 1) -> dict[str, Any]:
    """The `hooks` object in Claude Code's shape. `per_second` is 1000 where timeouts are in milliseconds."""
    table: dict[str, Any] = {}
    for hook in hooks:
        entry = {"type": "command", "command": command(facts, harness, hook), "timeout": hook.timeout_s * per_second}
        table[hook.event] = [{**({} if hook.matcher is None else {"matcher": hook.matcher}), "hooks": [entry]}]
    return table


def _table(value: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    plain = {key: item for key, item in value.items() if not isinstance(item, Mapping)}
    if path and (plain or not value):
        lines += ["", f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_scalar(item)}" for key, item in plain.items()]
    for key, item in value.items():
        if isinstance(item, Mapping):
            _table(item, (*path, key), lines)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _scalar(key)


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    # A TOML basic string is a JSON string, but for DEL, which TOML wants escaped too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
