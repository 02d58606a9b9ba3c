"""`[notice]`: a task that needs a person calls a command or a webhook; ids leave, words do not, and the policy is asked first."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amem.ledger.draft import Draft
from amem.ledger.opening import open_ledger
from amem.ledger.store import Filed
from amem.memory.notice import observer, why
from amem.settings import grants
from amem.settings.root import Root
from tests.commands.test_task import Run, amem, document, filed

__all__ = ["amem"]


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook on loopback, and what came."""
    came: list[dict[str, Any]] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(302 if self.path == "/away" else 204)
            self.send_header("Location", "/hook")
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", came
        server.shutdown()
        thread.join()


def told(root: Path, text: str) -> None:
    with (root / "grants.toml").open("a") as file:
        file.write(f"\n[notice]\n{text}\n")


def settled(path: Path) -> dict[str, Any]:
    """What a sender that nobody waits for left; there is one because the test's own act started it."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, "no notice was sent"
        time.sleep(0.05)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_command_hears_of_what_needs_a_person(amem: Run, tmp_path: Path) -> None:
    out = tmp_path / "heard"
    told(tmp_path / "root", f"command = ['/bin/sh', '-c', 'cat > {out}']")
    filed(amem, "For agents")
    name = filed(amem, "Sign the secret contract", "--requires", "human")
    assert settled(tmp_path / "root" / "state" / "notice.json") == {"sent": True, "told": {name: ["human", 0]}, "why": None}
    heard = json.loads(out.read_text())
    assert heard == {"event": "tasks.waiting", "tasks": [{"id": name, "why": "human"}], "total": 1}


def test_what_was_told_is_not_told_again_until_it_waits_anew(amem: Run, tmp_path: Path) -> None:
    out = tmp_path / "heard"
    name = filed(amem, "T")
    told(tmp_path / "root", f"command = ['/bin/sh', '-c', 'cat >> {out}; echo >> {out}']")

    def blocked_again() -> int:
        """How often it was told of once another sender has come to its end."""
        fence = document(amem, "claim", name)["fence"]
        with open_ledger(Root(tmp_path / "root"), grants.load(Root(tmp_path / "root").grants)) as ledger:
            ledger.block(name, by="human:asf:you", on="a key", fence=fence)
        assert amem("notice", "send")[0] == 0 and amem("notice", "send")[0] == 0
        document(amem, "unblock", name)
        return len(out.read_text().splitlines())

    assert (blocked_again(), blocked_again()) == (1, 2)


def test_a_webhook_gets_ids_and_no_words(amem: Run, tmp_path: Path, hook: tuple[str, list[dict[str, Any]]]) -> None:
    url, came = hook
    name = filed(amem, "Sign the secret contract", "--requires", "human")
    told(tmp_path / "root", f'webhook = "{url}/hook"')
    code, out, err = amem("--json", "notice", "test")
    assert (code, json.loads(out)) == (0, {"sent": True, "to": f"{url}/hook"}), err
    assert came == [{"event": "tasks.waiting", "tasks": [{"id": name, "why": "human"}], "total": 1}]
    log = [json.loads(line) for line in (tmp_path / "root" / "state" / "decisions.jsonl").read_text().splitlines()]
    assert [(line["action"], line["allow"]) for line in log if line["action"] == "fetch"] == [("fetch", True)]


def test_a_redirect_is_not_followed(amem: Run, tmp_path: Path, hook: tuple[str, list[dict[str, Any]]]) -> None:
    url, came = hook
    told(tmp_path / "root", f'webhook = "{url}/away"')
    code, _, err = amem("notice", "test")
    assert code == 1 and "answered 302" in err and len(came) == 1


@pytest.mark.parametrize("url", ["https://10.0.0.1/x", "http://169.254.169.254/latest", "https://[fd00::1]/x", "http://93.184.216.34/x"])
def test_the_policy_lets_nothing_out_inward_or_in_the_clear(amem: Run, tmp_path: Path, url: str) -> None:
    told(tmp_path / "root", f'webhook = "{url}"')
    code, out, _ = amem("--json", "notice", "test")
    assert code == 1 and "the policy says no" in json.loads(out)["why"]
    log = [json.loads(line) for line in (tmp_path / "root" / "state" / "decisions.jsonl").read_text().splitlines()]
    assert [line["allow"] for line in log if line["action"] == "fetch"] == [False]


def test_a_command_that_fails_is_told_and_harms_no_task(amem: Run, tmp_path: Path) -> None:
    told(tmp_path / "root", "command = ['/bin/sh', '-c', 'echo no screen >&2; exit 3']")
    name = filed(amem, "Sign", "--requires", "human")
    found = settled(tmp_path / "root" / "state" / "notice.json")
    assert found["sent"] is False and "no screen" in found["why"] and found["told"] == {}
    assert document(amem, "show", name)["status"] == "admitted"
    assert amem("notice", "test")[0] == 1


def test_without_notice_nothing_is_started(amem: Run, tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    assert observer(root, grants.load(root.grants)) is None
    code, _, err = amem("notice", "test")
    assert code == 2 and "notice" in err


@pytest.mark.parametrize(
    "text", ["command = 'x'", "webhook = 'ftp://x'", "webhook = 'https://u:p@x/'", "command = ['a']\nwebhook = 'https://x'"]
)
def test_a_wrong_notice_is_said(amem: Run, tmp_path: Path, text: str) -> None:
    told(tmp_path / "root", text)
    code, _, err = amem("task", "list")
    assert code == 2 and "notice" in err


def test_what_needs_a_person(tmp_path: Path, amem: Run) -> None:
    root = Root(tmp_path / "root")
    with open_ledger(root, grants.load(root.grants)) as ledger:

        def reason(by: str, *, admit: bool = False, **more: Any) -> str | None:
            found = ledger.create(Draft(domain="dom-me", title="T", **more), by=by, admit=admit, capabilities=("code",))
            assert isinstance(found, Filed)
            return why(found.task)

        assert reason("human:asf:you") is None
        assert reason("human:asf:you", admit=True) is None
        assert reason("agent:claude") == "admission"
        assert reason("agent:claude", requires=("code", "deploy")) == "review"
        assert reason("human:asf:you", requires=("human",), admit=True) == "human"
        assert reason("human:asf:you", requires=("irreversible",), admit=True) in ("irreversible", "review")
