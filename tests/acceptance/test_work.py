"""`amem work` as a person uses it: claim, work, complete; every way in which it can end otherwise; and what the next one is told."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amem.ledger import views
from amem.ledger.draft import Draft
from amem.ledger.opening import open_ledger
from amem.ledger.store import Filed
from amem.memory import read, rows
from amem.memory.outcomes import Served
from amem.memory.session import open_memory, owner_session
from amem.settings import grants
from amem.settings.root import Root
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Done, Place

AGENT = '''
import json, os, sys, urllib.request

class Memory:
    """The smallest client of the memory tools."""
    def call(self, tool, **arguments):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers["MCP-Protocol-Version"] = "2025-06-18"
        with urllib.request.urlopen(urllib.request.Request(os.environ["MEMORY_MCP_URL"], json.dumps(body).encode(), headers)) as answer:
            result = json.load(answer)["result"]
        return json.loads(result["content"][0]["text"])

memory, prompt = Memory(), sys.argv[-1]
grading = prompt.startswith("You judge")
if not grading:
    open("prompt.txt", "w").write(prompt)
'''


@pytest.fixture
def desk(place: Place, provider: Running) -> Place:
    place.destination(provider.url)
    return place


def agent(place: Place, what: str) -> list[str]:
    """A program that works on its task by doing `what`."""
    path = place.tree / "worker.py"
    path.write_text(AGENT + what + "\nprint('worked')\n")
    return ["--", sys.executable, "worker.py"]


def work(place: Place, *words: str, harness: str = "command", **environment: str) -> Done:
    return place.amem("work", "--harness", harness, *place.launch_flags(), *words, **environment)


def filed(place: Place, title: str = "Count the widgets", body: str = "All of them.", **more: Any) -> str:
    """A task that the owner filed and admitted; by the ledger itself, because a command for each would take most of the time."""
    with open_ledger(Root(place.root), grants.load(Root(place.root).grants)) as ledger:
        found = ledger.create(Draft(**{"domain": "dom-me", "title": title, "body": body, **more}), by="human:asf:you", admit=True)
    assert isinstance(found, Filed)
    return found.task.id


def task(place: Place, id: str) -> dict[str, Any]:
    """A task as `amem task show --events --json` has it."""
    with open_ledger(Root(place.root), grants.load(Root(place.root).grants)) as ledger:
        events = [views.shown_event(n, event) for n, event in enumerate(ledger.events(id), 1)]
        return {**views.shown(ledger.show(id)), "body": ledger.text("dom-me", ledger.show(id).body), "events": events}


def entry(place: Place, id: str) -> dict[str, Any]:
    """An entry as `amem get --json` has it."""
    memory = open_memory(Root(place.root), grants.load(Root(place.root).grants))
    try:
        found = read.get(memory, owner_session(memory, "human:asf:you", "dom-me"), id)
    finally:
        memory.close()
    assert isinstance(found, Served), found
    return {**rows.entry(found.row), "body": found.body}


def prompt(place: Place) -> str:
    return (place.tree / "prompt.txt").read_text()


COMPLETE = "memory.call('task_complete', handoff='Counted: twelve.')"


def test_claim_work_complete(desk: Place) -> None:
    low = filed(desk, "Dust the shelf")
    id = filed(desk, "Count the widgets", "All of them, twice.", priority=7)
    done = work(desk, "--json", *agent(desk, COMPLETE))
    assert done.code == 0, done.err
    told = done.json
    assert told["outcome"] == "completed" and told["task"]["id"] == id and told["task"]["status"] == "completed"
    session = told["session"]
    assert (session["task"], session["exit"], session["state"]) == (id, 0, "ended")
    handoff = entry(desk, told["task"]["handoffs"][0])
    assert (handoff["left_by"], handoff["task"], handoff["body"]) == ("agent", id, "Counted: twelve.")
    text = prompt(desk)
    assert "Count the widgets" in text and "All of them, twice." in text and "# Memory of dom-me" in text and "task_complete" in text
    assert task(desk, low)["status"] == "admitted"
    assert [event["event"] for event in task(desk, id)["events"]] == ["created", "admitted", "claimed", "handoff_left", "completed"]
    attempt = desk.amem("task", "timeline", id, "--json").json["attempts"][0]
    assert (attempt["session"], attempt["outcome"]) == (session["id"], "completed")


def test_nothing_to_claim_is_3_and_starts_nothing(desk: Place) -> None:
    done = work(desk, "--json", *agent(desk, COMPLETE))
    assert done.code == 3
    assert done.json == {"outcome": "none"}
    assert not (desk.tree / "prompt.txt").exists() and desk.amem("session", "list", "--json").json["sessions"] == []
    assert list((desk.root / "state" / "homes").iterdir()) == [] and list((desk.root / "state" / "running").iterdir()) == []
    id = filed(desk, "For a person", requires=("human",))
    done = work(desk, "--task", id, *agent(desk, COMPLETE))
    assert done.code == 3 and "human" in done.err


def test_a_completed_task_is_0_whatever_the_harness_returns(desk: Place) -> None:
    id = filed(desk)
    done = work(desk, *agent(desk, COMPLETE + "; sys.exit(9)"))
    assert done.code == 0, done.err
    assert task(desk, id)["status"] == "completed"


def test_an_undone_task_is_back_in_the_pool_with_what_the_harness_said(desk: Place) -> None:
    id = filed(desk)
    done = work(desk, "--json", *agent(desk, "print('I counted the left shelf: six.'); print('no ladder', file=sys.stderr)"))
    assert done.code == 4, done.err
    assert done.json["outcome"] == "released" and done.json["session"]["reason"] == "released"
    found = task(desk, id)
    assert found["status"] == "admitted" and "exit code 0" in found["reason"]
    handoff = entry(desk, found["handoffs"][-1])
    assert handoff["left_by"] == "launcher" and "six." in handoff["body"] and "no ladder" in handoff["body"]
    done = work(desk, *agent(desk, COMPLETE))
    assert done.code == 0, done.err
    assert "## Where the last attempt stopped" in prompt(desk) and "I counted the left shelf: six." in prompt(desk)
    assert "This is attempt 2." in prompt(desk)


def test_a_note_of_a_hook_is_attached_before_the_task_goes_back(desk: Place) -> None:
    id = filed(desk)
    note = "box = os.path.expanduser('~/.amem/outbox'); os.makedirs(box); open(box + '/pre-compact-01.md', 'w').write('Half way.')"
    done = work(desk, *agent(desk, note))
    assert done.code == 4, done.err
    left = [entry(desk, one) for one in task(desk, id)["handoffs"]]
    assert [one["left_by"] for one in left] == ["hook", "launcher"] and left[0]["body"] == "Half way."


def test_the_same_failure_three_times_running_is_for_a_person(desk: Place) -> None:
    id = filed(desk)
    for outcome in ("released", "released", "blocked"):
        done = work(desk, "--json", *agent(desk, "sys.exit(7)"))
        assert (done.code, done.json["outcome"]) == (4, outcome), done.err
    assert "exit code 7" in task(desk, id)["blocked_on"]
    assert work(desk, *agent(desk, COMPLETE)).code == 3


def test_an_agent_may_give_it_back_itself(desk: Place) -> None:
    id = filed(desk)
    done = work(desk, *agent(desk, "memory.call('task_release', handoff='No key.', blocker='the registry has no key')"))
    assert done.code == 4
    found = task(desk, id)
    assert found["reason"] == "the registry has no key"
    assert [entry(desk, one)["body"] for one in found["handoffs"]] == ["No key."]


def test_output_that_may_not_be_kept_is_held_and_the_task_goes_back_all_the_same(desk: Place) -> None:
    id = filed(desk)
    done = work(desk, "--json", *agent(desk, "print('the key is AKIA' + 'IOSFODNN7EXAMPLQ')"))
    assert done.code == 4, done.err
    found = task(desk, id)
    assert found["status"] == "admitted" and "handoffs" not in found
    assert len(done.json["session"]["held"]) == 1


def test_a_time_limit_gives_it_back_and_blocks_nothing(desk: Place) -> None:
    id = filed(desk)
    done = work(desk, "--timeout", "2s", *agent(desk, "import time; time.sleep(600)"))
    assert done.code == 4
    assert "time limit" in task(desk, id)["reason"]


def test_refusals_of_a_launch_come_before_the_claim(desk: Place) -> None:
    id = filed(desk)
    for words in (("--harness", "cluade"), ("--harness", "claude", "--auth", "gateway")):
        done = desk.amem("work", "--workdir", str(desk.tree), *words)
        assert done.code in (1, 2), done.err
    done = work(desk, "--loop", "--task", id, *agent(desk, COMPLETE))
    assert done.code == 2 and "--loop" in done.err
    done = work(desk, "--task", "../../x", *agent(desk, COMPLETE))
    assert done.code == 2 and "not a task's id" in done.err
    assert work(desk, "--task", "task-other-zzzzzzzz", *agent(desk, COMPLETE)).code == 3
    assert [event["event"] for event in task(desk, id)["events"]] == ["created", "admitted"]


def test_a_sandbox_that_cannot_be_made_gives_the_task_back(desk: Place) -> None:
    id = filed(desk)
    done = work(desk, "--max-procs", "0", *agent(desk, COMPLETE))
    assert done.code != 0
    assert task(desk, id)["status"] == "admitted", task(desk, id)


def test_the_launchers_door_cannot_be_found_from_inside(desk: Place) -> None:
    """No socket file, no port and no abstract name is there beside the one port of the sandbox."""
    filed(desk)
    look = (
        "import pathlib; print(pathlib.Path('/proc/net/unix').read_text()); print(pathlib.Path('/proc/net/tcp').read_text());"
        "memory.call('task_complete', handoff='Looked.')"
    )
    done = work(desk, *agent(desk, look))
    assert done.code == 0, done.err
    listening = [line for line in done.out.splitlines() if " 0A " in line]
    assert len(listening) == 1, done.out
    assert not any(line.split()[-1].startswith(("/", "@")) for line in done.out.splitlines() if line.startswith("0000"))
    assert list(Path(desk.root).rglob("*.sock")) == []


def test_an_agent_cannot_leave_a_handoff_in_the_launchers_name(desk: Place) -> None:
    filed(desk)
    say = "print(memory.call('task_release', handoff='x', left_by='launcher')['code'])\nmemory.call('task_complete', handoff='y')"
    done = work(desk, *agent(desk, say))
    assert "invalid" in done.out and done.code == 0


def test_parts_are_worked_and_their_handoffs_reach_the_continuation(desk: Place) -> None:
    id = filed(desk)
    split = (
        "memory.call('fan_out', tasks=[{'title': 'Left', 'body': 'Count left.'}, {'title': 'Right', 'body': 'Count right.'}],"
        " continuation='Add them up.')\nmemory.call('task_complete', handoff='Split in two.')"
    )
    assert work(desk, *agent(desk, split)).code == 0
    for number in ("six", "seven"):
        done = work(desk, "--json", *agent(desk, f"memory.call('task_complete', handoff='There are {number}.')"))
        assert done.code == 0 and done.json["task"]["origin"] == f"task:{id}", done.err
    done = work(desk, "--json", *agent(desk, COMPLETE))
    assert done.code == 0 and done.json["task"]["origin"] == f"continues:{id}", done.err
    text = prompt(desk)
    for said in ("Add them up.", "There are six.", "There are seven.", "Split in two.", "verify what you rely on"):
        assert said in text
    assert work(desk, *agent(desk, COMPLETE)).code == 3


def test_a_loop_takes_one_after_another_each_in_a_session_of_its_own(desk: Place) -> None:
    ids = [filed(desk, f"Count shelf {n}") for n in range(3)]
    done = work(desk, "--loop", "--max-tasks", "3", "--json", *agent(desk, COMPLETE))
    assert done.code == 0, done.err
    told = [json.loads(line) for line in done.out.splitlines()]
    assert [one["task"]["id"] for one in told] == ids
    assert len({one["session"]["id"] for one in told}) == 3


def test_the_task_of_a_killed_launcher_goes_to_the_next_worker_of_its_root(desk: Place) -> None:
    id = filed(desk)
    command = desk.command(
        "work", "--harness", "command", *desk.launch_flags(), *agent(desk, "print('up', flush=True)\nimport time; time.sleep(600)")
    )
    process = subprocess.Popen(command, cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.kill()
    process.communicate()
    found = task(desk, id)
    assert found["status"] == "claimed" and found["lease_ends_at"]
    assert desk.amem("task", "why", id, "--json").json["blockers"][0]["kind"] == "lease"
    done = work(desk, *agent(desk, COMPLETE))
    assert done.code == 0 and f"{id} is back in the pool" in done.err, done.err
    assert task(desk, id)["attempts"] == 2
    attempts = desk.amem("task", "timeline", id, "--json").json["attempts"]
    assert [one["outcome"] for one in attempts] == ["released", "completed"] and "killed" in attempts[0]["why"]
    assert "back in the pool" not in work(desk, *agent(desk, COMPLETE)).err


@pytest.mark.parametrize("looping", [False, True])
def test_two_interrupts_end_it_now_and_give_it_back(desk: Place, looping: bool) -> None:
    id = filed(desk)
    words = [*(["--loop"] if looping else []), *agent(desk, "print('up', flush=True)\nimport time; time.sleep(600)")]
    process = subprocess.Popen(
        desk.command("work", "--harness", "command", *desk.launch_flags(), *words),
        cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"up\n"
    os.killpg(process.pid, signal.SIGINT)
    while b"this task is worked to its end" not in process.stderr.readline():
        pass
    assert task(desk, id)["status"] == "claimed"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    found = task(desk, id)
    assert found["status"] == "admitted" and "person" in found["reason"]


def test_one_interrupt_ends_a_loop_after_the_current_task(desk: Place) -> None:
    one, other = filed(desk, "First"), filed(desk, "Second")
    wait = "print('up', flush=True)\nimport pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)\n" + COMPLETE
    process = subprocess.Popen(
        desk.command("work", "--harness", "command", *desk.launch_flags(), "--loop", *agent(desk, wait)),
        cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    os.killpg(process.pid, signal.SIGINT)
    (desk.tree / "go").touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (task(desk, one)["status"], task(desk, other)["status"]) == ("completed", "admitted")


def test_a_loop_takes_what_is_filed_while_it_waits_and_ends_when_asked(desk: Place) -> None:
    process = subprocess.Popen(
        desk.command("work", "--harness", "command", *desk.launch_flags(), "--loop", "--idle", "0.2s", "--json", *agent(desk, COMPLETE)),
        cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for title in ("First", "Second"):
        id = filed(desk, title)
        assert json.loads(process.stdout.readline())["task"]["id"] == id
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert list((desk.root / "state" / "running").iterdir()) == []
    assert len(list((desk.root / "state" / "homes").iterdir())) == 2, "an idle worker leaves no home"


def test_a_worker_that_is_told_to_end_gives_its_task_back(desk: Place) -> None:
    id = filed(desk)
    words = agent(desk, "print('up', flush=True)\nimport time; time.sleep(600)")
    process = subprocess.Popen(
        desk.command("work", "--harness", "command", *desk.launch_flags(), *words),
        cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert task(desk, id)["status"] == "admitted"


def test_a_loop_that_is_killed_takes_its_worker_with_it_and_the_task_goes_back(desk: Place) -> None:
    id = filed(desk)
    words = agent(desk, "print('up', flush=True)\nimport time; time.sleep(600)")
    process = subprocess.Popen(
        desk.command("work", "--harness", "command", *desk.launch_flags(), "--loop", *words),
        cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.kill()
    process.communicate(timeout=60)  # the worker holds the other end until it has ended
    assert task(desk, id)["status"] == "admitted"


def test_a_plain_launch_that_claimed_by_itself_leaves_nothing_held(desk: Place) -> None:
    id = filed(desk)
    done = desk.launch("--no-handoff", *agent(desk, "print(memory.call('task_claim')['id'])"))
    assert done.code == 0 and id in done.out, done.err
    found = task(desk, id)
    assert (found["status"], found["reason"]) == ("admitted", "the session that held it ended")


def test_what_a_launched_session_spawns_is_proposed(desk: Place) -> None:
    """The hook program asks the guard, as a harness's own hook would."""
    ask = (
        "import subprocess\nevent = {'tool_name': 'Agent', 'cwd': '/', 'tool_input': {'prompt': 'Count left.', 'description': 'Left'}}\n"
        "program = ['/opt/memory/memory', 'hook', 'pre-tool', 'claude']\n"
        "hook = subprocess.run(program, input=json.dumps(event).encode(), capture_output=True)\n"
        "print(hook.returncode, hook.stdout.decode())"
    )
    done = desk.launch("--no-handoff", "--subagents", "board", *agent(desk, ask))
    assert done.code == 0, done.err
    listed = desk.amem("task", "list", "--json").json["tasks"]
    assert [(one["title"], one["status"]) for one in listed] == [("Left", "proposed")]
    assert listed[0]["id"] in done.out and "deny" in done.out
    assert "deny" not in desk.launch("--no-handoff", *agent(desk, ask)).out, "left to the harness unless asked for"


