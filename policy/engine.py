"""Evaluate the policy: the only importer of regorus.

Owns one interpreter per thread. Whatever is not a well-formed decision is a denial: undefined, null, a wrong type, an
error, a panic. It must not log and must not act; `door` logs what it returns before anything proceeds.

Easy to break: regorus engines may be used by the thread that made them only (another one gets a panic, which is a
BaseException), so a `PolicyEngine` is a value that any thread may hold, and each thread builds its interpreter on first
use. The compiled API of regorus is not used: it turns an error inside a denial into no denial.
"""

import hashlib
import itertools
import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from amem.errors import ConfigError, IntegrityError
from amem.model import ids
from amem.model.clock import Clock, now, stamp
from amem.model.label import Label
from amem.policy import reasons
from amem.policy.decision import Decision, Reason
from amem.policy.grants import beyond, grants_data, narrow, resolver
from amem.policy.outline import NESTING_LIMIT, TOO_DEEP, Concern, Guard, concerns, may_deny, nesting, sees
from amem.policy.request import (
    ADMIT,
    APPROVE,
    DECLINE,
    FACTS,
    FETCH,
    MODEL_CALL,
    OWNER_ACTS,
    PROMOTE,
    READ,
    SERVER_TOOL,
    SPEND,
    WRITE,
    Request,
)  # fmt: skip

__all__ = ["BUILTIN", "LABELS", "PolicyEngine", "builtin", "grants_data", "load", "sources", "syntax"]

BUILTIN = Path(__file__).with_name("rego")
_BASE = "amem.rego"
_PAGES: Mapping[str, str] = {
    **{action: f"{action}.rego" for action in (MODEL_CALL, SERVER_TOOL, READ, WRITE, PROMOTE, APPROVE, ADMIT, SPEND, FETCH)},
    **dict.fromkeys(OWNER_ACTS, "acts.rego"),
    DECLINE: "approve.rego",
}
"""The page of the built-in policy that decides an action; it needs none but the base. Half of an evaluation was over the others."""
Module = tuple[str, str]
"""A module's name, for messages, and its text."""

_CACHED = 1024
_ENGINES_PER_THREAD = 32
_WHERE = re.compile(r"--> (\S+:\d+:\d+)")
_ERROR = re.compile(r"^(?:\d+ \| *)?error: (.{1,160})", re.MULTILINE)
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_REVIEWS = (None, "human")
_UNSTEADY = re.compile(r"\b(?:time|rand|uuid|http|opa|net)\s*\.")
"""Builtins whose answer may change from one evaluation to the next; a mention in a comment counts."""
_CANONICAL = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":"))
_word = json.encoder.encode_basestring_ascii
"""One form of a value: what the digest is over, and of which an evaluation sees the fields that it can name."""
LABELS = {str(label): label.rank for label in Label}
"""What the policy compares labels by: `data.labels`."""


class Rule(NamedTuple):
    """A rule of the record: it adds denials to the decisions of its domain, of every domain where that is None."""

    policy: str
    text: str
    domain: str | None = None


class Exemption(NamedTuple):
    """An exception of the record: what policy `breaches` denies is not denied to a session that holds `task`, until then."""

    policy: str
    domain: str
    breaches: str
    task: str
    expires_at: str


