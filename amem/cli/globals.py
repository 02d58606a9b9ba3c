"""The flags that may stand anywhere before `--`, taken off the command line before click sees it."""

from collections.abc import Sequence

from amem.errors import UsageError
from amem.typed import NamedTuple


class Globals(NamedTuple):
    """What the global flags said."""

    root: str | None = None
    json: bool = False
    color: bool = True
    principal: str | None = None
    """`--as`: another person to act as."""
    version: bool = False


_VALUED = ("--root", "--as")


def split(argv: Sequence[str]) -> tuple[Globals, list[str]]:
    """Take the global flags out of `argv`. Raises UsageError when one lacks its value."""
    found, rest = Globals(), []
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif flag in _VALUED:
            if not equals:
                value = next(words, "")
            if not value:
                raise UsageError(f"{flag} needs a value", hint="amem --help")
            found = found._replace(root=value) if flag == "--root" else found._replace(principal=value)
        elif word == "--json":
            found = found._replace(json=True)
        elif word == "--version":
            found = found._replace(version=True)
        elif word == "--no-color":
            found = found._replace(color=False)
        else:
            rest.append(word)
    return found, rest
