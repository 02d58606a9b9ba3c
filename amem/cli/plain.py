"""A command line whose words are plain, read from the table of its flags without click, which is a sixth of a launch's start.

The table is the one place where the flags are declared: `amem.commands` makes click's options of it, for help and for completion. Whatever
is not plain, and whatever is wrong, is left to click to read or to complain of; where both read a line, they read the same.
"""

from amem.typed import Any, Callable, Iterable, NamedTuple, Sequence


class Flag(NamedTuple):
    """A flag and how its value is read: as text where nothing else is said."""

    name: str
    """`--max-procs`; its value goes by `max_procs`, unless `into` says otherwise."""
    help: str | None = None
    metavar: str | None = None
    default: Any = None
    into: str | None = None
    switch: bool = False
    """It takes no value."""
    off: str | None = None
    """The switch that takes it back."""
    choices: tuple[str, ...] = ()
    numbers: tuple[int, int | None] | None = None
    """The least and the most of a whole number."""
    kind: str = "text"
    """What `parse` reads, in click's complaints."""
    parse: Callable[[str], Any] | None = None
    """Reads the value; its ValueError is the reason why not."""
    many: bool = False
    shows_default: bool = False
    hidden: bool = False

    @property
    def value_name(self) -> str:
        """The name of its value."""
        return self.into or self.name[2:].replace("-", "_")

    @property
    def initial(self) -> Any:
        """Its value where it is not given."""
        return () if self.many else bool(self.default) if self.switch else self.default


def read(flags: Iterable[Flag], words: Sequence[str], rest: str) -> dict[str, Any] | None:
    """The values by name, with what stands behind `--` as `rest`; None for a line that is not plain."""
    known = {flag.name: flag for flag in flags}
    known |= {flag.off: flag for flag in known.values() if flag.off is not None}
    values: dict[str, Any] = {flag.value_name: flag.initial for flag in known.values()}
    values[rest] = ()
    left = iter(words)
    for word in left:
        if word == "--":
            values[rest] = tuple(left)
            break
        name, equals, text = word.partition("=")
        flag = known.get(name)
        if flag is None or (equals and flag.switch):
            return None
        if flag.switch:
            values[flag.value_name] = name == flag.name
            continue
        if not equals:
            text = next(left, "-")
            if text.startswith("-"):
                return None
        try:
            value = _value(flag, text)
        except ValueError:
            return None
        values[flag.value_name] = (*values[flag.value_name], value) if flag.many else value
    return values


def _value(flag: Flag, text: str) -> Any:
    """The value of a flag. Raises ValueError."""
    if flag.choices and text not in flag.choices:
        raise ValueError(text)
    if flag.numbers is not None:
        least, most = flag.numbers
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= (int(text) if most is None else most)):
            raise ValueError(text)
        return int(text)
    return text if flag.parse is None else flag.parse(text)


DOMAIN = Flag("--domain", "Default: the root's only one, else default_domain.", "DOM")
"""The flag that most commands have."""
