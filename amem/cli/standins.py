"""Stand-ins for modules that click, pathlib and tomllib import at their top and of which a start needs next to nothing.

They, with what they import themselves and the expressions they compile, are half of what loading the three takes.
Each knows the few names that are asked of it at import; anything else is got from the module itself, imported then.
"""

import sys
from contextlib import contextmanager
from types import ModuleType

from amem.typed import Any, Callable, Iterator, NamedTuple, TypeVar


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks whether it is a package
            raise AttributeError(name)
        _forget(self)
        __import__(self.__name__)
        return getattr(sys.modules[self.__name__], name)


def _cleandoc(text: str) -> str:
    """Help texts are laid out where an option is declared; nearly all have one line."""
    if "\n" not in text:
        return text.expandtabs().lstrip()
    from inspect import cleandoc

    return cleandoc(text)


def _ngettext(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _quote_from_bytes(path: bytes, safe: str = "/") -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(path, safe)


class _UUID:
    """Names the type in click's annotations. `click.UUID`, which would need the real one, is not used here."""


class _Generic:
    """A generic class is its plain self: nothing asks click's for their parameters."""

    def __class_getitem__(cls, parameters: object) -> type:
        return cls


class _TypedDict(dict[str, Any]):
    def __init_subclass__(cls, *, total: bool = True) -> None:
        pass


def _as_is(value: Any) -> Any:
    return value


def _cast(kind: object, value: Any) -> Any:
    return value


_LETTERS = "abcdefghijklmnopqrstuvwxyz"

STAND_INS: dict[str, dict[str, Any]] = {
    "typing": {
        "TYPE_CHECKING": False,
        "Any": Any,
        "Callable": Callable,
        "Generic": _Generic,
        "NamedTuple": NamedTuple,
        "TypedDict": _TypedDict,
        "TypeVar": TypeVar,
        "cast": _cast,
        "overload": _as_is,
        **dict.fromkeys(("BinaryIO", "IO", "Literal", "SupportsFloat", "SupportsIndex", "SupportsInt", "Tuple"), _Generic),
    },
    "inspect": {"cleandoc": _cleandoc},
    # Its texts are English like ours: looking for translations costs more than reading the whole command line.
    "gettext": {"gettext": str, "ngettext": _ngettext},
    "string": {"ascii_letters": _LETTERS + _LETTERS.upper(), "digits": "0123456789", "hexdigits": "0123456789abcdefABCDEF"},
    "uuid": {"UUID": _UUID},
    # Of the streams that a process has; they live as long as it does.
    "weakref": {"WeakKeyDictionary": dict},
    "urllib.parse": {"quote_from_bytes": _quote_from_bytes},
}


@contextmanager
def stand_ins() -> Iterator[None]:
    """While this lasts, importers get a stand-in of each module that was not loaded yet; afterwards the module itself."""
    held = [_StandIn(name) for name in STAND_INS if name not in sys.modules]
    for module in held:
        module.__dict__.update(STAND_INS[module.__name__])
        sys.modules[module.__name__] = module
    try:
        yield
    finally:
        for module in held:
            _forget(module)


def _forget(module: ModuleType) -> None:
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
