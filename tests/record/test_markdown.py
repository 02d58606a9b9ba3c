import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from amem.model.entry import Entry, EntryType, Status, Tier
from amem.model.ids import _ALPHABET
from amem.model.label import Label
from amem.record import markdown
from amem.record.foreign import load
from amem.record.markdown import KEYS, Malformed
from tests.record.made import QUICK, entry

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
IDS = st.text(_ALPHABET, min_size=12, max_size=12).map(lambda tail: f"mem-me-{tail}")
JSON = st.recursive(st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6)  # fmt: skip
ENTRIES = st.builds(
    Entry,
    id=IDS, version=st.integers(1, 1 << 30), type=st.sampled_from(EntryType), title=TEXT, summary=TEXT, domain=st.just("dom-me"),
    classification=st.sampled_from(Label), tier=st.sampled_from(Tier), status=st.sampled_from(Status), author=TEXT,
    written_at=st.just("2026-11-30T07:25:57.123Z"), body=st.text(st.characters(exclude_categories=["Cs"])),
    session=st.none() | st.just("ses-01234567"), task=st.none() | st.just("task-me-01234567"),
    left_by=st.none() | st.sampled_from(markdown.LEFT_BY), owner=st.none() | TEXT, review_by=st.none() | st.dates().map(str),
    sources=st.lists(TEXT, max_size=3).map(tuple), supersedes=st.lists(IDS, max_size=3).map(tuple), superseded_by=st.none() | IDS,
    basis=st.none() | st.sampled_from(markdown.BASES), valid_from_at=st.none() | st.just("2026-01-01T00:00:00.000Z"),
    valid_to_at=st.none(), lineage=st.none() | st.sampled_from(Tier),
    extra=st.dictionaries(TEXT.filter(lambda key: key not in KEYS), JSON, max_size=3),
)  # fmt: skip


@QUICK
@given(ENTRIES)
def test_an_entry_comes_back_as_it_was_written(made: Entry) -> None:
    data = markdown.format(made)
    assert markdown.parse(data) == made
    assert data.endswith(b"\n---\n" + made.body.encode())


@QUICK
@given(ENTRIES)
def test_yaml_reads_the_own_form_as_the_same_values(made: Entry) -> None:
    front = markdown.split(markdown.format(made)).front
    assert load(front) == markdown.own_form(front)


@QUICK
@given(ENTRIES)
def test_another_yaml_library_reads_the_own_form(made: Entry) -> None:
    front = markdown.split(markdown.format(replace(made, extra={}))).front
    values = yaml.safe_load(front)
    assert {key: values[key] for key in ("id", "version", "title", "summary", "author")} == {
        "id": made.id, "version": made.version, "title": made.title, "summary": made.summary, "author": made.author,
    }  # fmt: skip


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes_are_read_whole_or_malformed(data: bytes) -> None:
    for content in (data, b"---\n" + data, b"---\n" + data + b"\n---\n", b"---\nid: " + data + b"\n---\nbody"):
        with suppress(Malformed):
            markdown.parse(content)


