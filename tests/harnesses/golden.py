"""Read the golden cases: facts of a launch, and all that must come out of it."""

import json
import re
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amem import harnesses
from amem.harnesses.base import Auth, Launch, LaunchFacts

CASES = Path(__file__).parent / "cases"
ASSETS = Path(harnesses.__file__).parent / "assets"
UUID = str(uuid.uuid5(uuid.NAMESPACE_URL, "amem:ses-0123abcd"))
"""`@UUID@` in a case: the id drawn from the session's."""
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
    raw["argv"] = [UUID if word == "@UUID@" else word for word in raw["argv"]]
    raw["files"] = {path: _asset(value) if isinstance(value, str) else value for path, value in raw["files"].items()}
    facts = DEFAULTS | {key: tuple(value) if isinstance(value, list) else value for key, value in raw["facts"].items()}
    return Case(
        facts=LaunchFacts(**(facts | {"auth": Auth(facts["auth"])})), argv=tuple(raw["argv"]), env=raw["env"], files=raw["files"]
    )  # fmt: skip


def readable(launch: Launch) -> dict[str, Any]:
    """The files of a launch as the values they hold, so that a difference can be read."""
    return {path: _value(path, content.decode()) for path, content in launch.files.items()}


def _asset(text: str) -> str:
    """`@ASSET name@` stands for that file of `harnesses/assets`, its one blank filled."""
    found = re.fullmatch(r"@ASSET ([a-z.]+)@", text)
    return text if found is None else (ASSETS / found[1]).read_text(encoding="utf-8").replace("@HOOK@", '["/opt/memory/memory"]')


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
