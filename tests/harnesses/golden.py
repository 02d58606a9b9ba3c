"""Read the golden cases: facts of a launch, and all that must come out of it."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amem.harnesses.base import Auth, Launch, LaunchFacts

CASES = Path(__file__).parent / "cases"
DEFAULTS = {
    "egress_url": "http://127.0.0.1:9101",
    "session": "ses-0123abcd",
    "workdir": "/r/tree",
    "placeholder": "placeholder-0123456789abcdef",
}


@dataclass(frozen=True)
class Case:
    """One golden case."""

    facts: LaunchFacts
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, Any]


def cases(harness: str) -> list[str]:
    """The names of a harness's cases."""
    return sorted(path.stem for path in (CASES / harness).glob("*.json"))


def load(harness: str, name: str) -> Case:
    """One case, with what it is like applied."""
    raw = _raw(harness, name)
    facts = DEFAULTS | {key: tuple(value) if isinstance(value, list) else value for key, value in raw["facts"].items()}
    return Case(
        facts=LaunchFacts(**(facts | {"auth": Auth(facts["auth"])})), argv=tuple(raw["argv"]), env=raw["env"], files=raw["files"]
    )  # fmt: skip


def readable(launch: Launch) -> dict[str, Any]:
    """The files of a launch as the values they hold, so that a difference can be read."""
    return {path: _value(path, content.decode()) for path, content in launch.files.items()}


def _value(path: str, text: str) -> Any:
    if path.endswith(".json"):
        return json.loads(text)
    return tomllib.loads(text) if path.endswith(".toml") else text


def _raw(harness: str, name: str) -> Any:
    raw = json.loads((CASES / harness / f"{name}.json").read_text(encoding="utf-8"))
    base = raw.pop("like", None)
    return raw if base is None else _patch(_raw(harness, base), raw)


def _patch(target: Any, patch: Any) -> Any:
    """RFC 7396, JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _patch(merged.get(key), value)
    return merged