class PolicyEngine:
    """Policy modules and their data, ready to decide in any thread.

    `modules` are the policy in force (package `amem` and below), `rules` the record's own (package `amem.rules`).
    Of the built-in policy an action's page is loaded when the action is first asked about; `whole` loads all of it at once.
    Raises ConfigError when a module does not load or stands in a package it may not, or when `data` would replace one.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        data: Mapping[str, Any],
        rules: Sequence[Module | Rule] = (),
        exemptions: Sequence[Exemption] = (),
        *,
        whole: bool = False,
        clock: Clock = now,
    ) -> None:
        for key in {"amem", "labels"} & data.keys():
            raise ConfigError(f"policy data: the key {key} is that of the policy itself")
        self._modules = tuple(modules)
        self._paged = not whole and self._modules == builtin()
        self._rules = tuple(Rule(*rule) for rule in rules)
        self._exemptions = tuple(exemptions)
        self._data = data
        self._data_json = json.dumps({**data, "labels": LABELS}, allow_nan=False)
        self._clock = clock
        self._serial = next(_serials)
        self._grants: dict[tuple[str, str, str | None], tuple[Mapping[str, Any], str]] = {}
        """The grants that answered, with the field that an evaluation sees of each."""
        self._resolve = resolver(data)
        self._fields: dict[int, str] = {}
        """What is seen of each grant: the resolver has one value for all that a pattern matches, and keeps it."""
        self._ways: dict[tuple[str, str], _Way] = {}
        self._steady = not any(
            _UNSTEADY.search(text) for text in (*(text for _, text in self._modules), *(rule.text for rule in self._rules))
        )
        self._answers: dict[tuple[str | tuple[str, ...], str], Any] = {}
        """What the policy said, and what the rules did, each by all that it could see of the request. Only when steady."""
        self._decided: dict[str, Decision] = {}
        """What was decided on a request, by its whole text: the calls of a session differ in nothing."""
        self.version = _version((*self._modules, *(tuple(map(str, one)) for one in (*self._rules, *self._exemptions))))
        """`sha256:` and 16 digits over the modules, rules and exceptions, in order."""
        self.data_version = _version([(self._data_json,)])
        """The same over the data."""
        self._concerns: Mapping[Rule, Sequence[Concern]] = {}
        if self._rules or not self._paged:
            modules = self._modules[:1] if self._paged else self._modules  # the pages are ours: the self-test looks at them
            for domain in dict.fromkeys(("", *(rule.domain or "" for rule in self._rules))):
                _build(modules, self._of(domain), self._data_json)
            self._concerns = {rule: _concerns(rule.policy, rule.text) for rule in self._rules}

    def concerns(self, action: str, domain: str) -> bool:
        """Whether anything but the built-in policy has a word in decisions on an action: a root's own, or a rule of the record."""
        return self._modules != builtin() or bool(self._way(action, domain).rules)

    def decide(self, request: Request) -> Decision:
        """Evaluate one request. Never raises for what the policy or the request is like: that is a denial."""
        grant, field = self._grant(request)
        way = self._way(request.action, request.input.get("domain", ""))
        try:
            fields = _fields(request.input)
            fields["action"], fields["grant"] = f'"action":{_json(request.action)}', field
            asked = _object(fields, sorted(fields))
            if (decided := self._decided.get(asked)) is not None:
                return decided._replace(id=ids.draw("decision"))
            if (facts := FACTS.get(request.action)) is not None:
                fields |= _fields(facts(request.input))
        except (TypeError, ValueError, KeyError) as error:
            return self._deny(request, "", "bad_request", why=str(error)[:160])
        digest = "sha256:" + hashlib.sha256(asked.encode()).hexdigest()
        try:
            found = self._said(way, _DECISION, _object(fields, way.sees))
            denials: Any = ()
            if way.rules and may_deny(way.guards, request):
                denials = self._said(way, _DENY, _object(fields, way.rules_see))
        except BaseException as error:  # a panic of regorus is a BaseException
            _running.engines.pop((self._serial, way.names), None)
            if not _is_regorus(error):
                raise
            return self._deny(request, digest, "policy_error", why=_told(error))
        try:
            decision = self._read(request, grant, digest, found, denials)
        except (TypeError, ValueError, KeyError) as error:
            return self._deny(request, digest, "policy_error", why=f"a malformed decision: {str(error)[:160]}")
        if self._steady and not self._exemptions:  # an exception ends by the clock
            if len(self._decided) >= _CACHED:
                self._decided.clear()
            self._decided[asked] = decision
        return decision

    def _said(self, way: "_Way", rule: str, seen: str) -> Any:
        """What a rule says of what it can see, by an evaluation unless it said so before. Raises what regorus raises, and TypeError."""
        known = (way.names if rule is _DENY else way.names[0], seen)
        found = self._answers.get(known)
        if found is None:
            interpreter = self._interpreter(way)
            interpreter.set_input_json(seen)
            found = interpreter.eval_rule(rule) if rule is _DECISION else _denials(interpreter.eval_rule_as_json(rule))
            if self._steady:
                if len(self._answers) >= _CACHED:
                    self._answers.clear()
                self._answers[known] = found
        return found

    def _read(self, request: Request, grant: Mapping[str, Any], digest: str, found: Any, denials: Any) -> Decision:
        """Make a decision of what the policy gave. Raises TypeError, ValueError or KeyError when it is malformed."""
        if found is None:
            return self._deny(request, digest, "policy_undefined", action=request.action)
        allow, hold, review = found["allow"], found.get("hold", False), found.get("review")
        if not isinstance(allow, bool) or not isinstance(hold, bool) or review not in _REVIEWS:
            raise TypeError("allow and hold are true or false, review is null or human")
        why = [_reason(told, request.input) for told in found.get("reasons", [])]
        citations: tuple[str, ...] = ()
        if denials:
            lifted = self._lifted(request) if self._exemptions else {}
            standing = [denial for denial in denials if denial["policy"] not in lifted]
            citations = tuple(dict.fromkeys(lifted.get(denial["policy"], denial["policy"]) for denial in denials))
            why += [_reason({"code": "record_rule", **denial}, request.input) for denial in standing]
            if standing:
                allow = hold = False
        if allow and (why or hold):
            raise ValueError("allowed beside a reason")
        if hold and (request.action != WRITE or not grant["write"]):
            hold = False
        result: Mapping[str, Any] = {}
        if allow:
            if (excess := beyond(request.action, request.input, grant, self._data)) is not None:
                return self._deny(request, digest, "beyond_grant", why=excess)
            if request.action == READ:
                result = narrow(found["filter"], request.input, grant)
        return Decision(
            id=ids.draw("decision"),
            action=request.action,
            allow=allow,
            hold=hold,
            review=review,
            reasons=tuple(sorted(why, key=lambda reason: reasons.place(reason.code))) if why else (),
            citations=citations,
            policy_version=self.version,
            data_version=self.data_version,
            input_digest=digest,
            result=result,
        )

    def _deny(self, request: Request, digest: str, code: str, **facts: Any) -> Decision:
        return Decision(
            id=ids.draw("decision"),
            action=request.action,
            allow=False,
            reasons=(Reason(code, facts),),
            policy_version=self.version,
            data_version=self.data_version,
            input_digest=digest,
            result={},
        )

    def _grant(self, request: Request) -> tuple[Mapping[str, Any], str]:
        asked = request.input
        owner = asked.get("owner", "" if request.action == WRITE else None)  # a write that names none is nobody's
        key = (asked.get("domain", ""), asked.get("principal", ""), owner)
        known = self._grants.get(key)
        if known is None:
            if len(self._grants) >= _CACHED:
                self._grants.clear()
            grant = self._resolve(*key)
            field = self._fields.get(id(grant)) or self._fields.setdefault(id(grant), f'"grant":{_json(grant)}')
            known = self._grants[key] = grant, field
        return known

    def _lifted(self, request: Request) -> Mapping[str, str]:
        """The policies that do not bind the held task, each with the exception that says so."""
        held, domain, at = request.input.get("task"), request.input.get("domain"), stamp(self._clock())
        return {one.breaches: one.policy for one in self._exemptions if one.task == held and one.domain == domain and at < one.expires_at}

    def _of(self, domain: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self._rules if rule.domain in (None, domain))

    def _way(self, action: str, domain: str) -> "_Way":
        """How requests of an action in a domain are decided: the modules and rules that have a word in it, and what they can see."""
        way = self._ways.get((action, domain))
        if way is None:
            page = _PAGES.get(action) if self._paged else None
            modules = self._modules if page is None else tuple(one for one in self._modules if one[0] in (_BASE, page))
            asked = {"action": action, "domain": domain}
            rules: list[Rule] = []
            guards: list[Guard] = []
            for rule in self._of(domain):
                concerns = [concern for concern in self._concerns[rule] if concern.asked.items() <= asked.items()]
                guards += [concern.guard for concern in concerns]
                rules += [rule] if concerns else []
            way = _Way(
                modules,
                tuple(rules),
                sees(text for _, text in modules),
                sees(rule.text for rule in rules),
                tuple(guards),
                (page or "", *(f"{rule.domain} {rule.policy}" for rule in rules)),
            )
            if len(self._ways) >= _CACHED:
                self._ways.clear()
            self._ways[action, domain] = way
        return way

    def _interpreter(self, way: "_Way") -> Any:
        """This thread's interpreter of a way. The oldest of a thread is dropped by that thread: see above."""
        engines = _running.engines
        key = (self._serial, way.names)
        found = engines.get(key)
        if found is None:
            found = engines[key] = _build(way.modules, way.rules, self._data_json)
            while len(engines) > _ENGINES_PER_THREAD:
                engines.popitem(last=False)
        return found


