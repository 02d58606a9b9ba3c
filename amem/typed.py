"""What a start needs of `typing` and `collections.abc`, without loading either: a seventh of a launch's start.

To a type checker these are the very names of the standard library. When run, `Any` is `object`, a generic is its plain class, and a
`NamedTuple` is defined a dozen times as fast as `typing`'s: its constructor is compiled for what is made often, which most are not.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable as Callable
    from collections.abc import Iterable as Iterable
    from collections.abc import Iterator as Iterator
    from collections.abc import Mapping as Mapping
    from collections.abc import Sequence as Sequence
    from typing import Any as Any
    from typing import NamedTuple as NamedTuple
    from typing import Self as Self
    from typing import TypeVar as TypeVar
else:
    from _collections import _tuplegetter as field
    from _collections_abc import Callable, Iterable, Iterator, Mapping, Sequence  # noqa: F401

    Any = Self = object

    def TypeVar(name, *kinds, **bounds):
        """What stands for any type."""
        return object

    _OFTEN = 30
    """To compile a constructor takes as long as what it saves so many tuples."""
    _made = {}

    def _ordered(kind, values, named):
        """The values in the order of the fields; None where one lacks, or is too many."""
        fields = kind._fields
        if named or len(values) < len(fields):
            rest = fields[len(values) :]
            try:
                values = (*values, *map((kind._field_defaults | named).__getitem__, rest))
            except KeyError:
                return None
            if not named.keys() <= set(rest):
                return None
        return values if len(values) == len(fields) else None

    class _Named(tuple):
        """What named tuples have in common; the names are typing.NamedTuple's, October 2026."""

        __slots__ = ()
        _fields = ()
        _field_defaults = {}  # noqa: RUF012

        def __new__(cls, *values, **named):
            """Put the values in order; of what is made often, or wrongly, by a constructor with the fields for its arguments."""
            _made[cls] = often = _made.get(cls, 0) + 1
            if often < _OFTEN and (ordered := _ordered(cls, values, named)) is not None:
                return tuple.__new__(cls, ordered)
            owner = next(each for each in cls.__mro__ if "_fields" in each.__dict__)
            names = ", ".join(owner._fields)
            made = eval(f"lambda _cls, {names}: _new(_cls, ({names},))" if names else "lambda _cls: _new(_cls)", {"_new": tuple.__new__})
            made.__defaults__ = tuple(owner._field_defaults.values())
            made.__name__ = "__new__"
            made.__qualname__ = f"{owner.__qualname__}.__new__"
            owner.__new__ = staticmethod(made)
            return made(cls, *values, **named)

        @classmethod
        def _make(cls, values):
            values = tuple(values)
            if len(values) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(values)}")
            return tuple.__new__(cls, values)

        def _replace(self, /, **changed):
            made = self._make(map(changed.pop, self._fields, self))
            if changed:
                raise ValueError(f"Got unexpected field names: {list(changed)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in zip(self._fields, self, strict=True))})"

    class _Define(type):
        """Makes of a class body a tuple with the annotated names for its fields."""

        def __new__(mcs, name, bases, body):
            if not bases:
                return super().__new__(mcs, name, bases, body)
            # Python 3.14 keeps a function that makes them (PEP 649).
            noted = body["__annotations__"] if "__annotations__" in body else body.get("__annotate_func__", lambda _: {})(1)
            body["_fields"] = body["__match_args__"] = fields = tuple(noted)
            body["_field_defaults"] = {each: body[each] for each in fields if each in body}
            body["__slots__"] = ()
            for at, each in enumerate(fields):
                body[each] = field(at, None)
            return type(name, (_Named,), body)

    class NamedTuple(metaclass=_Define):
        """A tuple whose items have names: annotate them in the class's body."""