def test_a_task_with_checks_is_done_once_they_succeed(desk: Place) -> None:
    """They run after the harness, not as it: another home, no server to reach, and each on its own."""
    id = filed(desk, check=("test ! -e ~/planted", "! pgrep sleep", "! curl -s http://127.0.0.1:7431/", "test -e made && touch seen"))
    plant = "import subprocess; subprocess.Popen(['sleep', '600']); open(os.path.expanduser('~/planted'), 'w'); open('made', 'w')\n"
    done = work(desk, "--json", *agent(desk, plant + "print(memory.call('task_complete', handoff='Done.')['pending'])"))
    assert (done.code, done.json["outcome"], done.json["check"]) == (0, "completed", "verified"), done.err
    found = task(desk, id)
    assert found["status"] == "completed" and found["check"]["state"] == "verified"
    assert [event["event"] for event in found["events"]][-3:] == ["handoff_left", "checked", "completed"]
    assert found["events"][-2]["exits"] == [0, 0, 0, 0]
    assert "stale" not in desk.amem("task", "show", id, "--json").json["check"]
    (desk.tree / "made").write_text("another thing")
    assert desk.amem("task", "show", id, "--json").json["check"]["stale"] is True
    assert "verified, and the tree has changed since" in desk.amem("task", "show", id).out