class _Way(NamedTuple):
    """See `PolicyEngine._way`."""

    modules: tuple[Module, ...]
    rules: tuple[Rule, ...]
    sees: tuple[str, ...] | None
    """The fields of the input that the modules can see: two requests that differ in no other get one answer. None is all."""
    rules_see: tuple[str, ...] | None
    """The same of the rules."""
    guards: "tuple[Guard, ...]"
    """Of each denial of the rules."""
    names: tuple[str, ...]
    """The page, and the rules."""


@cache
def builtin() -> tuple[Module, ...]:
    """The built-in policy's modules: the base, and a page for each kind of action."""
    return tuple(_module(BUILTIN / name) for name in (_BASE, *sorted(set(_PAGES.values()))))


def text(modules: Sequence[Module]) -> str:
    """Modules as one text. Of the built-in policy it is one module: what a root's own policy may begin from."""
    if tuple(modules) != builtin():
        return "\n".join(each for _, each in modules)
    (_, base), *pages = modules
    return "\n".join((base, *(each.replace("package amem\n\n", "", 1) for _, each in pages)))


def sources(policy_dir: Path) -> tuple[Module, ...]:
    """The policy in force: the root's `policy/*.rego` in the order of their names, or the built-in one when there is none.

    All of them are read from one folder, also when another takes its place meanwhile. Raises ConfigError.
    """
    try:
        folder = os.open(policy_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return builtin()
    except OSError as error:
        raise ConfigError(f"{policy_dir}: {error}") from error
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".rego"))
        return tuple(_module(policy_dir / name, folder) for name in names) or builtin()
    finally:
        os.close(folder)


