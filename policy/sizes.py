"""How large the values may be that a rule of the record goes through. Pure.

Of a request and of the grants, the largest there can be; of a call, what comes of what it is given. A builtin that stands in no row may
not be called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from amem.policy.request import MANY, SUPERSEDES_LIMIT, TOOLS_LIMIT
from amem.typed import NamedTuple

_GRANTED = 1000
"""Domains, principals of a domain and destinations in grants.toml."""
_TEXT = 140
"""Characters of a word in a request or in grants.toml: a person's name is the longest."""
_PER_STEP = 100
"""Characters that are looked at in the time of a step."""
WIDTH_LIMIT = 3
"""Digits of a width in a format."""


class Shape(NamedTuple):
    """The most that a value can be: `text` characters in its longest word, key or number, `many` members, each at most `each`."""

    text: int = 0
    many: int = 0
    each: "Shape | None" = None


NOTHING = Shape()
FLAG, _NUMBER, WORD = Shape(5), Shape(25), Shape(_TEXT)


def many(count: int, each: Shape, keys: int = 0) -> Shape:
    """A collection of so many members, its keys of so many characters."""
    return Shape(keys, count, each)


INPUT: Mapping[str, Shape] = {
    "domain": Shape(40),
    "host": Shape(260),
    "model": Shape(260),
    "supersedes": many(SUPERSEDES_LIMIT, many(4, WORD, 10)),
    "guarded": many(SUPERSEDES_LIMIT, WORD),
    "elsewhere": many(SUPERSEDES_LIMIT, many(2, WORD, 10)),
    "findings": many(7, Shape(20)),
    "tools": many(TOOLS_LIMIT, Shape(64)),
    "requires": many(MANY, Shape(64)),
    "held": many(MANY, Shape(64)),
    "methods": many(MANY, Shape(16)),
    "addresses": many(MANY, many(3, Shape(64), 10)),
    "reach": many(3, Shape(10)),
    "spent": many(2, _NUMBER, 10),
    "limits": many(2, _NUMBER, 10),
    "over": many(2, many(3, _NUMBER, 10)),
    "grant": many(6, Shape(10, TOOLS_LIMIT, Shape(64)), 20),
}
"""The fields of a request that are more or less than a word; any other is one."""
GRANTS: Mapping[str, Shape] = {
    "owner": WORD,
    "domains": many(_GRANTED, many(3, many(_GRANTED, many(4, many(TOOLS_LIMIT, Shape(64), 20), 20), _TEXT), 20), _TEXT),
    "destinations": many(_GRANTED, many(1, Shape(20), 10), _TEXT),
    "gates": many(4, _NUMBER, 40),
}


def size(shape: Shape | None) -> int:
    """Steps to go through all of a value."""
    return 0 if shape is None else 1 + shape.text // _PER_STEP + shape.many * (1 + shape.text // _PER_STEP + size(shape.each))


def join(shapes: Iterable[Shape | None]) -> Shape:
    """The least that holds each of several."""
    found = [shape for shape in shapes if shape is not None]
    if not found:
        return NOTHING
    deeper = [shape.each for shape in found if shape.each is not None]
    return Shape(max(one.text for one in found), max(one.many for one in found), join(deeper) if deeper else None)


def below(shape: Shape) -> Shape:
    """A member, or a member of a member."""
    return join([Shape(shape.text), shape.each, below(shape.each) if shape.each else None])


def key_of(shape: Shape) -> Shape:
    """The key, the number or, of a set, the member that `some key, value in …` gives."""
    return join((Shape(max(shape.text, 10)), shape.each))


def merged(shapes: Sequence[Shape]) -> Shape:
    """Several collections in one, members with the same key merged."""
    deeper = [one.each for one in shapes if one.each is not None]
    return Shape(max(one.text for one in shapes), sum(one.many for one in shapes), merged(deeper) if deeper else None)


def _written(shape: Shape) -> int:
    """Characters of a value written as JSON."""
    return shape.text + 4 + shape.many * (shape.text + 6 + (_written(shape.each) if shape.each else 0))


def _formatted(given: Sequence[Shape]) -> Shape:
    return Shape(given[0].text * 10**WIDTH_LIMIT // 10 + _written(given[1]))


_Result = Callable[[Sequence[Shape]], Shape]


def _first(times: int = 1) -> _Result:
    return lambda given: given[0]._replace(text=times * given[0].text)


def _flag(given: Sequence[Shape]) -> Shape:
    return FLAG


def _number(given: Sequence[Shape]) -> Shape:
    return Shape(sum(below(one).text + 25 for one in given))


_FLAGS = """all any contains endswith startswith strings.any_prefix_match strings.any_suffix_match object.subset regex.is_valid
    regex.match glob.match is_array is_boolean is_null is_number is_object is_set is_string""".split()  # noqa: SIM905
_NUMBERS = """abs ceil count floor indexof round sum to_number type_name""".split()  # noqa: SIM905
_PARTS = """array.reverse array.slice object.filter object.remove sort strings.reverse substring trim trim_left trim_prefix
    trim_right trim_space trim_suffix""".split()  # noqa: SIM905
BUILTINS: Mapping[str, _Result] = {
    **dict.fromkeys(_FLAGS, _flag),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_PARTS, _first()),
    **dict.fromkeys(("lower", "upper"), _first(3)),
    **dict.fromkeys(("array.concat", "object.union"), merged),
    **dict.fromkeys(("max", "min", "intersection"), lambda given: below(given[0])),
    "and": lambda given: join(given),
    "concat": lambda given: Shape((given[0].text + below(given[1]).text) * given[1].many),
    "format_int": lambda given: Shape(4 * given[0].text),
    "indexof_n": lambda given: many(given[0].text, _NUMBER),
    "object.get": lambda given: join((below(given[0]), given[2])),
    "object.keys": lambda given: many(given[0].many, Shape(given[0].text)),
    "or": merged,
    "product": lambda given: Shape(below(given[0]).text * max(1, given[0].many)),
    "replace": lambda given: Shape((given[0].text + 1) * (given[2].text + 1)),
    "split": lambda given: many(given[0].text + 1, Shape(given[0].text)),
    "sprintf": _formatted,
    "union": lambda given: many(given[0].many * below(given[0]).many, below(below(given[0]))),
}
"""What a rule of the record may call, and what comes of it: nothing that reads a clock, draws a number, asks the network, prints, or makes
much of little (a range). Address arithmetic is the host's."""
