"""The real Claude Code and the real Codex at the board, against the scripted provider."""

from typing import Any

import pytest

from amem.egress.reading import spent
from amem.settings.root import Root
from amem.testing.provider import Running
from tests.acceptance.conftest import Done, Place
from tests.acceptance.test_real_harnesses import MODELS
from tests.acceptance.test_work import entry, filed, task
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

OTHER = {"claude": "codex", "codex": "claude"}
SPAWN: dict[str, dict[str, Any]] = {
    "claude": {
        "tool": "Agent",
        "args": {"description": "Left shelf", "prompt": "Count the left shelf.", "subagent_type": "general-purpose"},
    },
    "codex": {
        "any": [
            {"tool": "collaboration.spawn_agent", "args": {"message": "Count the left shelf.", "task_name": "left_shelf"}},
            {"tool": "spawn_agent", "args": {"message": "Count the left shelf.", "task_name": "left_shelf"}},
        ]
    },
}


@pytest.fixture(params=["claude", "codex"])
def harness(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    installed(name)
    return name


def shell(harness: str, command: str, **more: Any) -> dict[str, Any]:
    if harness == "claude":
        return {"tool": "Bash", "args": {"command": command, "description": "do it"}, **more}
    return {"tool": "exec_command", "args": {"cmd": command}, **more}


def work(place: Place, harness: str, *words: str) -> Done:
    return place.amem("work", "--harness", harness, *place.launch_flags(), "--model", MODELS[harness], "--json", *words, timeout_s=200)


def prompts(provider: Running, since: int = 0) -> str:
    """All that was sent to the model, as text."""
    return "\n".join(exchange.body.decode() for exchange in provider.log[since:] if exchange.method == "POST")


def test_claim_work_complete(place: Place, provider: Running, harness: str) -> None:
    provider.load(
        {
            "steps": [
                shell(harness, "echo twelve > count.txt"),
                {"tool": "memory.task_complete", "args": {"handoff": "Counted, because nobody had: twelve."}},
                {"text": "Counted."},
            ]
        }
    )
    place.destination(provider.url)
    id = filed(place)
    done = work(place, harness)
    assert done.code == 0, done.err + done.out
    assert done.json["outcome"] == "completed" and done.json["session"]["answer"] == "Counted."
    assert (place.tree / "count.txt").read_text() == "twelve\n"
    found = task(place, id)
    assert (found["status"], found["holder"]) == ("completed", f"agent:{harness}")
    assert entry(place, found["handoffs"][0])["body"] == "Counted, because nobody had: twelve."
    assert "Count the widgets" in prompts(provider)


def test_a_crash_leads_the_other_harness_to_finish_it(place: Place, provider: Running, harness: str) -> None:
    other = OTHER[harness]
    installed(other)
    provider.load(
        {
            "steps": [
                shell(harness, "echo six > left.txt; kill -9 -1", text="The left shelf has six, I note that first."),
                {"text": "never said"},
            ]
        }
    )
    place.destination(provider.url)
    id = filed(place)
    done = work(place, harness)
    assert done.code == 4, done.err + done.out
    assert (place.tree / "left.txt").read_text() == "six\n"
    found = task(place, id)
    assert found["status"] == "admitted" and "137" in found["reason"]
    left = entry(place, found["handoffs"][-1])
    assert left["left_by"] == "launcher" and "The left shelf has six, I note that first." in left["body"]

    provider.load(
        {"steps": [{"tool": "memory.task_complete", "args": {"handoff": "Six and six: twelve."}}, {"text": "Finished what was begun."}]}
    )
    seen = len(provider.log)
    done = work(place, other)
    assert done.code == 0, done.err + done.out
    assert task(place, id)["holder"] == f"agent:{other}"
    sent = prompts(provider, seen)
    assert "Where the last attempt stopped" in sent and "The left shelf has six, I note that first." in sent


def test_a_spawn_becomes_a_child_and_a_continuation_that_runs_after_it(place: Place, provider: Running, harness: str) -> None:
    other = OTHER[harness]
    installed(other)
    provider.load(
        {
            "steps": [{"tool": "memory.task_complete", "args": {"handoff": "The left shelf has six."}}, {"text": "Six."}],
            "conversations": [
                {
                    "match": "Resume: Count the widgets",
                    "steps": [{"tool": "memory.task_complete", "args": {"handoff": "Thirteen in all."}}, {"text": "Added up."}],
                },
                {
                    "match": "All of them.",
                    "steps": [
                        SPAWN[harness],
                        {"tool": "memory.task_complete", "args": {"handoff": "The right shelf has seven."}},
                        {"text": "Split."},
                    ],
                },
            ],
        }
    )
    place.destination(provider.url)
    id = filed(place)
    done = work(place, harness)
    assert done.code == 0, done.err + done.out
    tree = place.amem("task", "tree", id, "--json").json
    child, resumed = sorted(tree["children"], key=lambda one: str(one["origin"]), reverse=True)
    assert (child["origin"], child["status"]) == (f"task:{id}", "admitted")
    assert resumed["origin"] == f"continues:{id}"
    assert place.amem("get", child["id"]).code != 0
    assert task(place, child["id"])["body"] == "Count the left shelf."
    assert child["id"] in prompts(provider), "the refusal named the task"

    done = work(place, other)
    assert done.code == 0 and done.json["task"]["id"] == child["id"], done.err + done.out
    seen = len(provider.log)
    done = work(place, harness)
    assert done.code == 0 and done.json["task"]["id"] == resumed["id"], done.err + done.out
    sent = prompts(provider, seen)
    assert "The left shelf has six." in sent and "The right shelf has seven." in sent
    assert {one["holder"] for one in place.amem("task", "tree", id, "--json").json["children"]} == {"agent:claude", "agent:codex"}


def test_checks_and_a_grader_on_another_model(place: Place, provider: Running, harness: str) -> None:
    """The writer completes, its check runs, the grader looks with the one tool it has, and then it is done."""
    words = "Counted, and count.txt says so."
    provider.load(
        {
            "steps": [
                shell(harness, "echo twelve > count.txt"),
                {"tool": "memory.task_complete", "args": {"handoff": words}},
                {"text": "Counted."},
            ],
            "conversations": [
                {
                    "match": "You judge the work of another",
                    "steps": [
                        shell(harness, "cat count.txt; echo bad > count.txt"),
                        {"tool": "memory.grade", "args": {"verdict": "satisfied", "explanation": "It says twelve."}},
                        {"text": "Judged."},
                    ],
                }
            ],
        }
    )
    place.destination(provider.url)
    id = filed(place, check=("grep -q twelve count.txt",))
    other = {"claude": "claude-opus-5-5", "codex": "gpt-5.1"}[harness]
    done = work(place, harness, "--grade", "--grade-model", other)
    assert done.code == 0, done.err + done.out
    assert (done.json["check"], done.json["grade"]["verdict"]) == ("verified", "satisfied"), done.err
    assert (place.tree / "count.txt").read_text() == "twelve\n", "a grader writes nothing"
    judged = [exchange.body.decode() for exchange in provider.log if b"You judge the work of another" in exchange.body]
    assert judged and all(words in body and "memory.t0" not in body and "mcp__memory__search" not in body for body in judged)
    graded = [event for event in task(place, id)["events"] if event["event"] == "graded"]
    assert [(event["verdict"], event["grader"]) for event in graded] == [("satisfied", other)]
    attempt = place.amem("task", "timeline", id, "--json").json["attempts"][0]
    assert attempt["calls"] >= 3 and any("task_complete" in name for name in attempt["tools"]), attempt
    sessions = {done.json["session"]["id"], done.json["grade"]["session"]}
    counted = place.amem("usage", "--by", "session", "--json").json["usage"]
    used = sum(row[name] for row in counted if row["session"] in sessions for name in ("input", "output", "cache_read", "cache_write"))
    assert spent(Root(place.root), id) == used > 0, "what the grader used is the task's"
