"""The splitter of Markdown into sections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.testing.corpus import TITLE_LIMIT, Section, sections

CASES = {
    "heading path": ("# A\nx\n## B\ny\n# C\nz\n", [("f: A", "x\n"), ("f: A > B", "y\n"), ("f: C", "z\n")]),
    "text before the first heading": ("intro\n\n# A\nx", [("f", "intro\n"), ("f: A", "x\n")]),
    "sections without text": ("# A\n\n## B\n\n### C\nx\n## D\n", [("f: A > B > C", "x\n")]),
    "closing hashes": ("## A ##\nx\n# B#\ny", [("f: A", "x\n"), ("f: B#", "y\n")]),
    "empty heading": ("# A\n## ##\nx", [("f: A", "x\n")]),
    "not a heading": ("#A\n####### B\n    # C\nx", [("f", "#A\n####### B\n    # C\nx\n")]),
    "fences": ("# A\n```sh\n# no\n~~~\n```` \n# B\n~~~\n# no\n```\n~~~~\n# C\ny", [
        ("f: A", "```sh\n# no\n~~~\n````\n"), ("f: B", "~~~\n# no\n```\n~~~~\n"), ("f: C", "y\n"),
    ]),
    "comments": ("<!-- # no\n# no\n-->\n# A\nx", [("f", "<!-- # no\n# no\n-->\n"), ("f: A", "x\n")]),
    "front matter": ("---\ntitle: x\n# no\n---\n# A\ny", [("f: A", "y\n")]),
    "front matter that does not end": ("---\nx", [("f", "---\nx\n")]),
    "setext": ("A\n===\nx\n\nB\n---\ny", [("f: A", "x\n"), ("f: A > B", "y\n")]),
    "rules and lists over dashes": ("# A\n\n---\nx\n\n- item\n---\n", [("f: A", "---\nx\n\n- item\n---\n")]),
    "line ends of another system": ("# A\r\nx\r\n## B\r\ny", [("f: A", "x\n"), ("f: A > B", "y\n")]),
    "nothing": ("", []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sections(case: str) -> None:
    text, expected = CASES[case]
    assert [(section.title, section.body) for section in sections(text, "f")] == expected


def test_section_knows_its_line() -> None:
    assert sections("pre\n# A\nx\n\nB\n---\ny\n", "f") == [
        Section("f", "pre\n", 1),
        Section("f: A", "x\n", 2),
        Section("f: A > B", "y\n", 5),
    ]


def test_titles_are_one_short_line() -> None:
    title = sections("# " + "long \x07" * 200 + "\nx", "f")[0].title
    assert len(title) <= TITLE_LIMIT and title.isprintable() and title.endswith("…")


@given(st.text(st.sampled_from("#-=`~<!> \nab\r\t"), max_size=200))
def test_nothing_is_invented_doubled_or_moved(text: str) -> None:
    lines = iter(line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    found = [line.rstrip() for section in sections(text, "f") for line in section.body.split("\n") if line.strip()]
    assert all(line in lines for line in found)  # `in` on an iterator goes on from the last hit, so the order is checked too


@given(st.text(st.sampled_from("ab`~<!> \n\t"), max_size=200))
def test_text_without_headings_is_one_section_and_whole(text: str) -> None:
    body = "".join(section.body for section in sections(text, "f"))
    assert body.split() == text.split() and len(sections(text, "f")) == bool(text.strip())
