"""`amem usage` and what `amem doctor` says of prices and alarms, over a real usage store."""

import json
from collections.abc import Callable
from typing import Any
from unicodedata import east_asian_width

import pytest

from amem.cli.main import run
from amem.egress import meter
from amem.egress.meter import CallRow
from amem.model import clock
from amem.model.call import Billing, ObservedBy
from amem.settings.root import Root

Run = Callable[..., str]


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> str:
        capsys.readouterr()
        run(["--root", str(root.path), *words])
        return capsys.readouterr().out

    return call


def call(number: int, **more: Any) -> CallRow:
    told: dict[str, Any] = {"at": "2026-11-29T10:00:00.000Z", "model": "m", "destination": "openai", "input": 10, "output": 5}
    return CallRow(**{
        "id": f"call-{number:012}", "session": "ses-0000000a", "domain": "dom-me", "principal": "agent:x", "dialect": "chat",
        "status": 200, "billing": Billing.METERED, **told, **more,
    })  # fmt: skip


def test_each_row_says_who_counted_and_who_pays_and_what_is_not_as_usual(root: Root, amem: Run) -> None:
    meter.keep(root, [
        call(1), call(2, alarm="other_model"), call(3, status=403, input=None, output=None, refused="denied"),
        call(4, source=ObservedBy.HARNESS, billing=Billing.PLAN),
    ])  # fmt: skip
    assert amem("usage").splitlines() == [
        "source egress, billing metered",
        "destination  model     calls  input  output  cached  written",
        "openai       m             3     20      10       0        0",
        "openai m: 403:1 alarms:1",
        "",
        "source harness, billing plan",
        "destination  model     calls  input  output  cached  written",
        "openai       m             1     10       5       0        0",
    ]
    metered = next(row for row in json.loads(amem("usage", "--json"))["usage"] if row["source"] == "egress")
    assert (metered["calls"], metered["input"], metered["alarms"], metered["status"]) == (3, 20, 1, {"403": 1})


def test_a_table_fits_eighty_columns_whatever_was_used(root: Root, amem: Run) -> None:
    used = {"input": 10**8, "output": 10**7, "cache_read": 10**9, "cache_write": 10**8}
    wild = call(1, model="claude-\x1b[31m" + "日本語" * 40, destination="github-copilot", **used)
    failed = [call(400 + n, status=400 + n, input=None, output=None) for n in range(40)]
    meter.keep(root, [wild, *failed, call(2, at="no instant")])
    for words in ((), ("--by", "day"), ("--by", "session", "--by", "day"), ("--by", "session", "--by", "model")):
        lines = amem("usage", *words).splitlines()
        assert max(sum(2 if east_asian_width(char) in "WF" else 1 for char in line) for line in lines) <= 80, words
        assert all(line.isprintable() for line in lines)


def test_a_day_is_the_owners_and_a_row_without_one_does_no_harm(root: Root, amem: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    meter.keep(root, [call(1, at="2026-11-29T23:30:00.000Z"), call(2, at="2026-11-28T10:00:00.000Z", input=40), call(3, at="no instant")])
    with root.grants.open("a") as grants:
        grants.write('\n[spend]\nzone = "Europe/Berlin"\n')
    told = json.loads(amem("usage", "--by", "day", "--json"))
    assert ([row["day"] for row in told["usage"]], told["zone"]) == (["2026-11-28", "2026-11-30", "no instant"], "Europe/Berlin")
    told = json.loads(amem("cost", "--by", "day", "--json"))
    assert ({row["day"] for row in told["days"]}, told["zone"]) == ({"2026-11-28", "2026-11-30", "no instant"}, "Europe/Berlin")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "2026-11-28 █ ▃ 2026-11-30   most in a day: 45 tokens" in amem("usage")


def test_bars_show_on_a_terminal_only(root: Root, amem: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    meter.keep(root, [call(1), call(2, at="2026-11-30T10:00:00.000Z", input=25)])
    assert "█" not in amem("usage")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "2026-11-29 ▄█ 2026-11-30   most in a day: 30 tokens" in amem("usage")
    root.prices.write_text('[models."m"]\ninput = 1000000\noutput = 0\n')
    assert "2026-11-29 ▃█ 2026-11-30   most in a day: 25 dollars" in amem("cost")


def test_the_doctor_names_a_wrong_price_table_and_the_alarms_of_the_last_days(root: Root, amem: Run) -> None:
    def found() -> list[dict[str, str]]:
        checks: list[dict[str, str]] = json.loads(amem("doctor", "--json"))["checks"]
        return [check for check in checks if check["name"] in ("prices", "answers")]

    assert [(check["name"], check["state"]) for check in found()] == [("prices", "ok")]
    root.prices.write_text('[models."m"]\ninput = -1\noutput = 0\n')
    long_ago = call(2, alarm="other_model", at="2026-01-01T00:00:00.000Z")
    meter.keep(root, [call(1, alarm="backend_changed", at=clock.stamp(clock.now())), long_ago])
    prices, answers = found()
    assert (prices["state"], "models.m.input" in prices["why"]) == ("weak", True)
    assert answers["state"] == "weak"
    assert answers["why"] == "openai answered 1 call for m with ids of another form than before: another backend"
