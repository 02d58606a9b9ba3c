"""The named tuples of a start behave as `typing`'s do."""

import copy
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amem import typed

PROJECT = Path(__file__).resolve().parent.parent
BODY = '''
class Point(NamedTuple):
    """Where."""

    x: int
    y: int = 2
    label: str = "p"
    """What it is called."""

    @property
    def sum(self): return self.x + self.y

    def named(self): return f"{self.label}{self.x}"

class Deeper(Point):
    def named(self): return "deeper " + super().named()

class Empty(NamedTuple):
    pass
'''


def made(named_tuple: object) -> dict[str, Any]:
    found: dict[str, Any] = {"NamedTuple": named_tuple, "__name__": __name__}
    exec(BODY, found)
    return found


THEIRS, OURS = made(typing.NamedTuple), made(typed.NamedTuple)
Point = OURS["Point"]  # by this name it is pickled

SAYS: dict[str, Callable[[dict[str, Any]], object]] = {
    "positions": lambda all_: all_["Point"](1, 3, "q"),
    "names": lambda all_: all_["Point"](x=1, label="q"),
    "defaults": lambda all_: all_["Point"](1),
    "repr": lambda all_: repr(all_["Point"](1)),
    "empty": lambda all_: (all_["Empty"](), repr(all_["Empty"]()), all_["Empty"]._fields),
    "fields": lambda all_: (all_["Point"]._fields, all_["Point"]._field_defaults, all_["Point"].__match_args__, all_["Point"].__doc__),
    "property": lambda all_: all_["Point"](1).sum,
    "method": lambda all_: all_["Point"](1).named(),
    "subclass": lambda all_: (all_["Deeper"](1).named(), all_["Deeper"](x=4)._replace(y=1), repr(all_["Deeper"](1))),
    "replaced": lambda all_: all_["Point"](1)._replace(y=9),
    "as a dictionary": lambda all_: all_["Point"](1)._asdict(),
    "made": lambda all_: all_["Point"]._make([1, 2, "z"]),
    "unpacked": lambda all_: [*all_["Point"](1)],
    "equal": lambda all_: (all_["Point"](1) == (1, 2, "p"), hash(all_["Point"](1)) == hash((1, 2, "p")), all_["Point"](1) < (2,)),
    "slots": lambda all_: hasattr(all_["Point"](1), "__dict__"),
    "copied": lambda all_: copy.deepcopy(all_["Point"](1, [2])),
    "type": lambda all_: type(all_["Point"]) is type,
}

COMPLAINS: dict[str, Callable[[dict[str, Any]], object]] = {
    "missing": lambda all_: all_["Point"](),
    "too many": lambda all_: all_["Point"](1, 2, "p", 4),
    "unknown": lambda all_: all_["Point"](1, z=1),
    "twice": lambda all_: all_["Point"](1, x=1),
    "replaced by another name": lambda all_: all_["Point"](1)._replace(z=1),
    "made too short": lambda all_: all_["Point"]._make([1]),
    "assigned": lambda all_: setattr(all_["Point"](1), "x", 2),
    "new attribute": lambda all_: setattr(all_["Point"](1), "other", 2),
}


@pytest.mark.parametrize("what", SAYS)
def test_it_says_what_typings_does(what: str) -> None:
    assert SAYS[what](made(typed.NamedTuple)) == SAYS[what](THEIRS)


@pytest.mark.parametrize("what", COMPLAINS)
@pytest.mark.parametrize("used_before", [False, True])
def test_it_complains_of_what_typings_does(what: str, used_before: bool) -> None:
    ours = made(typed.NamedTuple)
    if used_before:
        ours["Point"](1)
    said = []
    for each in (THEIRS, ours):
        # The kind of one of them is another since Python 3.13.
        with pytest.raises((TypeError, ValueError, AttributeError)) as found:
            COMPLAINS[what](each)
        said.append(str(found.value))
    assert said[0] == said[1]


def test_it_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2, "ä"))) == (1, 2, "ä")


def test_a_pattern_takes_it_apart() -> None:
    match Point(1, label="q"):
        case Point(x, y, label="q"):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("no match")


def test_neither_typing_nor_collections_is_loaded() -> None:
    code = f"""
import sys; sys.path.insert(0, {str(PROJECT)!r})
from amem.typed import NamedTuple
class A(NamedTuple):
    a: int
A(1); print({{"typing", "collections"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
