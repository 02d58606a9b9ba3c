"""What a module of Rego says by its syntax tree and its text, without an evaluation of it.

The tree is as regorus gives it (`engine.syntax`). What cannot be told is told as everything: a form that is not known asks for nothing,
sees all of the input and calls `?`. Pure.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from amem.policy.request import Request
from amem.typed import Any, NamedTuple

NESTING_LIMIT = 2048
"""Of `nesting`: regorus' parser takes up to 80 µs for each (0.13, ten brackets in each other), with the GIL held."""
_INPUT = re.compile(r"\binput\b(?:\.([A-Za-z_]\w*))?", re.ASCII)


class Outline(NamedTuple):
    """What a module defines and calls, by its syntax."""

    rules: frozenset[str]
    """The names it defines; a name with a path is its first part."""
    calls: frozenset[str]
    denials: frozenset[str | None]
    """The policy that each head of `deny` names; None for a head of another form."""


def outline(tree: Any) -> Outline:
    """The outline of a module, by its tree."""
    heads = [_head(rule) for rule in tree["rules"]]
    denials = frozenset(policy for name, policy in heads if name == "deny")
    return Outline(frozenset(name for name, _ in heads), frozenset(_calls(tree["rules"])), denials)


_Test = tuple[str, Callable[[str, Any], bool], Any]
"""A field of the input, and what must hold of it beside what."""
Guard = tuple[_Test, ...]


class Concern(NamedTuple):
    """What one denial of a rule asks for first: of a request that does not have it, it neither holds nor errs."""

    asked: Mapping[str, str]
    """What `action` and `domain` must be: both, one or none of them."""
    guard: Guard
    """The other tests."""


def concerns(tree: Any) -> tuple[Concern, ...]:
    """What each denial of a module asks for in its first statements, as far as they are tests that `_TESTS` knows."""
    return tuple(
        _first_asked(body) for rule in tree["rules"] if _head(rule)[0] == "deny" for body in rule.get("Spec", {}).get("bodies") or [{}]
    )


def _first_asked(body: Any) -> Concern:
    asked: dict[str, str] = {}
    guard: list[_Test] = []
    for statement in body.get("query", {}).get("stmts", ()):
        found = None if statement.get("with_mods") else _tested(statement["literal"].get("Expr", {}).get("expr", {}))
        if found is None:
            break
        field, test, value = found
        if test is operator.eq and field in ("action", "domain") and not guard:
            if asked.setdefault(field, value) != value:
                break
        else:
            guard.append(found)
    return Concern(asked, tuple(guard))


def _tested(expr: Any) -> _Test | None:
    """The field that an expression looks at, and how, when it is a test of one field against words that are written out."""
    match expr:
        case {"BoolExpr": {"op": str(name), "lhs": left, "rhs": {"String": {"value": str(word)}}}}:
            wanted: Any = word
        case {"Call": {"fcn": called, "params": [left, {"String": {"value": str(word)}}]}}:
            name, wanted = _path(called), word
        case {"Membership": {"key": None, "value": left, "collection": {"Set": {"items": items}}}}:
            name, wanted = "in", [item["String"]["value"] for item in items if "String" in item]
            if len(wanted) < len(items):
                return None
        case _:
            return None
    place, _, field = _path(left).partition(".")
    if name not in _TESTS or place != "input" or not field.isidentifier() or field == "grant":
        return None
    return field, _TESTS[name], wanted


_TESTS: Mapping[str, Callable[[str, Any], bool]] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "in": lambda value, words: value in words,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": operator.contains,
}


def may_deny(guards: Iterable[Guard], request: Request) -> bool:
    """Whether what any of the denials asks for first is there. Where a value is no word its rule shall say, which may err."""
    asked = {**request.input, "action": request.action}
    for guard in guards:
        for field, test, wanted in guard:
            value = asked.get(field)
            if not isinstance(value, str) and field in asked:
                return True
            if value is None or not test(value, wanted):
                break
        else:
            return True
    return False


def fields_of(text: str) -> frozenset[str] | None:
    """The fields of `input` that a module may read, by its text: every mention counts; None where one does not name a field."""
    found = _INPUT.findall(text)
    return None if "" in found else frozenset(found)


def sees(texts: Iterable[str]) -> tuple[str, ...] | None:
    """The fields of `input` that any of some modules may read, in order; the action is always one. None is all."""
    found = [fields_of(text) for text in texts]
    return None if None in found else tuple(sorted({"action"}.union(*(each for each in found if each is not None))))


def _head(rule: Any) -> tuple[str, str | None]:
    """The name a rule defines, and the policy that its member names when it adds an object to a set."""
    kind, body = next(iter(rule.items()))
    if kind != "Spec":  # `default name := …`
        return _path(body.get("refr")).split(".")[0], None
    shape, head = next(iter(body["head"].items()))
    name = _path(head.get("refr")).split(".")[0]
    if shape != "Set" or _path(head["refr"]) != name or not isinstance(head.get("key"), dict):
        return name, None
    fields = head["key"].get("Object", {}).get("fields", [])
    written = [(key.get("String", {}).get("value"), value.get("String", {}).get("value")) for _, key, value in fields]
    named = [value for key, value in written if key in ("policy", None)]  # a key that is worked out may come to be any
    return name, named[0] if len(named) == 1 else None


def _calls(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "fcn" in node:
            yield _path(node["fcn"])
        for below in node.values():
            yield from _calls(below)
    elif isinstance(node, list):
        for below in node:
            yield from _calls(below)


def _path(reference: Any) -> str:
    """A name with its path, `net.cidr_contains`; `?` for a reference of another form."""
    match reference:
        case {"Var": {"value": str(name)}}:
            return name
        case {"RefDot": {"refr": below, "field": [_, str(field)]}}:
            return f"{_path(below)}.{field}"
        case _:
            return "?"


def nesting(text: str) -> int:
    """What brackets in brackets cost the parser, which goes through each twice: two to the power of its depth, from the fourth on."""
    depth = cost = 0
    for found in _BRACKETS.finditer(text):
        if found[1]:
            depth += 1
            cost += max(0, (1 << min(depth, 40)) - 8)
        elif found[2]:
            depth = max(0, depth - 1)
    return cost


TOO_DEEP = "brackets stand too deep in brackets"
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*|([\[{])|([\]}])')
"""Strings and comments are passed over: a bracket in them closes none."""
