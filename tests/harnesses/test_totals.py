"""A harness's own counts. Expected sums are the provider's own, as told with each recorded run."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.harnesses import registry, totals
from amem.harnesses.totals import Totals
from amem.hooks import turns
from amem.model.call import Usage
from tests.shared import shared_path

TRANSCRIPTS = Path(__file__).parents[1] / "hooks" / "transcripts"


def events(path: Path) -> list[dict[str, Any]]:
    return list(turns.events(path.read_bytes().splitlines()))


def test_claudes_cost_state_covers_all() -> None:
    found = totals.read("claude", [events(TRANSCRIPTS / "claude.jsonl")])
    assert found.models == {
        "claude-sonnet-5-5": Usage(input=2010, output=60, cache_read=400, cache_write=100),
        "claude-haiku-4-5": Usage(input=10, output=2),
    }


def test_a_killed_claude_is_counted_by_message_not_by_line() -> None:
    """Four lines of one message repeat its usage; a subagent's file has ids of its own."""
    main = [event for event in events(TRANSCRIPTS / "claude.jsonl") if event["type"] != "cost-state" and not event.get("isSidechain")]
    used = {"input_tokens": 500, "output_tokens": 20}
    subagent = [{"type": "assistant", "message": {"id": "msg_1", "model": "claude-sonnet-5-5", "usage": used}}]
    assert totals.read("claude", [main, subagent]).models == {
        "claude-sonnet-5-5": Usage(input=1000 + 1010 + 500, output=30 + 30 + 20, cache_read=400, cache_write=100)
    }


def test_codex_adds_the_last_total_of_each_rollout_and_tells_the_plans_window() -> None:
    child = [
        {
            "type": "event_msg",
            "payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 1020, "output_tokens": 30}}},
        }
    ]
    found = totals.read("codex", [events(TRANSCRIPTS / "codex.jsonl"), child])
    assert found.models == {
        "gpt-5.1-codex": Usage(input=1610, output=60, cache_read=400, reasoning=14),
        "unknown": Usage(input=1020, output=30, reasoning=0),
    }
    assert found.window["used_percent"] == 12.5


def test_gemini_counts_each_message_once_with_its_thoughts() -> None:
    assert totals.read("gemini", [events(TRANSCRIPTS / "gemini.jsonl")]).models == {
        "gemini-2.5-pro": Usage(input=1610, output=74, cache_read=400, reasoning=14)
    }


def test_a_killed_qwen_is_counted_by_the_calls_in_its_transcript() -> None:
    found = events(TRANSCRIPTS / "qwen.jsonl")
    assert totals.read("qwen", [found]).models == {"qwen3-coder": Usage(input=1610, output=60, cache_read=400, reasoning=14)}
    record = {"sessionId": "s", "models": {"m": {"inputTokens": 10, "outputTokens": 2}}}
    assert totals.read("qwen", [found, [record]]).models == {"m": Usage(input=10, output=2, reasoning=0)}


def test_codexs_totals_are_told_by_either_of_two_lines() -> None:
    found = [event for event in events(TRANSCRIPTS / "codex.jsonl") if event["type"] != "event_msg"]
    assert totals.read("codex", [found]).models == {"gpt-5.1-codex": Usage(input=800, output=30, cache_read=200, reasoning=7)}


def test_of_several_cost_states_the_last_written_holds() -> None:
    def state(count: int) -> dict[str, Any]:
        return {"type": "cost-state", "modelUsage": {"m": {"inputTokens": count, "outputTokens": 1}}}

    assert totals.read("claude", [[state(1), state(5)], [state(3)]]).models == {"m": Usage(input=5, output=1)}


def test_no_sum_becomes_more_than_can_be_kept() -> None:
    used = {"usage": {"input": (1 << 53) - 1, "output": (1 << 53) - 1, "cacheRead": 5, "reasoning": 1 << 60}}
    message = {"type": "message", "message": {"role": "assistant", "model": "m", **used}}
    (found,) = totals.read("pi", [[message] * 3000]).models.values()
    assert found == Usage(input=(1 << 53) - 1, output=(1 << 53) - 1, cache_read=15_000, reasoning=0)


