"""How much work a rule of the record may be, found from its text alone. Pure.

regorus has no timer and a recursion without end takes the process with it, so a rule is bounded before it is loaded: every name is given
the size of what it may hold at the largest request there can be, every loop multiplies what stands in its query, every call costs by what
it is given. A rule whose work has no bound, or a bound above the limit, is refused. What is not understood has no bound.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from amem.policy.sizes import BUILTINS, FLAG, GRANTS, INPUT, NOTHING, WIDTH_LIMIT, WORD, Shape, below, join, key_of, many, merged, size
from amem.typed import Any

STEPS_LIMIT = 200_000
"""Of one rule: some 50 ms of an ordinary core, at a request that replaces a thousand entries."""
STEPS_OF_ALL = 2 * STEPS_LIMIT
"""Of all the rules that are in force together."""
DEPTH_LIMIT = 60
"""Expressions in expressions: the interpreter goes down them on the stack of the thread that decides."""
_PASSES = 40
_CALL, _OWN_CALL, _PATTERN, _INSERT = 5, 20, 40, 4
_COMPARED = 8
"""Members that are compared in the time of a step."""
_STATES_LIMIT = 2500
"""What a pattern may become: regorus takes none that is larger. One that is not written out is taken to be that, and compiled each time."""
_STATES_PER_STEP = 3
"""States that are gone through, for one character, in the time of a step."""
_IN_PASSING = 20
"""Characters that a pattern which is in one place at a time goes through in the time of a step."""
_ONE_WAY = re.compile(r"\^(?:\\[.\-/wdsWDS]|\[[^\]\\]*\]|\{\d+\}|[^\\\[\](){}|*+?$^]|[()])*[*+]?\$|[\w:/@ -]*", re.ASCII)
"""Such a pattern: a word, or one that begins with ^, whose parts have fixed lengths and whose one loop stands before its $."""
_ONE_WAY_GLOB = re.compile(r"[\w:./@ -]*\*{0,2}", re.ASCII)
_DIGITS = 310
"""Of the longest number that is no whole one."""
_PATTERNS = frozenset(("regex.match", "regex.is_valid", "glob.match"))
_OF_WORDS = frozenset(
    """contains count endswith format_int indexof is_array is_boolean is_null is_number is_object is_set is_string lower object.get
    regex.is_valid regex.match split startswith strings.reverse substring to_number trim_prefix trim_space trim_suffix type_name
    upper""".split()  # noqa: SIM905
)
"""Calls that look at the words among their arguments, and go through no collection."""
_EACH_WITH_EACH = frozenset(
    """indexof indexof_n object.subset product replace strings.any_prefix_match strings.any_suffix_match trim trim_left
    trim_right""".split()  # noqa: SIM905
)
"""Calls that compare all of one argument with all of another."""
_IMPORTS = ("rego.v1", "future.keywords")


class Unbounded(Exception):
    """No bound was found, and why."""


def steps(module: Any, text: str) -> int:
    """The most steps that a module's rules take together, by its syntax. Raises Unbounded."""
    try:
        return _Module(module, text.encode()).steps()
    except RecursionError:
        raise Unbounded("expressions stand too deep in expressions") from None


@dataclass
class _Query:
    """One query under way: what its statements cost once, what multiplies them, and the names that have a value in it."""

    sizes: dict[str, Shape]
    bound: set[str]
    cost: int = 0
    loops: dict[str, int] = field(default_factory=dict)

    @property
    def times(self) -> int:
        return math.prod(self.loops.values())

    def hold(self, name: str, shape: Shape) -> None:
        self.sizes[name] = join((self.sizes.get(name), shape))

    def loop(self, name: str, count: int) -> None:
        """A loop of a name is one wherever the name stands: the first place goes through it, the others look up."""
        key = name if name != "_" else f"loop {len(self.loops)}"
        self.loops[key] = max(self.loops.get(key, 1), count, 1)