def test_a_check_that_fails_sends_the_task_back_with_what_it_printed(desk: Place) -> None:
    id = filed(desk, check=("true", "echo three widgets are missing; exit 5", "touch never"))
    done = work(desk, "--json", "--no-snapshot", *agent(desk, COMPLETE))
    assert (done.code, done.json["outcome"], done.json["check"]) == (4, "released", "failed"), done.err
    assert task(desk, id)["check"]["tree"].startswith("sha256:")
    found = task(desk, id)
    assert found["status"] == "admitted" and "exited with 5" in found["reason"] and found["check"]["state"] == "failed"
    left = [entry(desk, one) for one in found["handoffs"]]
    assert [one["left_by"] for one in left] == ["agent", "launcher"] and "three widgets are missing" in left[1]["body"]
    assert not (desk.tree / "never").exists()
    for outcome in ("released", "blocked"):
        assert work(desk, "--json", *agent(desk, COMPLETE)).json["outcome"] == outcome
    assert "three widgets are missing" in prompt(desk)


def test_what_a_harness_planted_cannot_answer_for_a_check(desk: Place) -> None:
    """Code of the harness runs within the first check and goes for its caller; the second check has the last word."""
    plant = "open('sneak.sh', 'w').write('kill -9 $PPID; exit 0')\nos.symlink('/bin/true', 'false')\n"
    for checks in (("sh sneak.sh; exit 0",), ("true", "false")):
        id = filed(desk, check=checks)
        done = work(desk, "--task", id, "--json", *agent(desk, plant.replace("'false'", repr(f"f{len(checks)}")) + COMPLETE))
        assert done.json["check"] == "failed" and task(desk, id)["status"] == "admitted", done.err