def load(
    policy_dir: Path,
    data: Mapping[str, Any],
    rules: Sequence[Module | Rule] = (),
    exemptions: Sequence[Exemption] = (),
    clock: Clock = now,
) -> PolicyEngine:
    """The policy in force over `data`, after a self-test of the engine.

    Raises ConfigError for a module that does not load, IntegrityError when the engine answers the golden requests in any
    other way than it should: then nothing is decided here.
    """
    from amem.policy.golden import mismatches

    wrong = mismatches()
    if wrong:
        raise IntegrityError(f"the policy engine failed its self-test: {'; '.join(wrong)}", hint="amem doctor")
    return PolicyEngine(sources(policy_dir), data, rules, exemptions, clock=clock)


@lru_cache(_CACHED)
def _concerns(name: str, text: str) -> tuple[Concern, ...]:
    """See `outline.concerns`. Kept: to get the tree takes most of a reload, and most of the rules were in force before."""
    return concerns(syntax(name, text))


def syntax(name: str, text: str) -> Any:
    """The syntax tree of a module that loads, as regorus gives it. Raises ConfigError."""
    import regorus

    engine = regorus.Engine()
    engine.set_rego_v0(False)
    _add(engine, name, text)
    return json.loads(engine.get_ast_as_json())[0]["ast"]


_serials = itertools.count()


class _Running(threading.local):
    """The interpreters of this thread, by the serial of their `PolicyEngine` and the way."""

    def __init__(self) -> None:
        self.engines: OrderedDict[tuple[int, tuple[str, ...]], Any] = OrderedDict()


_running = _Running()


