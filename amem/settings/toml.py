"""Read a settings table strictly: every key known, every value of its kind, each error naming `file: key: why`."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from amem.errors import ConfigError
from amem.settings.root import INIT, near
from amem.typed import Any, TypeVar

T = TypeVar("T")


class Table:
    """A table being read. Take each key once, then `finish()`: what is left over is unknown."""

    def __init__(self, file: str, where: str, keys: Mapping[str, Any]) -> None:
        self._file = file
        self._where = where
        self._keys = dict(keys)
        self._taken: list[str] = []

    def error(self, key: str, why: str) -> ConfigError:
        """The error for a key of this table."""
        dotted = f"{self._where}.{key}" if self._where else key
        return ConfigError(f"{self._file}: {dotted}: {why}", hint=f"edit {self._file}")

    def take(self, key: str, kind: type[T], default: T | None = None) -> T | None:
        """The value of a key, which must be of `kind`, or the default."""
        self._taken.append(key)
        if key not in self._keys:
            return default
        value = self._keys.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"expected {_WORDS.get(kind, kind.__name__)}, found {value!r}")
        return value

    def need(self, key: str, kind: type[T]) -> T:
        """The value of a key that must stand there."""
        value = self.take(key, kind)
        if value is None:
            raise self.error(key, "is required")
        return value

    def number(self, key: str) -> int | float | None:
        """A number, whole or not; None when it is not there."""
        self._taken.append(key)
        value = self._keys.pop(key, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise self.error(key, f"expected a number, found {value!r}")
        return value

    def read(self, key: str, parse: Callable[[str], T], default: T) -> T:
        """A string parsed by `parse`, whose ValueError becomes the reason."""
        text = self.take(key, str)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise self.error(key, str(error)) from error

    def strings(self, key: str) -> tuple[str, ...]:
        """An array of strings; an empty one when it is not there."""
        values = self.take(key, list, []) or []
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, "expected an array of strings")
        return tuple(values)

    def table(self, key: str) -> "Table":
        """The table under a key; an empty one when it is not there."""
        return Table(self._file, f"{self._where}.{key}" if self._where else key, self.take(key, dict, {}) or {})

    def tables(self) -> list[tuple[str, "Table"]]:
        """Every remaining key as a table, for tables whose keys are names."""
        found = []
        for key in list(self._keys):
            found.append((key, self.table(key)))
        return found

    def finish(self) -> None:
        """Refuse what was not taken."""
        for key in self._keys:
            raise self.error(key, f"unknown key{near(key, self._taken)}")


_WORDS = {str: "a string", int: "a whole number", bool: "true or false", dict: "a table", list: "an array"}


def read(path: Path) -> Table:
    """Read a TOML file. Raises ConfigError when it is not there or does not parse."""
    try:
        return Table(str(path), "", tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: is not there", hint=f"amem {INIT}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}", hint=f"edit {path}") from error
