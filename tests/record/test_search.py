import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.record import search
from amem.record.search import beginnings, content, fold, narrowed, prepared, question, ranked
from tests.record.made import QUICK


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("How do I deploy the server?", '("deploy"* OR "server"*)'),
        ("the of and", '("the" OR "of" OR "and")'),
        ("API key", '("api" OR "key")'),
        ("Bob's dog", '("bob" OR "dog")'),
        ('"quoted" OR NEAR(a b) acl:x*', '("quoted"* OR "near" OR "b" OR "acl" OR "x")'),
        ("deploy deploy", '("deploy"*)'),
        ("東京都", '("026481020140" OR "020140037117")'),
        ("猫", '("029483"*)'),
        ("GPUを使う", '("012434020351" OR "020351012358" OR "gpu")'),
        ("🎉 — \"' * \x00", ""),
        ("\ue0007", '("7")'),
        ("", ""),
    ],
)
def test_a_question_becomes_its_quoted_words(query: str, match: str) -> None:
    assert question(query).match == match


@QUICK
@given(st.text())
def test_a_question_never_holds_what_marks_an_acl_token(query: str) -> None:
    asked = question(query + " \ue0001 \ue000fact")
    assert "\ue000" not in asked.match
    assert len(asked.stems) <= search.MAX_WORDS


def test_a_pasted_page_is_as_long_as_its_first_words() -> None:
    asked = question(" ".join(f"word{n:05}" for n in range(2000)))
    assert len(asked.stems) == search.MAX_WORDS


def test_stop_words_leave_only_when_others_are_left() -> None:
    assert content("what is the port") == ["port"]
    assert content("what is the") == ["what", "is", "the"]


def test_unspaced_scripts_are_taken_out_as_pairs() -> None:
    assert prepared("GPUを使う plain") == ("GPU  plain", "012434020351 020351012358")
    assert prepared("naïve — plain") == ("naïve — plain", "")


def test_folding_drops_accents() -> None:
    assert fold("Crème BRÛLÉE") == "creme brulee"


def test_words_are_remembered_by_how_they_begin() -> None:
    assert beginnings("Deploying the Crème, deployed by O'Brien — “twice”") == "deplo\nthe\ncreme\nby\no\nbrien\ntwice"
    assert beginnings("GPUを使う。 Deploying") == "gpuを使う\ndeplo"
    assert beginnings("") == ""


@QUICK
@given(st.text(), st.text())
def test_a_text_has_each_word_of_itself(before: str, after: str) -> None:
    said = beginnings(f"{before} {after}")
    assert all(stem in said for stem in question(before).stems + question(after).stems)


def test_the_filter_goes_beside_the_words() -> None:
    assert narrowed('("a")', [1, 2], ["fact"]) == '("a") AND acl : ("\ue0001" OR "\ue0002") AND acl : ("\ue000fact")'


def test_entries_with_every_word_come_first() -> None:
    found = ranked([(1, -9.0, None, 300, "deploy"), (2, -1.0, None, 300, "deploy server")], ("deplo", "serve"))
    assert found == ([2, 1], True)


def test_more_words_weigh_more() -> None:
    stems = ("one", "two", "three")
    found = ranked([(1, -2.0, None, 300, "one"), (2, -1.9, None, 300, "one two")], stems)
    assert found == ([2, 1], False)


def test_a_line_weighs_less_than_a_paragraph_of_the_same_score() -> None:
    assert ranked([(1, -2.0, None, 3, "one"), (2, -2.0, None, 300, "one")], ("one",)).order == [2, 1]


def test_a_part_of_a_source_that_answers_well_is_lifted() -> None:
    alone = [
        (1, -2.0, None, 300, "one"),
        (2, -2.0, 7, 300, "one"),
        (3, -1.9, 8, 300, "one"),
        (4, -1.8, 8, 300, "one"),
        (5, -1.8, 8, 300, "one"),
    ]
    assert ranked(alone, ("one", "two")).order == [1, 3, 4, 5, 2]


def test_nothing_found_is_nothing() -> None:
    assert ranked([], ("a",)) == ([], False)