def test_a_program_that_a_harness_planted_on_the_owners_search_path_answers_no_check(desk: Place) -> None:
    """As in an active `.venv` of the tree: its programs are found, those that the system has are the system's."""
    own = desk.tree / ".venv/bin"
    own.mkdir(parents=True)
    desk.environment["PATH"] = f"{own}:{desk.environment['PATH']}"
    plant = "".join(f"os.symlink('/bin/true', '.venv/bin/{name}')\n" for name in ("grep", "of-the-tree"))
    id = filed(desk, check=("of-the-tree", "echo nothing | grep -q done"))
    done = work(desk, "--json", *agent(desk, plant + COMPLETE))
    assert done.json["check"] == "failed", done.err
    assert task(desk, id)["reason"].count("`echo nothing | grep -q done` exited with 1")


def test_a_session_that_nobody_examines_cannot_complete_what_has_checks_where_they_are_the_rule(desk: Place) -> None:
    grants_file = desk.root / "grants.toml"
    grants_file.write_text(grants_file.read_text().replace('complete_requires = "handoff"', 'complete_requires = "check"'))
    id = filed(desk, check=("true",))
    done = desk.launch("--no-handoff", *agent(desk, "memory.call('task_claim')\nprint(memory.call('task_complete', handoff='x'))"))
    assert "amem work" in done.out and task(desk, id)["status"] == "admitted", done.out
    assert work(desk, *agent(desk, COMPLETE)).code == 0
    assert task(desk, id)["check"]["state"] == "verified"


