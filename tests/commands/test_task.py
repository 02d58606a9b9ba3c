"""`amem task` as a person types it: results, exit codes, the JSON shapes."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amem.cli.main import run
from amem.commands.task import group

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def amem(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on a fresh root: its exit code, stdout and stderr."""

    def call(*argv: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = run(["--root", str(tmp_path / "root"), *argv])
        out, err = capsys.readouterr()
        return code, out, err

    assert call("init", "--owner", "human:asf:you")[0] == 0
    return call


def document(amem: Run, *argv: str, code: int = 0, stdin: str = "") -> Any:
    done, out, err = amem("--json", "task", *argv, stdin=stdin)
    assert done == code, err
    return json.loads(out)


def error(amem: Run, *argv: str, code: int) -> dict[str, Any]:
    done, out, err = amem("--json", "task", *argv)
    assert (done, out) == (code, ""), err
    found: dict[str, Any] = json.loads(err)["error"]
    if " --root " in (hint := found.get("hint", "")):  # the root that was named stands in it
        found["hint"] = " ".join(["amem", *hint.split()[3:]])
    return found


def filed(amem: Run, title: str = "T", *more: str) -> str:
    return str(document(amem, "create", title, "--admit", *more)["id"])


def test_a_task_from_filing_to_done(amem: Run) -> None:
    task = document(amem, "create", "Finish the import", "--body", "-", "--priority", "5", stdin="Steps 3 to 5.\n")
    assert (task["status"], task["priority"], task["rank"], task["body"], task["attempts"]) == ("proposed", 5, 5.0, "Steps 3 to 5.\n", 0)
    name = task["id"]
    assert name.startswith("task-me-")
    assert document(amem, "admit", name)["tasks"][0]["status"] == "admitted"
    held = document(amem, "claim", "--lease", "2h")
    assert (held["id"], held["fence"], held["holder"]) == (name, 1, "human:asf:you")
    done = document(amem, "complete", name, "--handoff", "All in.")
    assert done["status"] == "completed"
    code, out, _ = amem("get", *done["handoffs"])
    assert code == 0
    assert "All in." in out
    events = document(amem, "show", name, "--events")["events"]
    assert [event["event"] for event in events] == ["created", "admitted", "claimed", "completed"]
    assert [one["outcome"] for one in document(amem, "timeline", name)["attempts"]] == ["completed"]


def test_list_is_by_rank_and_says_how_many(amem: Run) -> None:
    low, high = filed(amem, "low", "--priority", "1"), filed(amem, "high", "--priority", "9", "--requires", "human")
    listed = document(amem, "list", "--limit", "1")
    assert ([task["id"] for task in listed["tasks"]], listed["total"], listed["more"]) == ([high], 2, True)
    assert [task["id"] for task in document(amem, "list", "--human")["tasks"]] == [high]
    assert document(amem, "list", "--status", "completed") == {"tasks": [], "total": 0, "more": False}
    assert "body" not in listed["tasks"][0]
    code, out, err = amem("task", "list")
    assert (code, err.strip()) == (0, "2 of 2")
    assert out.index(high) < out.index(low)


def test_a_long_board_is_counted_as_far_as_a_person_reads(amem: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from amem.commands import task

    monkeypatch.setattr(task, "COUNTED", 3)
    for number in range(4):
        filed(amem, f"T{number}")
    assert amem("task", "list", "--limit", "2")[2] == "2 of more than 3\n"
    assert amem("task", "list", "--limit", "0")[2] == "4 of 4\n"
    assert document(amem, "list", "--limit", "2")["total"] == 4


def test_claim_exits_3_when_there_is_nothing(amem: Run) -> None:
    assert error(amem, "claim", code=3)["code"] == "refused"
    name = filed(amem, "x", "--requires", "gpu")
    assert error(amem, "claim", "--capability", "code", code=3)
    assert error(amem, "claim", name, "--capability", "code", code=3)["message"] == f"{name} requires gpu, which this claimer does not hold"
    document(amem, "claim", name)
    assert "claimed by human:asf:you" in error(amem, "claim", name, code=3)["message"]


def test_stale_fence_is_a_conflict_and_writes_no_handoff(amem: Run) -> None:
    name = filed(amem)
    document(amem, "claim", name)
    document(amem, "release", name, "--why", "no time")
    document(amem, "claim", name)
    found = error(amem, "complete", name, "--fence", "1", "--handoff", "late", code=1)
    assert (found["code"], found["reason"]) == ("conflict", "stale_fence")
    assert json.loads(amem("--json", "handoff", "list")[1])["total"] == 0


def test_completing_what_one_does_not_hold_is_a_conflict_with_the_command_that_helps(amem: Run) -> None:
    name = filed(amem)
    assert error(amem, "complete", name, "--handoff", "x", code=1)["hint"] == f"amem task claim {name}"


def test_admitting_what_is_past_its_admission_names_the_command_that_helps(amem: Run) -> None:
    name = filed(amem)
    document(amem, "claim", name)
    assert error(amem, "admit", name, code=1)["hint"] == f"amem task show {name}"
    document(amem, "complete", name, "--handoff", "Done.")
    assert error(amem, "admit", name, code=1)["hint"] == f"amem task retry {name}"
    other = filed(amem)
    document(amem, "invalidate", other)
    assert error(amem, "admit", other, code=1)["hint"] == f"amem task retry {other}"


def test_what_cannot_be_filed_names_the_command_that_helps(amem: Run) -> None:
    for argv in (["bell\a"], ["x" * 1000], ["x", "--requires", "Two Words"], ["x", "--depends", "task-other-00000000"]):
        assert error(amem, "create", *argv, code=2)["hint"].startswith("amem task")
    name = filed(amem)
    document(amem, "claim", name)
    assert error(amem, "complete", name, "--handoff", " ", code=2)["hint"] == "amem task handoff --help"
    assert error(amem, "release", name, "--why", "x" * 2001, code=2)["hint"] == "amem task handoff --help"


def test_handoff_is_filed_in_the_record_and_on_the_task(amem: Run) -> None:
    name = filed(amem)
    left = document(amem, "handoff", name, "--body", "-", stdin="The key is in the vault.")
    assert left["task"]["handoffs"] == [left["handoff"]]
    found = json.loads(amem("--json", "handoff", "list", "--task", name)[1])["handoffs"]
    assert [one["id"] for one in found] == [left["handoff"]]


def test_complete_under_the_check_gate(amem: Run, tmp_path: Path) -> None:
    name = filed(amem, "x", "--check", "make test")
    document(amem, "claim", name)
    grants = tmp_path / "root" / "grants.toml"
    grants.write_text(grants.read_text().replace('complete_requires = "handoff"', 'complete_requires = "check"'))
    assert "checks" in error(amem, "complete", name, "--handoff", "x", code=3)["message"]


def test_admission_raises_and_why_explains(amem: Run) -> None:
    need = filed(amem, "need", "--priority", "1")
    top = document(amem, "create", "top", "--depends", need, "--priority", "6")["id"]
    why = document(amem, "why", top, "--capability", "code")
    assert (why["runnable"], [one["kind"] for one in why["blockers"]]) == (False, ["admission", "dependency"])
    admitted = document(amem, "admit", top)
    assert admitted["raised"] == [{"id": need, "from": 1.0, "to": 7.0, "serves": top}]
    assert document(amem, "why", need) == {"runnable": True, "blockers": []}


def test_tree_invalidate_retry_unblock_rescore_stats(amem: Run) -> None:
    name = filed(amem, "top")
    assert document(amem, "tree", name)["children"] == []
    assert document(amem, "invalidate", name, "--why", "wrong", "--dry-run") == {"closed": [name], "left": []}
    assert document(amem, "show", name)["status"] == "admitted"
    assert document(amem, "invalidate", name, "--why", "wrong")["closed"] == [name]
    again = document(amem, "retry", name, "--why", "right this time")
    assert (again["origin"], again["lessons"], again["status"]) == (f"retry:{name}", [], "admitted")
    assert error(amem, "retry", again["id"], code=1)["code"] == "conflict"
    assert error(amem, "unblock", again["id"], code=3)["code"] == "refused"
    assert document(amem, "rescore", "--dry-run") == {"moved": [], "rubric": "default"}
    stats = document(amem, "stats")
    assert stats["by_status"] == {"admitted": 1, "invalidated": 1}
    assert stats["by_family"] == {"filed": {"invalidated": 1}, "retry": {"admitted": 1}}
    assert stats["invalidated"] == {"wrong": 1}


def test_post_is_shown_with_its_text(amem: Run) -> None:
    name = filed(amem)
    document(amem, "post", name, "The vendor answers on Monday.")
    assert document(amem, "show", name, "--events")["events"][-1]["text"] == "The vendor answers on Monday."


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (("create", "a\x1bb"), 2, "control character U+001B"),
        (("create", "x", "--depends", "task-me-zzzzzzzz"), 3, "not there"),
        (("create", "x", "--depends", "task-you-00000000"), 2, "another domain"),
        (("create", "x", "--body", "x" * (1 << 20)), 2, "1048576 bytes"),
        (("create", "x", "--priority", "12"), 2, "12"),
        (("show", "task-me-zzzzzzzz"), 3, "no such task"),
        (("show", "task-elsewhere-00000000"), 3, "no such task"),
        (("claim", "../../etc"), 2, "not a task's id"),
        (("tree", "task-me-zzzzzzzz"), 3, "no such task"),
        (("timeline", "task-me-zzzzzzzz"), 3, "no such task"),
        (("admit",), 2, "ID"),
    ],
)
def test_what_cannot_be_done_says_why(amem: Run, argv: tuple[str, ...], code: int, says: str) -> None:
    assert says in error(amem, *argv, code=code)["message"]