def _module(path: Path, folder: int | None = None) -> Module:
    """A module in a file, in an open folder if one is given. Raises ConfigError."""
    try:
        with open(os.open(path.name if folder is not None else path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), encoding="utf-8") as file:
            return path.name, file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _version(parts: Iterable[tuple[str, ...]]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{' '.join(str(len(word.encode())) for word in part)} {chr(10).join(part)}".encode())
    return "sha256:" + total.hexdigest()[:16]


def _build(modules: Sequence[Module], rules: Sequence[Rule], data_json: str) -> Any:
    import regorus

    engine = regorus.Engine()
    engine.set_rego_v0(False)
    packages: set[str] = set()
    for name, text in modules:
        package = _add(engine, name, text)
        if package != "data.amem" and (not package.startswith("data.amem.") or package == _OF_RECORD):
            _refuse(name, f"a policy stands in package amem, not in {package.removeprefix('data.')}")
        packages.add(package)
    if "data.amem" not in packages:
        _refuse(", ".join(name for name, _ in modules) or "policy", "no module is in package amem")
    for name, text, _ in rules:
        if (package := _add(engine, name, text)) != _OF_RECORD:
            _refuse(name, f"a rule of the record stands in package amem.rules, not in {package.removeprefix('data.')}")
    try:
        engine.add_data_json(data_json)
        engine.eval_query("1")  # unsafe variables are reported by the first evaluation of anything
    except BaseException as error:
        if not _is_regorus(error):
            raise
        raise ConfigError(f"policy: {_told(error)}", hint="amem policy lint") from error
    return engine


_OF_RECORD = "data.amem.rules"
_DECISION, _DENY = "data.amem.decision", f"{_OF_RECORD}.deny"


def _add(engine: Any, name: str, text: str) -> str:
    if nesting(text) > NESTING_LIMIT:
        _refuse(name, TOO_DEEP)
    try:
        return str(engine.add_policy(name, text))
    except BaseException as error:
        if not _is_regorus(error):
            raise
        raise ConfigError(f"policy/{name}: {_told(error)}", hint="amem policy lint") from error


def _refuse(name: str, why: str) -> NoReturn:
    raise ConfigError(f"policy/{name}: {why}", hint="amem policy lint")


def _denials(told: str) -> list[Any]:
    """What the record's rules refuse, in the order of their text. Raises TypeError when that is no set."""
    found = json.loads(told)
    if not isinstance(found, list):
        raise TypeError("deny is a set of objects")
    return found


def _fields(values: Mapping[str, Any]) -> dict[str, str]:
    """Each field of a request in its one form."""
    return {name: f"{_word(name)}:{_word(value) if type(value) is str else _json(value)}" for name, value in values.items()}


def _object(fields: Mapping[str, str], names: Iterable[str] | None) -> str:
    """A request, or what can be seen of it: fields in the order of `names`, all of them where that is None."""
    return "{" + ",".join(fields.values() if names is None else [fields[name] for name in names if name in fields]) + "}"


def _json(value: Any) -> str:
    """A value in its one form; most are words, and the encoder is slow to start."""
    if isinstance(value, str):
        return _word(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value) if type(value) is int else str(value).lower()
    return "[]" if value in ((), []) else _CANONICAL.encode(value)


def _is_regorus(error: BaseException) -> bool:
    """Whether regorus raised it: any Exception, or the panic of its binding; never an interrupt, an exit, a cancellation."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _told(error: BaseException) -> str:
    """Where and why, in one line, without the stack that RUST_BACKTRACE adds and without the source that was quoted."""
    text = str(error).split("Stack backtrace")[0]
    where, why = _WHERE.search(text), _ERROR.search(text)
    told = why[1] if why else " ".join(text.split())[:160]
    return reasons.visible(f"{where[1]}: {told}" if where else told)


def _reason(told: Any, asked: Mapping[str, Any]) -> Reason:
    """A reason of the policy's list, with its facts. Raises TypeError or ValueError."""
    facts = dict(told)
    code = facts.pop("code")
    if not isinstance(code, str) or _CODE.fullmatch(code) is None:
        raise ValueError("a reason's code is a word in lower case")
    for value in facts.values():
        if not isinstance(value, (str, int, float, bool, list, type(None))):
            raise TypeError(f"a fact of {code} is neither a word, a number nor a list")
    return Reason(code, reasons.told(code, facts, asked))