def test_a_flood_of_models_is_one() -> None:
    messages = [{"type": "message", "message": {"model": f"m{n}", "usage": {"input": 1}}} for n in range(5000)]
    found = totals.read("pi", [messages]).models
    assert len(found) == totals.MAX_MODELS + 1 and sum(used.input for used in found.values()) == 5000


def test_qwens_record_of_a_session() -> None:
    record = {
        "sessionId": "s",
        "models": {"m": {"requests": 4, "inputTokens": 4060, "outputTokens": 120, "cachedTokens": 800, "thoughtsTokens": 28}},
    }
    assert totals.read("qwen", [[record]]).models == {"m": Usage(input=3260, output=120, cache_read=800, reasoning=28)}


def test_groks_usage_file() -> None:
    usage = json.loads(shared_path("fakes/samples/grok-usage.json").read_text())
    assert totals.read("grok", [[usage]]).models == {"fake-1": Usage(input=2409, output=309, cache_read=600, reasoning=21)}


def test_copilots_shutdown_and_its_compaction() -> None:
    found = events(shared_path("fakes/samples/copilot-events.jsonl"))
    whole = {"fake-1": Usage(input=7030 - 1400 + 2015 - 400, output=730 + 215, cache_read=1800, reasoning=49)}
    assert totals.read("copilot", [found]).models == whole
    killed = [event for event in found if event["type"] != "session.shutdown"]
    assert totals.read("copilot", [killed]).models == whole


def test_opencodes_messages_add_up_to_its_session() -> None:
    export = json.loads(shared_path("fakes/samples/opencode-export.json").read_text())
    told = export["info"]["tokens"]
    assert totals.read("opencode", [export["messages"]]).models == {
        "fake-1": Usage(
            input=told["input"], output=told["output"] + told["reasoning"], cache_read=told["cache"]["read"], reasoning=told["reasoning"]
        )
    }


def test_pis_session() -> None:
    assert totals.read("pi", [events(shared_path("fakes/samples/pi-session.jsonl"))]).models == {
        "fake-1": Usage(input=801 + 802 + 803, output=101 + 102 + 103, cache_read=600, reasoning=21)
    }


def test_every_harness_with_usage_files_has_a_reader_and_the_other_way_round() -> None:
    assert {name for name in registry.names() if registry.load(name).usage} == set(totals.READERS)


@pytest.mark.parametrize("count", [-5, True, 1.5, "7", None, 1 << 60, [], {}])
def test_a_count_that_is_none_is_not_counted(count: object) -> None:
    record = {"models": {"m": {"inputTokens": count, "outputTokens": 3}}}
    assert totals.read("qwen", [[record]]).models == {"m": Usage(input=0, output=3, reasoning=0)}


def test_an_unknown_shape_used_nothing() -> None:
    assert totals.read("command", [[{"usage": 1}]]) == Totals()


KEYS = st.sampled_from(
    ["type", "message", "payload", "usage", "id", "info", "tokens", "cache", "models", "session", "modelUsage", "data", "modelMetrics", "m"]
)
WORDS = st.sampled_from(["assistant", "cost-state", "token_count", "message", "session.shutdown", "session.usage_record", "turn_context"])
VALUE = st.none() | st.integers() | WORDS
TABLE = st.dictionaries(KEYS, VALUE, max_size=3)
DEEP = st.dictionaries(KEYS, VALUE | TABLE | st.dictionaries(KEYS, TABLE, max_size=2), max_size=4)


@given(shape=st.sampled_from(sorted(totals.READERS)), found=st.lists(st.dictionaries(KEYS, DEEP | VALUE, max_size=4), max_size=3))
def test_no_file_makes_a_reader_raise(shape: str, found: list[dict[str, Any]]) -> None:
    for used in totals.read(shape, [found, found]).models.values():
        assert min(used.input, used.output, used.cache_read, used.cache_write) >= 0
