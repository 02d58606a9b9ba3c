"""`amem cost` as a person types it, over a real usage store and ledger."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from amem.cli.main import run
from amem.egress import meter
from amem.egress.meter import CallRow
from amem.ledger.draft import Draft
from amem.ledger.opening import open_ledger
from amem.ledger.store import Filed
from amem.ledger.task import Task
from amem.model.call import Billing
from amem.settings import grants
from amem.settings.root import Root

Run = Callable[..., Any]
ONE, TWO = "ses-0000000a", "ses-0000000b"
PRICES = '[models."m"]\ninput = 2\noutput = 10\ncache_read = 0.2\ncache_write = 2.5\n'


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert run(["--root", str(root.path), "cost", *words]) == code
        out, err = capsys.readouterr()
        return json.loads(out) if "--json" in words and not code else out + err

    return call


def call(number: int, session: str, model: str, billing: Billing = Billing.METERED, **used: Any) -> CallRow:
    row: dict[str, Any] = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "at": "2026-11-30T10:00:00.000Z", "status": 200}
    row |= used
    return CallRow(
        id=f"call-{number:012}", session=session, domain="dom-me", principal="agent:claude", destination="anthropic", model=model,
        dialect="anthropic", billing=billing, **row,
    )  # fmt: skip


def completed(root: Root, session: str, *titles: str) -> list[str]:
    found = []
    with open_ledger(root, grants.load(root.grants)) as ledger:
        for title in titles:
            filed = ledger.create(Draft(domain="dom-me", title=title), by="human:asf:you", admit=True)
            assert isinstance(filed, Filed), filed
            held = ledger.claim_one(filed.task.id, by="agent:claude", session=session, capabilities=("code",))
            assert isinstance(held, Task), held
            done = ledger.complete(held.id, by="agent:claude", session=session, fence=held.fence, handoff="mem-me-000000000000")
            assert isinstance(done, Task), done
            found.append(held.id)
    return found


def test_sessions_days_and_tasks(root: Root, amem: Run) -> None:
    root.prices.write_text(PRICES)
    meter.keep(
        root,
        [
            call(1, ONE, "m-20261101", input=1_000_000, cache_read=500_000),
            call(2, ONE, "odd", output=12, at="2026-11-29T23:59:59.999Z"),
            call(3, TWO, "m", Billing.PLAN, input=40, output=2),
        ],
    )
    first, second = completed(root, ONE, "first", "second")
    (third,) = completed(root, TWO, "third")
    dear = {"session": ONE, "usd": 2.1, "floor": True, "unpriced": [{"model": "odd", "tokens": 12}], "plan_tokens": 0}
    plan = {"session": TWO, "usd": 0.0, "floor": False, "unpriced": [], "plan_tokens": 42}
    document = amem("--json")
    assert document["sessions"] == [dear, plan]
    assert {task["task"]: (task["usd"], task["floor"], task["title"]) for task in document["tasks"]} == {
        first: (1.05, True, "first"), second: (1.05, True, "second"), third: (0.0, False, "third"),
    }  # fmt: skip
    days = amem("--by", "day", "--json")["days"]
    assert [(day["day"], day["usd"], day["floor"]) for day in days] == [("2026-11-30", 2.1, False), ("2026-11-29", 0.0, True)]
    assert amem("--by", "session", "--limit", "1", "--json") == {"sessions": [dear]}
    shown = amem()
    assert f"{ONE}  2.1000+" in shown and f"{first}  1.0500+" in shown and "odd 12" in shown


def test_since_bounds_sessions_by_call_and_tasks_by_their_close(root: Root, amem: Run) -> None:
    root.prices.write_text(PRICES)
    meter.keep(root, [call(1, ONE, "m", output=100_000, at="2020-01-01T00:00:00.000Z")])
    (task,) = completed(root, ONE, "old calls, closed now")
    document = amem("--since", "1h", "--json")
    assert document["sessions"] == []
    assert [(one["task"], one["usd"]) for one in document["tasks"]] == [(task, 1.0)]
    assert amem("--since", "2999-01-01", "--json") == {"sessions": [], "tasks": []}


def test_without_prices_nothing_is_guessed(root: Root, amem: Run) -> None:
    assert amem() == "nothing was spent yet\n"
    meter.keep(root, [call(1, ONE, "m", input=5)])
    assert amem("--by", "session", "--json")["sessions"][0]["usd"] == 0
    assert f"{ONE}  0.0000+" in amem()


def test_a_wrong_price_table_is_named(root: Root, amem: Run) -> None:
    root.prices.write_text('[models."m"]\ninput = "cheap"\noutput = 1\n')
    assert "models.m.input: expected a number, found 'cheap'" in amem(code=2)


def test_the_timeline_of_a_task_has_money_tools_and_errors(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    root.prices.write_text(PRICES)
    meter.keep(
        root,
        [
            call(1, ONE, "m", input=1_000_000, output=1000),
            call(2, ONE, "m", status=529),
            call(3, ONE, "odd", input=7, partial=True),
        ],
    )
    (task,) = completed(root, ONE, "Count")
    kept = root.record / "dom-me" / ".contexts" / ONE
    kept.mkdir(parents=True)
    (kept / "calls.jsonl").write_text('{"tools":["Bash","Read","Bash"]}\n{"tools":["Bash"]}\n{"torn')
    capsys.readouterr()
    assert run(["--root", str(root.path), "--json", "task", "timeline", task]) == 0
    (attempt,) = json.loads(capsys.readouterr().out)["attempts"]
    assert {name: attempt.get(name) for name in ("calls", "tokens", "usd", "floor", "tools", "errors")} == {
        "calls": 3, "tokens": 1_001_007, "usd": 2.01, "floor": True, "tools": {"Bash": 3, "Read": 1}, "errors": 2,
    }  # fmt: skip
    assert run(["--root", str(root.path), "task", "timeline", task]) == 0
    out = capsys.readouterr().out
    assert "3 calls · 1001007 tokens · $2.0100+ · 2 errors" in out and "tools: Bash 3, Read 1" in out


def test_calls_through_the_gateway_stand_beside_its_spend_log(root: Root, amem: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    through = call(1, ONE, "m", input=10, cache_read=20, output=5)._replace(destination="llmao")
    meter.keep(root, [through, call(2, ONE, "m", input=999, output=999)])
    log = [{"model_group": "m", "prompt_tokens": 30, "completion_tokens": 5, "spend": 0.5}]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(log)))
    books = {"calls": 1, "input": 30, "output": 5}
    assert amem("--reconcile", "--json") == {"reconciled": [{"model": "m", "agrees": True, "ours": books, "theirs": books, "usd": 0.5}]}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(log * 2)))
    assert "differs" in amem("--reconcile", code=3)
    monkeypatch.setattr("sys.stdin", io.StringIO("<html>"))
    assert "stdin is no spend log" in amem("--reconcile", code=2)
