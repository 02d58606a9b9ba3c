"""`amem transcript` over transcripts that a launch kept."""

import json
from collections.abc import Callable

import pytest

from amem.cli.main import run
from amem.memory.transcripts import CITATION
from amem.model.label import Label
from amem.record import transcripts
from amem.record.sealed import Sealer
from amem.settings.root import Root

SESSION, OTHER = "ses-0000000a", "ses-0000000b"
SECRET = "ghp_" + "a1B2" * 9
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str, group: str = "transcript") -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["--root", str(root.path), *([group] if group else []), *words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def kept(root: Root) -> None:
    rows = [
        {"n": 1, "role": "user", "text": "count \x1b[31mthe\u202e shelf"},
        {
            "n": 2, "role": "assistant", "text": "[reasoning] two shelves", "reasoning": "returned",
            "tools": [{"name": "Bash", "arguments": '{"command":"ls\x1b]0;x\x07"}', "bytes": 12}],
        },
        {"n": 3, "role": "tool", "text": f"token {SECRET}"},
    ]  # fmt: skip
    for session, at in ((SESSION, "2026-11-30T10:00:00.000Z"), (OTHER, "2026-11-29T10:00:00.000Z")):
        path = transcripts.place(root, "dom-me", session)
        one = transcripts.Kept(path, session, "dom-me", "claude", Label.INTERNAL, at, 3, bad_lines=1)
        transcripts.keep(one, rows, Sealer(root.state).masked)


def cite(amem: Run, turns: str) -> str:
    code, out, err = amem("write", "--type", "fact", "--title", "Counted", "--body", f"See transcript:{SESSION}#{turns}.", group="")
    assert code == 0, err
    return out.strip()


def test_list_says_whose_how_much_and_until_when(amem: Run, kept: None) -> None:
    cite(amem, "1-2")
    code, out, err = amem("list")
    assert code == 0 and err == "2 of 2\n"
    head, first, second = out.splitlines()
    assert head.split() == ["session", "harness", "classification", "turns", "bytes", "cited", "expires_at"]
    assert first.split()[:4] == [SESSION, "claude", "internal", "3"] and first.split()[5:] == ["1", "2026-12-30"]
    assert second.startswith(OTHER) and max(map(len, out.splitlines())) <= 80
    told = json.loads(amem("list", "--limit", "1", "--json")[1])
    assert (told["total"], told["more"], told["transcripts"][0]["expires_at"]) == (2, True, "2026-12-30T10:00:00.000Z")
    assert {key: told["transcripts"][0][key] for key in ("cited", "observed_by", "bad_lines")} == {
        "cited": 1,
        "observed_by": "harness",
        "bad_lines": 1,
    }
    assert json.loads(amem("list", "--session", OTHER, "--json")[1])["total"] == 1
    assert json.loads(amem("list", "--since", "2026-11-30", "--json")[1])["total"] == 1


def test_the_clock_is_the_grants(amem: Run, root: Root, kept: None) -> None:
    root.grants.write_text(root.grants.read_text().replace("transcript_retention_days = 30", "transcript_retention_days = 1"))
    told = json.loads(amem("list", "--session", SESSION, "--json")[1])
    assert told["transcripts"][0]["expires_at"] == "2026-12-01T10:00:00.000Z"


def test_show_gives_cited_turns_with_nothing_that_acts_on_a_terminal(amem: Run, kept: None) -> None:
    entry = cite(amem, "1-2")
    code, out, err = amem("show", SESSION, "--turn", "1-3")
    assert code == 0 and entry in err and "1 more turns" in err
    assert out.startswith("#1 user\ncount \\x1b[31mthe\\u202e shelf\n\n#2 assistant\n[reasoning] two shelves\n-> Bash ")
    assert "(12 bytes)" in out and "#3" not in out
    assert not [char for char in out if not char.isprintable() and char != "\n"]
    code, out, _ = amem("show", SESSION, "--turn", "2", "--json")
    told = json.loads(out)
    assert (code, told["cited_by"], told["observed_by"], told["session"]) == (0, [entry], "harness", SESSION)
    assert (told["turns"][0]["n"], told["turns"][0]["reasoning"]) == (2, "returned")
    assert out.isascii()


def test_what_nothing_cites_and_what_is_sealed_is_the_owners_to_ask_for(amem: Run, kept: None) -> None:
    code, _, err = amem("show", SESSION, "--turn", "3")
    assert code == 3 and "nothing cites it" in err
    code, out, _ = amem("show", SESSION, "--turn", "3", "--uncited")
    assert code == 0 and "amem-sealed." in out and SECRET not in out
    code, out, _ = amem("show", SESSION, "--turn", "3", "--uncited", "--unmask")
    assert code == 0 and f"token {SECRET}" in out


@pytest.mark.parametrize(
    "words",
    [
        ("show", SESSION),
        ("show", SESSION, "--turn", "3-2"),
        ("show", SESSION, "--turn", "0"),
        ("show", "x", "--turn", "1"),
        ("show", SESSION, "--turn", "1-"),
        ("erase", SESSION),
        ("list", "--session", "../x"),
    ],
)
def test_a_wrong_command_line_is_said_to_be_one(amem: Run, kept: None, words: tuple[str, ...]) -> None:
    assert amem(*words)[0] == 2


def test_what_is_not_there_is_3(amem: Run, kept: None) -> None:
    for words in (
        ("show", SESSION, "--turn", "9"),
        ("show", "ses-0000000z", "--turn", "1"),
        ("erase", "ses-0000000z", "--reason", "x", "--yes"),
        ("erase", "ses-0000000z", "--reason", "x", "--dry-run"),
    ):
        assert amem(*words)[0] == 3


def test_sweep_and_erase_say_what_they_do(amem: Run, root: Root, kept: None) -> None:
    entry = cite(amem, "2")
    code, out, _ = amem("sweep", "--at", "2027-01-01", "--dry-run")
    assert code == 0 and f"{OTHER}: its transcript would be dropped" in out and f"{SESSION}#2: would stay, cited by {entry}" in out
    assert transcripts.place(root, "dom-me", OTHER).exists()
    code, out, _ = amem("sweep", "--at", "2027-01-01", "--json")
    assert json.loads(out) == {
        "kept": [{"session": SESSION, "turn": 2, "entry": entry}],
        "dropped": {"transcripts": [SESSION, OTHER], "contexts": [], "homes": [], "sources": []},
    }  # fmt: skip
    assert "swept" in amem("list")[1]
    code, out, _ = amem("erase", SESSION, "--why", "customers", "--dry-run", "--json")
    assert code == 0 and json.loads(out) == {"transcript": SESSION, "citing": [entry]}
    code, out, err = amem("erase", SESSION, "--reason", "customers", "--yes")
    assert code == 0 and "is erased" in out and f"{entry} cites it" in err
    assert "erased" in amem("list")[1]
    assert amem("show", SESSION, "--turn", "2")[0] == 3
    assert amem("verify", group="")[0] == 0


def test_a_person_without_a_grant_is_told_nothing(amem: Run, root: Root, kept: None) -> None:
    import getpass
    import os
    import pwd

    user = pwd.getpwuid(os.getuid()).pw_name or getpass.getuser()
    grants = root.grants.read_text()
    root.grants.write_text(
        grants + f'\n[people."human:asf:bob"]\nos_users = ["{user}"]\n[grants.dom-bob.principals."human:asf:bob"]\nread = "restricted"\n'
    )
    cite(amem, "1-3")
    bob = ("--as", "human:asf:bob")
    assert json.loads(amem("list", "--json", *bob)[1])["total"] == 0
    assert amem("show", SESSION, "--turn", "1", *bob)[0] == 3
    for words in (("show", SESSION, "--turn", "3", "--uncited"), ("sweep",), ("erase", SESSION, "--why", "x", "--yes")):
        code, out, err = amem(*words, *bob)
        assert code == 3 and SESSION not in out + err


def test_a_handoffs_own_citation_is_one() -> None:
    from amem.hooks import outbox, tail

    note = outbox.note("session-end", "claude", {}, tail.Tail("x.jsonl", "said", 3, 9, ""), SESSION)
    found = CITATION.search(note)
    assert found is not None and found.groups() == (SESSION, "3", "9")