@QUICK
@given(ENTRIES, st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_damaged_file_is_malformed_or_another_whole_entry(made: Entry, at: int, noise: bytes) -> None:
    data = bytearray(markdown.format(made))
    data[at : at + len(noise)] = noise
    with suppress(Malformed):
        markdown.format(markdown.parse(bytes(data)))


def _file(*lines: str, body: str = "body\n") -> bytes:
    values = {"id": '"mem-me-0123456789ab"', "version": "1", "type": "fact", "title": "T", "domain": "dom-me", "classification": "internal",
              "tier": "raw", "status": "active", "author": "human:a:b", "written_at": "2026-11-30"}  # fmt: skip
    for line in lines:
        key, _, value = line.partition(": ")
        values[key] = value
    return ("---\n" + "".join(f"{key}: {value}\n" for key, value in values.items()) + "---\n" + body).encode()


def test_a_hand_written_file_keeps_its_texts_as_texts() -> None:
    made = markdown.parse(
        _file("title: no", "summary: 12:30:00", "review_by: 2026-12-01", "mine: 1_000", "count: 3", "flag: true", "gone: null")
    )
    assert (made.title, made.summary, made.review_by) == ("no", "12:30:00", "2026-12-01")
    assert made.written_at == "2026-11-30T00:00:00.000Z"
    assert made.extra == {"mine": "1_000", "count": 3, "flag": True, "gone": None}


def test_a_title_that_looks_like_a_number_is_text() -> None:
    assert markdown.parse(_file("title: 2026")).title == "2026"


def test_unknown_keys_survive_a_rewrite_of_a_hand_edited_file() -> None:
    made = markdown.parse(_file("tags: [a, 'b: c', {d: 1.5}]", '"odd key": yes'))
    assert markdown.parse(markdown.format(made)) == made
    assert made.extra == {"tags": ["a", "b: c", {"d": 1.5}], "odd key": "yes"}


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_line_ends_of_the_body_are_kept(newline: str) -> None:
    data = (
        _file(body="one\r\ntwo\n\x00\t---\nthree").replace(b"\n", newline.encode(), 12)
        if newline == "\r\n"
        else _file(body="one\r\ntwo\n\x00")
    )
    assert markdown.parse(data).body.startswith("one")
    assert markdown.parse(data).body.encode() in data


def test_a_byte_order_mark_is_no_content() -> None:
    assert markdown.parse(b"\xef\xbb\xbf" + _file()).title == "T"


BAD = {
    "no front matter": (b"hello", "does not begin"),
    "not closed": (b"---\nid: x\n", "not closed"),
    "not UTF-8": (_file(body="x") + b"\xff", "not UTF-8"),
    "duplicate key in YAML": (_file().replace(b"tier: raw\n", b"tier: raw\ntier: verified\n"), "comes twice"),
    "duplicate key in JSON": (markdown.format(entry()).replace(b'tier: "curated"\n', b'tier: "raw"\ntier: "verified"\n'), "comes twice"),
    "two keys on a line": (markdown.format(entry()).replace(b'tier: "curated"', b'tier: "raw", "x": "verified"'), "not YAML"),
    "duplicate inside": (_file('x: {"a": 1, "a": 2}'), "comes twice"),
    "alias": (_file("x: &a [1]", "y: *a"), "anchor"),
    "tag": (_file("x: !!python/object:os.system a"), "tag"),
    "tag on a title": (_file("title: !!binary aGk="), "tag"),
    "list at the top": (b"---\n- a\n---\n", "no mapping"),
    "empty": (b"---\n\n---\n", "too early"),
    "second document": (b"---\na: b\n...\nc: d\n---\n", "YAML"),
    "deep": (_file("x: " + "[" * 500 + "]" * 500), "deeper"),
    "infinite": (_file("x: 1e999"), "finite"),
    "half a surrogate": (_file('x: "\\ud800"'), "YAML"),
    "huge front matter": (_file("x: " + "a" * 70_000), "longer"),
    "id leaves the folder": (_file("id: ../../etc/passwd"), "no entry id"),
    "id of another domain": (_file("domain: dom-you"), "not the one"),
    "unknown label": (_file("classification: secret"), "classification"),
    "no label": (_file().replace(b"classification: internal\n", b""), "classification: missing"),
    "version": (_file("version: true"), "version"),
    "version 0": (_file("version: 0"), "version"),
    "date": (_file("review_by: soon"), "review_by"),
    "instant": (_file("written_at: yesterday"), "written_at"),
    "supersedes no id": (_file("supersedes: [x]"), "supersedes"),
    "sources no list": (_file("sources: x"), "sources"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_whole_is_malformed(case: str) -> None:
    data, why = BAD[case]
    with pytest.raises(Malformed, match=why):
        markdown.parse(data)


@pytest.mark.parametrize(
    "change", [{"title": "\ud800"}, {"body": "\udfff"}, {"extra": {"tier": "verified"}}, {"extra": {"x": float("nan")}}]
)
def test_what_cannot_be_written_whole_is_malformed(change: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        markdown.format(replace(entry(), **change))


def test_the_own_form_is_one_json_value_a_line_in_a_fixed_order() -> None:
    lines = markdown.split(markdown.format(entry("Ü\n\u2028", sources=("file:a",)))).front.splitlines()
    keys = [line.split(": ", 1)[0] for line in lines]
    assert keys == [key for key in KEYS if key in keys]
    assert json.loads(lines[3].split(": ", 1)[1]) == "Ü\n\u2028"
