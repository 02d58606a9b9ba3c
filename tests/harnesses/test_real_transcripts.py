"""What each real program leaves is kept as the turns that its own hook cited, and it asked the guard about its tool calls."""

import re

import pytest

from amem.harnesses.base import Auth
from amem.testing.provider import Running
from tests.acceptance.conftest import Place, confinement, place, provider  # noqa: F401 - fixtures
from tests.harnesses.ways import WAYS, launch, set_up, shell
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness


@pytest.mark.parametrize("harness", WAYS)
def test_a_sessions_turns_are_kept_as_its_note_cites_them(place: Place, provider: Running, harness: str) -> None:  # noqa: F811
    installed(harness)
    steps = [shell(harness, "echo counted the left shelf"), shell(harness, "echo counted the right shelf"), {"text": "Both are counted."}]
    provider.load({"steps": steps})
    ran = launch(place, harness, set_up(place, harness, Auth.KEY, provider.url))
    assert ran.done.code == 0, ran.done.err + ran.done.out
    assert "the guard was asked about" not in ran.done.err
    session = ran.done.json["id"]
    (kept,) = place.amem("transcript", "list", "--json").json["transcripts"]
    assert (kept["session"], kept["harness"], kept["cited"], kept.get("bad_lines")) == (session, harness, 1, None)

    (note,) = [place.amem("get", id, "--json").json for id in ran.done.json["handoffs"]]
    cited = re.search(rf"transcript:{session}#(\d+)-(\d+)", note["body"])
    assert cited is not None, note["body"]
    shown = place.amem("transcript", "show", session, "--turn", f"1-{kept['turns']}", "--json").json
    found = {turn["n"]: turn for turn in shown["turns"]}
    assert set(found) == set(range(int(cited[1]), int(cited[2]) + 1)) and shown["cited_by"] == [note["id"]]
    # What the note shows under a number is what stands under it at the end.
    noted = {int(n): text for n, text in re.findall(r"^#(\d+) \w+\n(.*)$", note["body"], re.MULTILINE)}
    assert all(text in found[n]["text"] or text.startswith("-> ") for n, text in noted.items())
    calls = [call for turn in found.values() for call in turn.get("tools", ())]
    assert [re.search(r"counted the (\w+) shelf", call["arguments"])[1] for call in calls] == ["left", "right"]  # type: ignore[index]
    assert all(call["name"] == WAYS[harness].shell and call["bytes"] > 20 for call in calls)
    last = found[kept["turns"]]
    assert (last["role"], last["text"]) == ("assistant", "Both are counted.")
