"""`amem savings` on a root with a record, sessions and transcripts."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from amem.cli.main import run
from amem.egress import meter
from amem.memory import read as reading
from amem.memory.session import agent_session, open_memory
from amem.model.call import Billing, ObservedBy
from amem.model.label import Label
from amem.record import transcripts
from amem.settings import grants
from amem.settings.root import Root

SESSION = "ses-0000000a"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["--root", str(root.path), *words])
        return code, *capsys.readouterr()

    return call


def told(amem: Run, *words: str) -> Any:
    code, out, err = amem("savings", "--json", *words)
    assert code == 0, err
    return json.loads(out)


def test_an_empty_root_has_nothing_to_show_and_says_so(amem: Run) -> None:
    code, out, err = amem("savings")
    assert code == 0 and "no session has read anything yet" in out and err == ""
    found = told(amem)
    assert found["funnel"] == [] and found["metrics"]["depth"] == {"pulls": 0, "completed": 0}
    assert found["retrieval"]["corpus"] == 0 and found["recovery"]["transcripts"] == {"sessions": 0, "tokens": 0}


def test_a_session_is_measured_from_its_logs(amem: Run, root: Root) -> None:
    bodies = [f"The {word} import is retried three times, and then the run stops. " * 40 for word in ("first", "second", "third")]
    for n, body in enumerate(bodies):
        assert amem("write", "--type", "fact", "--title", f"Retries of import {n}", "--body", body)[0] == 0
    memory = open_memory(root, grants.load(root.grants))
    session = agent_session(memory, id=SESSION, principal="agent:claude", domain="dom-me", harness="claude")
    hits = reading.search(memory, session, "retries").hits  # type: ignore[union-attr]
    reading.get(memory, session, hits[0].id)
    memory.close()
    meter.keep(root, [
        meter.CallRow(
            id="call-000000000001", at="2026-11-30T10:00:00.000Z", session=SESSION, domain="dom-me", principal="agent:claude", task=None,
            destination="anthropic", model="m", dialect="anthropic", status=200, billing=Billing.PLAN, source=ObservedBy.HARNESS,
            input=4000, output=50, cache_read=900, cache_write=100, reasoning=None,
        )
    ])  # fmt: skip
    place = transcripts.place(root, "dom-me", SESSION)
    kept = transcripts.Kept(place, SESSION, "dom-me", "claude", Label.INTERNAL, "2026-11-30T10:00:00.000Z", 1)
    transcripts.keep(kept, [{"n": 1, "role": "user", "text": "x" * 8000, "tools": [{"name": "Bash", "arguments": "y" * 400}]}], bytes)

    found = told(amem, "--query", "how often is an import retried")
    assert found["recovery"]["transcripts"] == {"sessions": 1, "tokens": 2100} and found["recovery"]["t0"] > 100
    retrieval = found["retrieval"]
    assert retrieval["corpus"] == sum(-(-len(body.strip().encode()) // 4) for body in bodies) and retrieval["bodies"] == retrieval["corpus"]
    assert 0 < retrieval["page"] < retrieval["bodies"] and retrieval["known"] == {"tried": 3, "top3": 3}
    (row,) = found["funnel"]
    assert (row["session"], row["reads"], row["ingested"], row["cached"], row["source"]) == (SESSION, 2, 5000, 900, "harness")
    assert row["served"] == sum(row["by"].values()) and row["by"]["get"] > 500 and set(row["by"]) == {"get", "search"}
    assert found["metrics"]["fetch_through"] == {"count": 1, "of": 3, "rate": 0.3333}

    code, out, _ = amem("savings")
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert SESSION in out and "harness" in out and "retries of import" in out.lower()
    assert told(amem, "--since", "1h")["recovery"]["transcripts"]["sessions"] == 0


def test_what_was_read_is_the_owners_matter(amem: Run, root: Root) -> None:
    import os
    import pwd

    user = pwd.getpwuid(os.getuid()).pw_name
    with root.grants.open("a") as file:
        file.write(f'\n[people."human:asf:bob"]\nos_users = ["{user}"]\n')
    assert amem("savings", "--as", "human:asf:bob")[0] == 3
    assert amem("savings", "--domain", "dom-nowhere")[0] == 2
