"""How results and errors are printed: the result alone on stdout; tables that fit 80 columns; control characters visible."""

import sys
from collections.abc import Container, Iterable, Sequence

from amem.errors import AmemError
from amem.typed import Any

WIDTH = 80


def print_json(document: Any) -> None:
    """Print one JSON document, as one line."""
    import json  # here and below: most commands print a table or nothing

    sys.stdout.write(inert(json.dumps(document, ensure_ascii=False, separators=(",", ":"))) + "\n")


def inert(document: str) -> str:
    """The same JSON document with what a terminal would act on as escapes: `json` keeps DEL, C1, bidi and half surrogates as they are."""
    if document.isprintable():
        return document
    import json

    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] if char > "\x7e" else char for char in document)


def visible(text: str) -> str:
    """The text with control and bidirectional characters as escapes; newline and tab stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text)


def one_line(text: str) -> str:
    """The text on one line, its control characters visible."""
    return visible(" ".join(text.split()))


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, stretch: int = -1, whole: Container[int] = ()) -> str:
    """Rows in columns that fit 80 characters: numbers to the right, the column `stretch` cut when there is no room.

    In the rows that `whole` counts, a last column without room goes on in lines below it instead.
    """
    values = list(rows)
    cells = [[one_line(str(value)) for value in row] for row in values]
    right = [bool(values) and all(isinstance(row[i], (int, float)) for row in values) for i in range(len(headers))]
    widths = [max([len(head), *(_columns(row[i]) for row in cells)]) for i, head in enumerate(headers)]
    room = WIDTH - sum(widths) - 2 * (len(headers) - 1)
    widths[stretch] = max(8, widths[stretch] + min(0, room))
    shown = [list(headers)]
    for number, row in enumerate(cells):
        first, *more = _lines(row[-1], widths[-1]) if number in whole else row[-1:]
        shown += [[*row[:-1], first], *([*([""] * (len(row) - 1)), line] for line in more)]
    return "\n".join(_join(row, widths, right) for row in shown)


def _lines(text: str, columns: int) -> list[str]:
    """The text in lines of so many columns, at least one: broken between words, and within one that is longer than a line."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if _columns(longer) <= columns:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        while _columns(word) > columns:
            lines[-1] = _cut(word, columns)
            word = word[len(lines[-1]) :]
            lines.append("")
        lines[-1] = word
    return lines


def _join(values: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cut = [value if _columns(value) <= width else _cut(value, width - 1) + "…" for value, width in zip(values, widths, strict=True)]
    blank = [" " * (width - _columns(value)) for value, width in zip(cut, widths, strict=True)]
    return "  ".join(space + value if r else value + space for value, space, r in zip(cut, blank, right, strict=True)).rstrip()


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes: an ideograph takes two, an accent of its own none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 0 if combining(char) else 1 for char in text)


def _cut(text: str, columns: int) -> str:
    """As much of the text's beginning as fits."""
    while _columns(text) > columns:
        text = text[: -max(1, (_columns(text) - columns) // 2)]
    return text


def note(text: str) -> None:
    """A line for the person, on stderr: progress, a warning, a hint."""
    sys.stderr.write(f"amem: {one_line(text)}\n")
    sys.stderr.flush()


def rooted(hint: str, root: str) -> str:
    """A hint as it has to be given where the root was named by `--root`: pasted as it stands, it would look into another one."""
    import shlex

    words = hint.split()
    if words[:1] != ["amem"] or "--root" in words or "--help" in words:
        return hint
    return f"amem --root {shlex.quote(root)}{hint.removeprefix('amem')}"


def fail(error: AmemError, as_json: bool) -> None:
    """Print an error: what and why, then one command that helps."""
    if as_json:
        import json

        body: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.hint:
            body["hint"] = error.hint
        sys.stderr.write(inert(json.dumps({"error": {**body, **error.facts}}, ensure_ascii=False, default=str)) + "\n")
        return
    sys.stderr.write(f"amem: {visible(error.message)}\n")
    if error.hint:
        sys.stderr.write(f"try: {visible(error.hint)}\n")
