"""A task as a row and back."""

import hypothesis.strategies as st
from hypothesis import given, settings

from amem.ledger import rows
from amem.ledger.task import Status, Task
from tests.ledger.test_projection import CLAIMED, PLAIN

WORDS = st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), max_size=3).map(tuple)
TASKS = st.builds(
    Task._replace, st.sampled_from([PLAIN, CLAIMED]), title=st.text(min_size=1, max_size=20),
    status=st.sampled_from(Status), requires=WORDS,
    handoffs=WORDS, depends_on=WORDS, check=st.lists(st.text(max_size=9), max_size=2).map(tuple), lessons=WORDS,
    blocker=st.none() | st.text(max_size=9), budget_tokens=st.none() | st.integers(1, 10**9), rank=st.floats(-9, 99),
)  # fmt: skip


def _row(task: Task) -> list[object]:
    columns = rows.columns(task)
    return [columns[name] for name in rows.COLUMNS]


@settings(max_examples=50)
@given(TASKS)
def test_a_row_reads_back(task: Task) -> None:
    assert rows.task(_row(task)) == task


@settings(max_examples=50)
@given(TASKS, TASKS)
def test_changes_turn_one_row_into_the_other(before: Task, after: Task) -> None:
    columns = rows.columns(before) | rows.changes(before, after)
    assert columns == rows.columns(after)
    assert rows.changes(after, after) == {}
