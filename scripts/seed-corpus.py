#!/usr/bin/env python3
"""Seed a record from Markdown: one entry for each section, through the same gates as any other write (G-610).

    scripts/seed-corpus.py --root R [--domain DOM] PATH…

A PATH is a file or a folder. A section that is in the record word for word is left alone, one whose text has changed
replaces its entry, so the script may be run again. What the gates hold is for the owner to release; it is counted and named.
"""

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from amem.errors import AmemError, UsageError
from amem.memory.draft import draft
from amem.memory.outcomes import Held, Refused, Written
from amem.memory.session import Memory, Session, open_memory, owner_session
from amem.memory.write import write
from amem.model.label import Label
from amem.record.rows import Filter
from amem.settings import grants, root
from amem.testing.corpus import Section, sections

SUFFIXES = (".md", ".markdown")


class Known(NamedTuple):
    """An entry that is there already under a section's title."""

    id: str
    source: str
    body: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Seed a record from Markdown, one entry a section.")
    parser.add_argument("--root", help="the root (default: AMEM_ROOT, else ~/.amem)")
    parser.add_argument("--domain", help="the domain (default: the root's only one)")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    options = parser.parse_args()
    try:
        place = root.locate(options.root, os.environ).existing()
        allowed = grants.load(place.grants)
        domain = chosen(allowed, options.domain)
        found = [item for path in options.paths for item in read(path)]
        memory = open_memory(place, allowed)
        try:
            tally = seed(memory, owner_session(memory, allowed.owner, domain), found)
        finally:
            memory.close()
    except AmemError as exc:
        print(f"seed-corpus: {exc.message}", *([f"try: {exc.hint}"] if exc.hint else []), sep="\n", file=sys.stderr)
        return exc.exit_code
    print(
        ", ".join(
            f"{tally[word]} {word}" for word in ("written", "replaced", "unchanged", "held", "refused") if tally[word] or word == "written"
        )
    )
    return 1 if tally["refused"] else 0


def chosen(allowed: grants.Grants, asked: str | None) -> str:
    """The domain asked for, the only one, or the default one. Raises UsageError that names them."""
    only = next(iter(allowed.domains)) if len(allowed.domains) == 1 else None
    domain = asked or only or allowed.default_domain
    if domain is None or domain not in allowed.domains:
        raise UsageError(f"--domain {domain or 'is needed'}: this root has {', '.join(allowed.domains)}")
    return domain


def read(path: Path) -> Iterator[tuple[str, Section]]:
    """The sections below a path, each with its file's name as entries should cite it. Raises UsageError when there is none."""
    if not path.exists():
        raise UsageError(f"{path}: is not there")
    base = path.absolute().parent
    files = [path.absolute()] if path.is_file() else sorted(markdown_files(path.absolute()))
    for file in files:
        name = str(file.relative_to(base))
        yield from ((name, section) for section in sections(file.read_text(encoding="utf-8", errors="replace"), name))


def markdown_files(folder: Path) -> Iterator[Path]:
    """The Markdown files below a folder; hidden ones and links are left out."""
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(base, name) for name in files if name.endswith(SUFFIXES) and not name.startswith("."))
        yield from (path for path in paths if not path.is_symlink())


def seed(memory: Memory, session: Session, found: list[tuple[str, Section]]) -> "Counter[str]":
    """Write what is new; count what became of each section."""
    known = entries(memory, session.domain)
    twice = {title for title, count in Counter(section.title for _name, section in found).items() if count > 1}
    tally: Counter[str] = Counter()
    for number, (name, section) in enumerate(found, 1):
        source, there = f"file:{name}", known[section.title]
        if any(entry.body == section.body for entry in there):
            tally["unchanged"] += 1
            continue
        # Under a title that is there twice nothing says which text took whose place.
        replaced = [entry.id for entry in there if entry.source == source] if section.title not in twice else []
        try:
            asked = draft(type="fact", title=section.title, body=section.body, sources=[source], supersedes=replaced)
        except UsageError as exc:
            note(f"{name}:{section.line}: {exc.message}")
            tally["refused"] += 1
            continue
        match write(memory, session, asked):
            case Written(entry):
                tally["replaced" if replaced else "written"] += 1
                known[section.title].append(Known(entry.id, source, section.body))
            case Held(id=held, reason=reason):
                note(f"{name}:{section.line}: held as {held}: {reason}")
                tally["held"] += 1
            case Refused(reason=reason):
                note(f"{name}:{section.line}: refused: {reason}")
                tally["refused"] += 1
        if sys.stderr.isatty():
            print(f"\r{number}/{len(found)} sections", end="\n" if number == len(found) else "", file=sys.stderr, flush=True)
    return tally


def entries(memory: Memory, domain: str) -> defaultdict[str, list[Known]]:
    """The active facts of a domain that cite a file, by title."""
    known: defaultdict[str, list[Known]] = defaultdict(list)
    for row in memory.index.list(Filter(domains=(domain,), max_label=Label.RESTRICTED), limit=0).rows:
        source = next((ref for ref in row.sources if ref.startswith("file:")), None)
        if source is not None and (there := memory.index.read(row.id)) is not None:
            known[row.title].append(Known(row.id, source, there.entry.body))
    return known


def note(text: str) -> None:
    print(f"seed-corpus: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