def test_terminal_shows_control_characters_of_a_body_as_escapes(amem: Run) -> None:
    name = filed(amem, "x", "--body", "a\x1b[31mb")
    _, out, _ = amem("task", "show", name)
    assert "a\\x1b[31mb" in out


@pytest.mark.parametrize("name", sorted(group.commands))
def test_each_has_help_with_an_example(amem: Run, name: str) -> None:
    code, out, _ = amem("task", name, "--help")
    assert code == 0
    assert "Example" in out.split("Options:")[-1]


def test_wrong_values_are_said_in_a_sentence_and_write_nothing(amem: Run) -> None:
    name = filed(amem)
    document(amem, "claim")
    assert "the handoff is empty" in error(amem, "complete", name, "--handoff", " \n", code=2)["message"]
    assert "the handoff is empty" in error(amem, "handoff", name, "--body", "", code=2)["message"]
    assert json.loads(amem("--json", "handoff", "list")[1])["handoffs"] == []
    assert "not a task's id" in error(amem, "list", "--parent", "nonsense", code=2)["message"]
    for lease in ("nan", "inf", "1e300w", "soon"):
        assert "is no duration" in error(amem, "claim", "--lease", lease, code=2)["message"]
    for since in ("nan", "9999999w", "yesterday"):
        assert "expected a date" in error(amem, "list", "--since", since, code=2)["message"]


def test_events_name_ids_as_a_person_reads_them(amem: Run) -> None:
    first = filed(amem)
    name = filed(amem, "second", "--depends", first)
    assert f"depends_on {first}, chain" in amem("task", "show", name, "--events")[1]