class _Module:
    """A module's rules by name. What a rule holds is found once, a function for each size of what it is given."""

    def __init__(self, module: Mapping[str, Any], text: bytes) -> None:
        self._text = text
        self._rules: dict[str, list[Any]] = {}
        self._values: dict[str, tuple[Shape, int] | None] = {}
        self._calls: dict[tuple[str, tuple[Shape, ...]], tuple[Shape, int] | None] = {}
        for one in module["imports"]:
            if not any((_path(one["refr"]) + ".").startswith(f"{each}.") for each in _IMPORTS):
                raise Unbounded(f"imports {_path(one['refr'])}")
        for rule in module["rules"]:
            kind, body = _node(rule)
            refr = body["refr"] if kind == "Default" else _node(body["head"])[1]["refr"]
            self._rules.setdefault(_path(_base(refr)[0]), []).append(rule)
        if _depth(module["rules"]) > DEPTH_LIMIT:
            raise Unbounded("expressions stand too deep in expressions")

    def steps(self) -> int:
        """The interpreter keeps what a rule holds, so that it costs once; a function costs where it is called."""
        return sum(self._value(name)[1] for name in self._rules if not self._is_function(name))

    def _is_function(self, name: str) -> bool:
        return any("Func" in rule.get("Spec", {}).get("head", {}) or rule.get("Default", {}).get("args") for rule in self._rules[name])

    def _value(self, name: str) -> tuple[Shape, int]:
        if name not in self._values:
            self._values[name] = None
            found = [self._rule(rule, ()) for rule in self._rules[name]]
            whole = join(shape for shape, _ in found)
            self._values[name] = whole._replace(many=sum(shape.many for shape, _ in found)), sum(cost for _, cost in found)
        known = self._values[name]
        if known is None:
            raise Unbounded(f"{name} asks for itself")
        return known

    def _called(self, name: str, given: tuple[Shape, ...]) -> tuple[Shape, int]:
        key = (name, given)
        if key not in self._calls:
            if any(other == name and known is None for (other, _), known in self._calls.items()):
                raise Unbounded(f"{name} calls itself")
            self._calls[key] = None
            found = [self._rule(rule, given) for rule in self._rules[name]]
            self._calls[key] = join(shape for shape, _ in found), sum(cost for _, cost in found)
        known = self._calls[key]
        if known is None:
            raise Unbounded(f"{name} calls itself")
        return known

    def _rule(self, rule: Any, given: tuple[Shape, ...]) -> tuple[Shape, int]:
        """What one definition gives, and what it costs."""
        kind, body = _node(rule)
        if kind == "Default":
            (got,), cost, _ = self._settled({}, set(), [], [body["value"]])
            return got, cost
        shape, head = _node(body["head"])
        args, keys = head.get("args", []), _base(head["refr"])[1]
        assigned = head.get("assign")
        value = head["key"] if shape == "Set" else assigned["value"] if assigned else _TRUE
        found: list[Shape] = []
        cost = 0
        for one in body["bodies"] or [{"assign": None, "query": {"stmts": []}}]:
            wanted = one["assign"]["value"] if one["assign"] else value
            known = _Query({}, set())
            for arg, its in zip(args, given, strict=False):
                self._bind(arg, its, known)
            (got, *named), spent, times = self._settled(known.sizes, known.bound, one["query"]["stmts"], [wanted, *keys])
            if shape == "Set":
                got, spent = many(times, got), spent + times * _INSERT * size(got)
            for key in reversed(named):
                got = many(times, got, key.text)
            found.append(got)
            cost += spent + _OWN_CALL
        return join(found)._replace(many=sum(one.many for one in found)), cost

    def _settled(self, sizes: Mapping[str, Shape], bound: set[str], stmts: Any, terms: Sequence[Any]) -> tuple[list[Shape], int, int]:
        """A query gone through until the sizes of its names stay: a statement may stand before what it uses."""
        known = dict(sizes)
        for _ in range(_PASSES):
            before = dict(known)
            query = _Query(known, set(bound))
            got = self._query(query, stmts, terms)
            if known == before:
                return got, query.cost * query.times, query.times
        raise Unbounded("a value grows out of itself")

    def _query(self, query: _Query, stmts: Any, terms: Sequence[Any]) -> list[Shape]:
        for stmt in stmts:
            if stmt.get("with_mods"):
                raise Unbounded("evaluates under another input (with)")
            self._statement(stmt["literal"], query)
        return [self._expr(term, query) for term in terms]

    def _inner(self, query: _Query, stmts: Any, terms: Sequence[Any]) -> tuple[list[Shape], int]:
        """A query in a query, run once for each time round the outer one; what it gives, and how often."""
        inner = _Query(query.sizes, {*query.bound, *query.loops})
        got = self._query(inner, stmts, terms)
        query.cost += inner.cost * inner.times
        return got, inner.times

    def _statement(self, literal: Any, query: _Query) -> None:
        kind, body = _node(literal)
        match kind:
            case "Expr":
                self._expr(body["expr"], query)
            case "NotExpr":
                self._inner(query, [{"literal": {"Expr": body}}], ())
            case "SomeVars":
                for name in map(self._word, body["vars"]):
                    if name in query.loops:
                        raise Unbounded(f"declares {name} after its use")
                    self._bind({"Var": {"value": name}}, NOTHING, query)
                    query.bound.discard(name)
            case "SomeIn":
                members = self._expr(body["collection"], query)
                query.loop("_", members.many)
                if body["key"] is not None:
                    self._bind(body["key"], key_of(members), query)
                self._bind(body["value"], members.each or NOTHING, query)
            case "Every":
                members = self._expr(body["domain"], query)
                once = _Query(query.sizes, {*query.bound, *query.loops})
                names = [self._word(span) for span in (body["key"], body["value"]) if span is not None]
                for name, shape in zip(names[::-1], (members.each or NOTHING, key_of(members)), strict=False):
                    self._bind({"Var": {"value": name}}, shape, once)
                self._inner(once, body["query"]["stmts"], ())
                query.cost += once.cost * max(1, members.many)
            case _:
                raise Unbounded(f"{kind} is not known")

    def _word(self, span: Mapping[str, int]) -> str:
        return self._text[span["start"] : span["end"]].decode()

    def _bind(self, pattern: Any, shape: Shape, query: _Query) -> None:
        """Give the names of a pattern what they may hold."""
        kind, body = _node(pattern)
        match kind:
            case "Var" if body["value"] in ("input", "data"):
                raise Unbounded(f"gives {body['value']} another meaning")
            case "Var" if _is_helper(body["value"]) or body["value"] in self._rules:
                raise Unbounded(f"gives {body['value']} another meaning: a name with _ is that of a rule")
            case "Var":
                query.bound.add(body["value"])
                query.hold(body["value"], shape)
            case "Array" | "Set":
                for item in body["items"]:
                    self._bind(item, shape.each or NOTHING, query)
            case "Object":
                for _, key, value in body["fields"]:
                    self._expr(key, query)
                    self._bind(value, shape.each or NOTHING, query)
            case _:
                query.cost += min(size(self._expr(pattern, query)), size(shape))

    def _expr(self, node: Any, query: _Query) -> Shape:
        """What an expression may be; what it costs is added to its query."""
        kind, body = _node(node)
        query.cost += 1
        match kind:
            case "String" | "RawString":
                return Shape(len(body["value"]))
            case "Number":
                return Shape(_DIGITS if isinstance(body["value"], float) else len(str(body["value"])))
            case "Bool" | "Null":
                return FLAG
            case "Var" | "RefDot" | "RefBrack":
                return self._reference(node, query)
            case "Array" | "Set":
                items = [self._expr(item, query) for item in body["items"]]
                query.cost += sum(map(size, items)) if kind == "Set" else 0
                return many(len(items), join(items))
            case "Object":
                fields = [(self._expr(key, query), self._expr(value, query)) for _, key, value in body["fields"]]
                return many(len(fields), join(value for _, value in fields), max((key.text for key, _ in fields), default=0))
            case "ArrayCompr" | "SetCompr" | "ObjectCompr":
                terms = [body["key"], body["value"]] if kind == "ObjectCompr" else [body["term"]]
                got, times = self._inner(query, body["query"]["stmts"], terms)
                query.cost += 0 if kind == "ArrayCompr" else times * _INSERT * size(got[0])
                return many(times, got[-1], got[0].text if kind == "ObjectCompr" else 0)
            case "Call":
                return self._call(body, query)
            case "UnaryExpr":
                return self._expr(body["expr"], query)
            case "AssignExpr":
                left, right = body["lhs"], body["rhs"]
                self._bind(left, self._expr(right, query), query)
                if body["op"] == "Eq" and _names(right):
                    self._bind(right, self._expr(left, query), query)
                return FLAG
            case "BoolExpr" | "ArithExpr" | "BinExpr" | "Membership":
                return self._operator(kind, body, query)
            case _:
                raise Unbounded(f"{kind} is not known")

    def _operator(self, kind: str, body: Any, query: _Query) -> Shape:
        if kind == "Membership":
            value, members = self._expr(body["value"], query), self._expr(body["collection"], query)
            if body["key"] is not None:
                self._expr(body["key"], query)
            query.cost += members.many * min(size(value), size(members.each)) // _COMPARED
            return FLAG
        left, right = self._expr(body["lhs"], query), self._expr(body["rhs"], query)
        if kind == "BoolExpr":
            query.cost += min(size(left), size(right))
            return FLAG
        query.cost += size(left) + size(right) + left.text * right.text // 1000
        joined = merged((left, right)) if left.many or right.many else NOTHING
        return joined._replace(text=max(left.text, right.text) + (1 if body["op"] in ("Add", "Sub") else min(left.text, right.text) + 25))

    def _call(self, body: Any, query: _Query) -> Shape:
        name = _path(body["fcn"])
        given = [self._expr(one, query) for one in body["params"]]
        if name in self._rules:
            wanted = max((len(_node(rule["Spec"]["head"])[1].get("args", [])) for rule in self._rules[name] if "Spec" in rule), default=0)
            got, cost = self._called(name, tuple(given[:wanted]))
            query.cost += cost
        elif name in BUILTINS:
            self._fixed(name, body["params"], given, query)
            try:
                got = BUILTINS[name](given)
            except (IndexError, ValueError):
                raise Unbounded(f"{name} is given too little") from None
            wanted = len(given)
            sizes = [size(Shape(one.text) if name in _OF_WORDS else one) for one in given]
            made = 0 if name == "object.get" else got.many or size(got)
            query.cost += _CALL + (math.prod(sizes) if name in _EACH_WITH_EACH else sum(sizes)) + made
        else:
            raise Unbounded(f"calls {name}")
        for extra in body["params"][wanted:]:
            self._bind(extra, got, query)
        return got

    def _fixed(self, name: str, params: Sequence[Any], given: Sequence[Shape], query: _Query) -> None:
        """A format is written out, and a pattern costs less where it is."""
        if name in _PATTERNS:
            query.cost += _PATTERN + _matched(name, _literal(params[0]), given[-1].text)
        if name == "sprintf":
            digits = 0
            for each in _literal(params[0]) or "%9999":
                digits = digits + 1 if each.isdigit() else 0
                if digits > WIDTH_LIMIT - 1:
                    raise Unbounded("sprintf: a format is written out, without a width of three digits")

    def _reference(self, node: Any, query: _Query) -> Shape:
        base, path = _base(node)
        name = base.get("Var", {}).get("value")
        if name in ("input", "data"):
            shape, path = self._given(name, path)
        elif name is None:
            shape = self._expr(base, query)
        else:
            shape = query.sizes.get(name, NOTHING)
            if name in self._rules and not self._is_function(name):
                shape = join((shape, self._value(name)[0]))
            elif _is_helper(name) and name not in self._rules:  # another module's, perhaps one that comes later
                raise Unbounded(f"names {name}, which it does not define")
        for index in path:
            self._index(index, shape, query)
            shape = shape.each or NOTHING
        return shape

    def _given(self, name: str, path: Sequence[Any]) -> tuple[Shape, Sequence[Any]]:
        """What a request or the grants may hold, and what of a path is left below it."""
        fields = INPUT
        if name == "data":
            if not path or _literal(path[0]) != "grants":
                raise Unbounded("looks at data beyond data.grants")
            fields, path = GRANTS, path[1:]
        if path and (first := _literal(path[0])) is not None:
            return fields.get(first, WORD), path[1:]
        return many(32, join((*fields.values(), WORD)), 40), path

    def _index(self, index: Any, shape: Shape, query: _Query) -> None:
        """A place in a collection: a name without a value goes through all of it."""
        fresh = [name for name in _names(index) if self._free(name, query)]
        if strange := next(filter(_is_helper, fresh), None):
            raise Unbounded(f"names {strange}, which it does not define")
        for name in fresh:
            query.loop(name, shape.many)
            query.hold(name, join((key_of(shape), below(shape))))
        if _node(index)[0] != "Var" or not fresh:
            self._expr(index, query)

    def _free(self, name: str, query: _Query) -> bool:
        if name == "_" or name in query.loops:
            return True
        return name not in query.bound and name not in self._rules


