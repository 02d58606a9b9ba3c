"""Keys: from the environment, then from `credentials.env` under the root (0600). They never show in a repr."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from amem.errors import ConfigError


class Secret:
    """A credential that prints as `***`; `reveal()` is the only way to the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def reveal(self) -> str:
        """The text, for the outgoing copy of a request only."""
        return self._text


class Credentials:
    """Looks names up in the environment, then in the file."""

    __slots__ = ("_environment", "_file")

    def __init__(self, environment: Mapping[str, str], file: Mapping[str, str]) -> None:
        self._environment = environment
        self._file = file

    def __repr__(self) -> str:
        return f"Credentials({sorted(self._file)})"

    def find(self, name: str) -> Secret | None:
        """The credential of that name, or None when neither place has it."""
        text = self._environment.get(name) or self._file.get(name)
        return Secret(text) if text else None

    def text(self, name: str) -> str | None:
        """A plain setting of that name (a base URL), or None."""
        return self._environment.get(name) or self._file.get(name)


def load(path: Path, environment: Mapping[str, str]) -> Credentials:
    """Read `credentials.env`: `NAME=value` lines, `#` comments. Raises ConfigError when others may read the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Credentials(environment, {})
    with open(descriptor, encoding="utf-8") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            import shlex

            why = f"mode {stat.S_IMODE(mode):04o}: others on this machine may read your keys"
            raise ConfigError(f"{path}: {why}", hint=f"chmod 600 {shlex.quote(str(path))}")
        values: dict[str, str] = {}
        for number, line in enumerate(file, start=1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, equals, value = line.removeprefix("export ").partition("=")
            if not equals or not name.strip().isidentifier():
                raise ConfigError(f"{path}: line {number}: not NAME=value", hint=f"edit {path}")
            values[name.strip()] = value.strip().strip("\"'")
    return Credentials(environment, values)