def test_an_offer_can_be_taken_back_and_ends_with_the_session(desk: Place) -> None:
    id = filed(desk, check=("true",))
    done = work(desk, "--json", *agent(desk, COMPLETE + "\nmemory.call('task_release', handoff='Not yet.')"))
    assert (done.code, done.json["outcome"]) == (4, "released") and "check" not in done.json
    assert "checked" not in [event["event"] for event in task(desk, id)["events"]]


def test_a_task_that_the_harness_took_by_itself_is_not_the_launchers_to_examine(desk: Place) -> None:
    """It completes unchecked, unless checks are the rule; and a wrong number offers nothing."""
    first, other = filed(desk, "First", priority=9), filed(desk, "Other", check=("false",))
    both = (
        f"{COMPLETE}\nmemory.call('task_claim', id='{other}')\n"
        "print(memory.call('task_complete', handoff='y', fence=7)['code'], memory.call('task_complete', handoff='z')['status'])"
    )
    done = work(desk, "--json", *agent(desk, both))
    assert done.code == 0 and "stale_fence completed" in done.err, done.err
    assert task(desk, first)["status"] == "completed"
    found = task(desk, other)
    assert found["status"] == "completed" and found["check"]["state"] == "unchecked"


@pytest.mark.parametrize("stop", [False, True], ids=["signal", "session stop"])
def test_a_check_ends_with_its_session_and_gives_the_task_back(desk: Place, stop: bool) -> None:
    id = filed(desk, check=("echo up > up; sleep 600",))
    process = subprocess.Popen(
        desk.command("work", "--harness", "command", *desk.launch_flags(), *agent(desk, COMPLETE)),
        cwd=PROJECT, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    while b"now its checks" not in process.stderr.readline():
        assert process.poll() is None
    if stop:
        (session,) = (row["id"] for row in desk.amem("session", "list", "--state", "running", "--json").json["sessions"])
        assert desk.amem("session", "stop", session).code == 0
    else:
        process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    found = task(desk, id)
    assert found["status"] == "admitted" and found["check"]["state"] == "unchecked"
    assert not any(path.name.startswith("check-") for path in (desk.root / "state" / "homes").iterdir())


def test_no_session_can_say_that_its_checks_succeeded(desk: Place) -> None:
    filed(desk, check=("false",))
    say = "print(memory.call('task_checked', state='verified', tree='x'))\n" + COMPLETE
    done = work(desk, *agent(desk, say))
    assert done.code == 4 and "there is no tool" in done.out and "task_checked" not in done.out.partition("there are")[2]


def test_the_prompt_names_entries_that_the_task_likely_needs(desk: Place) -> None:
    written = [
        desk.amem("write", "--type", "fact", "--title", title, "--body", body, "--label", label, "--json").json["id"]
        for title, body, label in (
            ("Widgets are on two shelves", "Left and right. The body is long.", "internal"),
            ("Secret widgets", "In the safe.", "restricted"),
            ("The cafeteria closes at two", "It does.", "internal"),
        )
    ]
    id = filed(desk, "Count the widgets", "All of them.")
    assert work(desk, *agent(desk, "sys.exit(3)")).code == 4
    part = prompt(desk).partition("## What the memory may have on it")[2].partition("## The memory's opening page")[0]
    assert written[0] in part and "Widgets are on two shelves" in part and "The body is long" not in part
    assert written[1] not in prompt(desk) and written[2] not in part
    (read,) = [line for line in desk.log("reads.jsonl") if line["tool"] == "prefetch"]
    assert read["entries"] == [written[0]] and read["task"] == id
    assert work(desk, "--no-prefetch", *agent(desk, COMPLETE)).code == 0
    assert "What the memory may have" not in prompt(desk)


GRADED = ("--model", "writer-1", "--grade", "2", "--grade-model", "grader-1")


def test_a_grader_sends_it_back_word_for_word_and_is_satisfied_the_second_time(desk: Place) -> None:
    """It sees the task, the handoff and the tree; it can write nothing and has one tool."""
    id = filed(desk, "Count the widgets", "Count them all; the answer belongs in answer.txt.")
    remark = "Line one: 'answer.txt' says eleven.\nLine two: recount."
    judge = (
        "if grading:\n"
        "    print(memory.call('search', query='widgets'), memory.call('task_complete', handoff='x'))\n"
        "    try: open('planted', 'w')\n"
        "    except OSError as error: print(error)\n"
        "    good = open('answer.txt').read() == 'twelve' and 'Counted.' in prompt and 'belongs in answer.txt' in prompt\n"
        f"    memory.call('grade', verdict='satisfied' if good else 'needs_revision', explanation={remark!r})\n"
        "    sys.exit(0)\n"
        "open('answer.txt', 'w').write('twelve' if 'recount' in prompt else 'eleven')\n"
        "print(memory.call('task_complete', handoff='Counted.')['pending'])"
    )
    done = work(desk, "--json", *GRADED, *agent(desk, judge))
    assert (done.code, done.json["outcome"], done.json["grade"]["verdict"]) == (0, "completed", "satisfied"), done.err
    assert remark in prompt(desk)
    found = task(desk, id)
    verdicts = [(event["verdict"], event.get("round", 1), event["grader"]) for event in found["events"] if event["event"] == "graded"]
    assert verdicts == [("needs_revision", 1, "grader-1"), ("satisfied", 2, "grader-1")] and found["grade"] == "satisfied"
    assert not (desk.tree / "planted").exists()
    assert not [line for line in desk.log("reads.jsonl") if line["session"] == done.json["grade"]["session"]]
    attempts = desk.amem("task", "timeline", id, "--json").json["attempts"]
    assert [(one["outcome"], one["grade"]) for one in attempts] == [("released", "needs_revision"), ("completed", "satisfied")]


def test_a_grader_that_is_never_satisfied_leaves_the_task_to_a_person(desk: Place) -> None:
    id = filed(desk)
    never = (
        "memory.call('grade', verdict='needs_revision', explanation='No.') if grading else memory.call('task_complete', handoff='Done.')"
    )
    done = work(desk, "--json", *GRADED, *agent(desk, never))
    assert (done.code, done.json["outcome"], done.json["grade"]["verdict"]) == (4, "blocked", "max_iterations_reached"), done.err
    assert "No." in task(desk, id)["blocked_on"] and task(desk, id)["attempts"] == 2


def test_a_grader_without_a_verdict_completes_nothing(desk: Place) -> None:
    id = filed(desk, check=("true",))
    done = work(desk, "--json", *GRADED, *agent(desk, "None if grading else memory.call('task_complete', handoff='Done.')"))
    assert (done.code, done.json["grade"]["verdict"], done.json["check"]) == (4, "failed", "verified"), done.err
    assert task(desk, id)["status"] == "admitted" and "no verdict" in task(desk, id)["reason"]


def test_a_grader_must_be_another_model(desk: Place) -> None:
    filed(desk)
    for words in (("--grade",), ("--grade", "--grade-model", "a"), ("--model", "x/A", "--grade", "--grade-model", "a"), ("--grade", "21")):
        done = work(desk, *words, *agent(desk, COMPLETE))
        assert done.code == 2 and "grade" in done.err, words
