"""Cut Markdown into sections: one entry of a seeded record for each.

Pure. Reads headings as CommonMark does where it matters here (ATX and setext; not inside fences or comments; front matter
set aside). Every line of the text but the headings themselves stands in exactly one section.
"""

import re
from collections.abc import Iterator

from amem.typed import NamedTuple

TITLE_LIMIT = 200
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
"""The hashes that may close a heading: `## Title ##`."""
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_NOT_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}(?:[-*+>|]|\d{1,9}[.)]\s|<)")
"""Lines that do not begin a paragraph, so that dashes below them are a rule and no heading."""


class Section(NamedTuple):
    """One section's own text, without that of the sections below it."""

    title: str
    """`file: Heading > Subheading`, at most TITLE_LIMIT characters; `file` alone for what stands before the first heading."""
    body: str
    line: int
    """Where the body's section begins in the file: its heading's line, from 1."""


def sections(markdown: str, name: str) -> list[Section]:
    """Cut a text; `name` is the file as titles should call it. Sections without text of their own are left out."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    body: list[str] = []
    begins = 1

    def close() -> None:
        text = "\n".join(body).strip("\n")
        if text.strip():
            found.append(Section(_title(name, [heading for _level, heading in path]), text.rstrip() + "\n", begins))
        body.clear()

    for number, level, text in _lines(markdown):
        if level:
            close()
            path[:] = [(above, heading) for above, heading in path if above < level] + [(level, text)]
            begins = number
        else:
            body.append(text)
    close()
    return found


def _title(name: str, headings: list[str]) -> str:
    path = " > ".join(heading for heading in headings if heading)
    title = " ".join("".join(c if c.isprintable() else " " for c in (f"{name}: {path}" if path else name)).split())
    return title if len(title) <= TITLE_LIMIT else title[: TITLE_LIMIT - 1].rstrip() + "…"


def _lines(markdown: str) -> Iterator[tuple[int, int, str]]:
    """Number, heading level (0 for text) and text of each line; a setext heading's two lines come as one."""
    lines = markdown.replace("\r\n", "\n").split("\n")
    at = _after_front_matter(lines)
    fence = ""
    comment = False
    while at < len(lines):
        line = lines[at]
        at += 1
        if fence:
            closing = line.strip()
            if closing and set(closing) == {fence[0]} and len(closing) >= len(fence) and not line.startswith("    "):
                fence = ""
        elif comment:
            comment = "-->" not in line
        elif match := _FENCE.match(line):
            fence = match[1]
        elif line.lstrip().startswith("<!--"):
            comment = "-->" not in line
        elif match := _ATX.match(line):
            yield at, len(match[1]), _CLOSING.sub("", match[2] or "").strip()
            continue
        elif at < len(lines) and not _NOT_PARAGRAPH.match(line) and (under := _SETEXT.match(lines[at])) and _alone(lines, at - 1):
            yield at, 1 if under[1][0] == "=" else 2, line.strip()
            at += 1
            continue
        yield at, 0, line


def _alone(lines: list[str], at: int) -> bool:
    """Say whether a line stands first in its paragraph; a longer paragraph over dashes is taken for text and a rule."""
    return at == 0 or not lines[at - 1].strip() or bool(_ATX.match(lines[at - 1]))


def _after_front_matter(lines: list[str]) -> int:
    if lines and lines[0].rstrip() == "---":
        for at, line in enumerate(lines[1:], 1):
            if line.rstrip() in ("---", "..."):
                return at + 1
    return 0
