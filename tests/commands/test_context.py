"""`amem context list` and `show` over contexts that the egress's own keeper wrote."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amem.cli.main import run
from amem.egress import contexts
from amem.egress.contexts import Contexts
from amem.logs import reader
from amem.model.call import Dialect
from amem.model.label import Label
from amem.record.sealed import Sealer
from amem.settings.root import Root

SESSION, OTHER = "ses-0000000a", "ses-0000000b"
SECRET = "ghp_" + "a1B2" * 9
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["--root", str(root.path), "context", *words])
        return code, *capsys.readouterr()

    return call


def keep(root: Root, session: str, *calls: dict[str, Any]) -> Path:
    """Keep calls as the egress does; `sent` and `came` are their bodies."""
    folder = root.record / "dom-me" / ".contexts" / session
    keeper = Contexts(folder, Sealer(root.state).masked)
    for number, told in enumerate(calls, start=1):
        came = told.pop("came", b'{"id":"msg_1"}')
        one = contexts.Context(**{
            "call": f"call-{number:012}", "at": f"2026-11-30T10:00:0{number}.000Z", "dialect": Dialect.ANTHROPIC, "model": "m-1",
            "label": Label.INTERNAL, "shaping": (), "path": "/v1/messages", "request": told.pop("sent", b'{"model":"m-1"}'), "status": 200,
            "response_class": "msg_", **told,
        })  # fmt: skip
        keeper.begin(one)
        if came is not None:
            one.feed(came)
        keeper.end(one)
    keeper.close()
    return folder


ASKED = json.dumps({"content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}).encode()


def test_each_call_says_its_label_its_tools_how_it_was_changed_and_who_answered(root: Root, amem: Run) -> None:
    keep(root, SESSION, {"shaping": ("cap_output",), "came": ASKED}, {"at": "2026-11-30T11:00:00.000Z"})
    keep(root, OTHER, {"at": "2026-11-30T10:30:00.000Z"})
    code, out, _ = amem("list", "--json")
    told = json.loads(out)
    assert (code, told["total"], told["more"]) == (0, 3, False)
    assert [(one["session"], one["n"]) for one in told["contexts"]] == [(SESSION, 2), (OTHER, 1), (SESSION, 1)]
    first = told["contexts"][2]
    assert {key: first[key] for key in ("dialect", "model", "label", "tools", "shaping", "response_class", "observed_by")} == {
        "dialect": "anthropic", "model": "m-1", "label": "internal", "tools": ["Bash"], "shaping": ["cap_output"], "response_class": "msg_",
        "observed_by": "egress",
    }  # fmt: skip
    assert first["digest"].startswith("sha256-")
    assert (told["contexts"][0]["tools"], told["contexts"][0]["shaping"]) == ([], [])
    assert not {"request", "response"} & first.keys()
    code, out, _ = amem("list", SESSION, "--limit", "1", "--json")
    assert (code, [one["n"] for one in json.loads(out)["contexts"]], json.loads(out)["more"]) == (0, [2], True)


def test_the_table_fits_whatever_a_harness_called_its_model(root: Root, amem: Run) -> None:
    tools = json.dumps({"content": [{"type": "tool_use", "id": str(n), "name": f"mcp__some_server__tool_{n}"} for n in range(9)]}).encode()
    keep(root, SESSION, {"model": "a-\x1b[31m" + "very-" * 200 + "long", "label": Label.RESTRICTED, "came": tools})
    code, out, err = amem("list")
    assert (code, err) == (0, "1 of 1\n")
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "mcp__some" in out


def test_show_has_what_left_and_what_came_without_its_encoding(root: Root, amem: Run) -> None:
    keep(root, SESSION, {"sent": b'{"a":1}'}, {"sent": b'{"b":2}', "came": gzip.compress(b'{"c":"\xff"}'), "content_encoding": "gzip"})
    code, out, _ = amem("show", SESSION, "--turn", "2", "--json")
    [told] = json.loads(out)["contexts"]
    assert (code, told["n"], told["request"], told["response"]) == (0, 2, '{"b":2}', '{"c":"\\xff"}')
    code, out, _ = amem("show")  # the newest session
    assert (code, out.index('{"a":1}') < out.index('{"b":2}'), "shaping: none" in out) == (0, True, True)


def test_a_call_without_an_answer_says_so(root: Root, amem: Run) -> None:
    keep(root, SESSION, {"came": None, "partial": True})
    code, out, _ = amem("show", SESSION)
    assert (code, "response: not kept" in out, "partial: True" in out) == (0, True, True)


def test_a_credential_is_shown_to_who_asks_for_it_and_that_is_in_the_log(root: Root, amem: Run) -> None:
    keep(root, SESSION, {"sent": f'{{"say":"{SECRET}"}}'.encode(), "came": gzip.compress(SECRET.encode()), "content_encoding": "gzip"})
    log = root.state / "writes.jsonl"
    before = list(reader.events(log))
    for words in (("list", "--json"), ("show", SESSION, "--json"), ("show", SESSION)):
        code, out, _ = amem(*words)
        assert (code, SECRET in out) == (0, False)
    assert list(reader.events(log)) == before
    code, out, _ = amem("show", SESSION, "--turn", "1", "--unmask", "--json")
    [told] = json.loads(out)["contexts"]
    assert (code, told["request"], told["response"]) == (0, f'{{"say":"{SECRET}"}}', SECRET)
    said = list(reader.events(log))[-1]
    assert (said["act"], said["subject"], said["principal"]) == ("unmask", f"context:{SESSION}#1", "human:asf:you")


def test_nothing_is_unmasked_that_cannot_be_logged(root: Root, amem: Run) -> None:
    keep(root, SESSION, {"sent": SECRET.encode()})
    (root.state / "writes.jsonl").unlink(missing_ok=True)
    (root.state / "writes.jsonl").mkdir()
    code, out, _ = amem("show", SESSION, "--unmask")
    assert (code == 0, SECRET in out) == (False, False)


def test_a_seal_that_a_session_wrote_itself_hides_no_other(root: Root, amem: Run) -> None:
    keep(root, SESSION, {"sent": b"amem-sealed." + b"A" * 40 + b". and " + SECRET.encode()})
    code, out, err = amem("show", SESSION, "--unmask")
    assert (code, SECRET in out, "amem-sealed.AAAA" in out, "as it stands" in err) == (0, True, True, True)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("list", "ses-0000000c"), 3), (("show", "ses-0000000c"), 3), (("show", SESSION, "--turn", "9"), 3), (("list", "../.."), 2),
        (("show", "*"), 2), (("show", SESSION, "--turn", "0"), 2),
    ],
)  # fmt: skip
def test_what_is_not_there_is_a_no_and_what_is_no_id_a_wrong_use(root: Root, amem: Run, words: tuple[str, ...], wanted: int) -> None:
    keep(root, SESSION, {})
    code, out, err = amem(*words)
    assert (code, out) == (wanted, "")
    assert err


def test_without_any_call_the_list_is_empty_and_there_is_nothing_to_show(amem: Run) -> None:
    code, out, _ = amem("list", "--json")
    assert (code, json.loads(out)) == (0, {"contexts": [], "total": 0, "more": False})
    assert amem("show")[0] == 3


def test_another_person_sees_none(root: Root, amem: Run) -> None:
    import getpass

    keep(root, SESSION, {})
    with root.grants.open("a") as file:
        file.write(f'\n[people."human:asf:else"]\nos_users = ["{getpass.getuser()}"]\n')
    for words in (("list",), ("show", SESSION), ("show", SESSION, "--unmask")):
        code, out, err = amem(*words, "--as", "human:asf:else")
        assert (code, out) == (3, ""), err
        assert "owner alone" in err


def test_a_body_that_was_changed_is_not_shown(root: Root, amem: Run) -> None:
    folder = keep(root, SESSION, {})
    blobs = sorted((folder / "blobs").iterdir())
    blobs[0].write_bytes(blobs[1].read_bytes())
    code, out, err = amem("show", SESSION)
    assert (code, out) == (1, "")
    assert "not what was kept" in err


def test_a_call_of_which_something_was_erased_is_still_listed(root: Root, amem: Run) -> None:
    folder = keep(root, SESSION, {})
    (folder / "calls.jsonl").write_text(
        '{"n":1,"call":"call-1","at":"2026-11-30T10:00:00.000Z","label":"public","erased":true}\nnot json\n7\n'
    )
    code, out, _ = amem("list")
    assert (code, "erased" in out) == (0, True)
    code, out, _ = amem("show", SESSION, "--json")
    assert json.loads(out)["contexts"] == [
        {"session": SESSION, "n": 1, "call": "call-1", "at": "2026-11-30T10:00:00.000Z", "label": "public", "erased": True}
    ]