def _matched(name: str, pattern: str | None, text: int) -> int:
    """Steps to match a text of so many characters: each of them with each state that the pattern may be in."""
    if pattern is None:
        return 2 * _STATES_LIMIT + text * _STATES_LIMIT // _STATES_PER_STEP
    if (_ONE_WAY_GLOB if name == "glob.match" else _ONE_WAY).fullmatch(pattern):
        return len(pattern) + text // _IN_PASSING
    counts = [int(most or least) for least, most in re.findall(r"\{(\d{1,9})(?:,(\d{0,9}))?\}", pattern)]
    return len(pattern) + text * min(_STATES_LIMIT, len(pattern) * math.prod(max(1, one) for one in counts)) // _STATES_PER_STEP


_TRUE = {"Bool": {"value": True}}


def _is_helper(name: str) -> bool:
    return name.startswith("_") and name != "_"


def _node(node: Any) -> tuple[str, Any]:
    ((kind, body),) = node.items()
    return kind, body


def _base(node: Any) -> tuple[Any, Sequence[Any]]:
    """What a reference begins with, and its path: each place as an expression."""
    kind, body = _node(node)
    if kind == "RefDot":
        base, path = _base(body["refr"])
        return base, [*path, {"String": {"value": body["field"][1]}}]
    if kind == "RefBrack":
        base, path = _base(body["refr"])
        return base, [*path, body["index"]]
    return node, []


def _path(node: Any) -> str:
    base, path = _base(node)
    return ".".join([str(base.get("Var", {}).get("value", "?")), *(_literal(place) or "?" for place in path)])


def _literal(node: Any) -> str | None:
    kind, body = _node(node)
    return str(body["value"]) if kind in ("String", "RawString") else None


def _names(node: Any) -> list[str]:
    """The names in an expression that could get their value there; not those that are called, and none of a query in it."""
    found: list[str] = []
    kind, body = _node(node)
    match kind:
        case "Var":
            found.append(str(body["value"]))
        case "Array" | "Set":
            for item in body["items"]:
                found += _names(item)
        case "Object":
            for _, _, value in body["fields"]:
                found += _names(value)
    return [name for name in found if name not in ("input", "data")]


def _depth(node: Any) -> int:
    """Expressions in expressions, queries in queries."""
    below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    deepest = max(map(_depth, below), default=0)
    return deepest + (isinstance(node, dict) and "eidx" in node)
