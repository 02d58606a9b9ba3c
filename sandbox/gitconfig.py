"""git's configuration read by hand: the files may be a session's, and git itself would run what they name.

A file is read only when it is a small regular one. Nothing here says what a setting means; that is for whoever asks.
"""

import os
import stat

from amem.typed import Callable, Iterator, NamedTuple

_MOST_BYTES = 1 << 20
_MOST_INCLUDED = 64
"""Files of configuration that one is followed through."""


class Setting(NamedTuple):
    """One line of a git configuration."""

    file: str
    """Where it stands."""
    section: str
    sub: str
    """The section's second part: a name, or the condition of an `includeIf`."""
    key: str
    value: str

    def included(self, home: str | None = None) -> str | None:
        """The file that this line includes; None where it includes none, or one in a home that is not known."""
        if self.section not in ("include", "includeif") or self.key != "path":
            return None
        path = self.value if home is None else expanded(self.value, home)
        return None if path.startswith("~") else os.path.join(os.path.dirname(self.file), path)


def expanded(path: str, home: str) -> str:
    """A path of a configuration, where `~` is the owner's home; another user's stays as it is."""
    return os.path.join(home, path[2:]) if path.startswith("~/") else path


def followed(
    path: str, home: str | None = None, applies: Callable[[Setting], bool] = lambda setting: True, seen: set[str] | None = None
) -> Iterator[Setting]:
    """The settings of a git configuration and of those that it includes, in their order, each file once.

    `applies`: whether a conditional one counts. Any does, where it is asked what git may obey.
    """
    seen = set() if seen is None else seen
    if path in seen or len(seen) >= _MOST_INCLUDED:
        return
    seen.add(path)
    text = read(path)
    if text is None and os.path.lexists(path):
        text = read(os.path.realpath(path))
    for setting in settings(text or "", path):
        yield setting
        further = setting.included(home)
        if further is not None and (setting.section == "include" or applies(setting)):
            yield from followed(further, home, applies, seen)


def settings(config: str, file: str = "") -> Iterator[Setting]:
    """The settings of a text, in their order, as git-config(1) has the syntax; those without a value are left out."""
    section = sub = ""
    lines = iter(config.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"))
    for line in lines:
        line = line.strip(_BLANK)
        if line.startswith("["):
            words, line = _quoted(line[1:], "]", iter(()))
            section, sub = _head(words)
        key, equals, text = line.partition("=")
        if equals and not key.lstrip(_BLANK).startswith(("#", ";")):
            yield Setting(file, section, sub, key.strip(_BLANK).lower(), _quoted(text.lstrip(_BLANK), "#;", lines)[0])


def _head(words: str) -> tuple[str, str]:
    """A section and its second part, which in the old way of writing stands behind a dot, in small letters."""
    section, *sub = words.split(None, 1) or [""]
    if not sub:
        section, *sub = section.lower().split(".", 1)
    return section.lower(), sub[0] if sub else ""


_BLANK = " \t\v\f\r"
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


def _quoted(text: str, ends: str, more: Iterator[str]) -> tuple[str, str]:
    """A text without its quotes and escapes, up to one of these marks outside of quotes; and what is behind that.

    `more`: the lines that it goes on with, where it ends with a backslash.
    """
    found: list[str] = []
    quoted, kept, at = False, 0, 0
    while at < len(text) and (quoted or text[at] not in ends):
        mark = text[at]
        at += 1
        if mark == '"':
            quoted = not quoted
        elif mark == "\\" and at == len(text):
            text, at = next(more, ""), 0
            continue
        elif mark == "\\":
            found.append(_ESCAPED.get(text[at], text[at]))
            at += 1
        else:
            found.append(mark)
        if quoted or mark not in _BLANK:
            kept = len(found)
    return "".join(found[:kept]), text[at + 1 :]


def read(path: str) -> str | None:
    """The text of a small regular file, opened without following a link or waiting for anybody; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
            return None
        return os.read(fd, _MOST_BYTES).decode(errors="surrogateescape")
    finally:
        os.close(fd)
