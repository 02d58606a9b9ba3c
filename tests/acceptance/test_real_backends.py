"""The real Claude Code and Codex do the whole job where the egress is reached otherwise, or the programs are an image's."""

import os

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.acceptance.test_real_harnesses import FACT, MODELS, script
from tests.testing.installed import installed

IMAGE = PROJECT / "build/image/amem-image.tar"


def refuses_root(backend: str, harness: str) -> bool:
    """Claude Code does not switch its questions off for root; in a sandbox it is not root. amem does not talk it out of that."""
    return backend == "unconfined" and harness == "claude" and os.geteuid() == 0


@pytest.mark.real_harness
@pytest.mark.parametrize("harness", ["claude", "codex"])
@pytest.mark.parametrize("backend", ["relay", "unconfined", "image"])
def test_the_whole_job(place: Place, provider: Running, backend: str, harness: str) -> None:
    if backend == "image":
        if not IMAGE.is_file():
            pytest.skip("no harness image was built: make image")
        unpacked = place.amem("image", "unpack", "--from", str(IMAGE), timeout_s=600)
        assert unpacked.code == 0, unpacked.err
    else:
        installed(harness)
    provider.load(script(harness))
    place.destination(provider.url)
    words = ("--backend", backend, "--model", MODELS[harness], "--json", "--prompt", "count the widget")
    done = place.launch(*words, harness=harness)
    if refuses_root(backend, harness):
        assert done.code == 1 and "root" in done.err
        return
    assert done.code == 0, done.err + done.out
    session = done.json
    assert session["backend"] == backend and session["answer"] == "Counted, written down and handed over."
    assert (place.tree / "made.txt").read_text() == "made-by-42\n"
    assert place.amem("get", session["entries"][0], "--json").json["title"] == FACT["title"]
    assert place.amem("get", session["handoffs"][0], "--json").json["left_by"] == "agent"
    totals = list(provider.totals().values())
    rows = place.amem("usage", "--session", session["id"], "--json").json["usage"]
    for part in ("input", "output", "cache_read", "cache_write"):
        assert sum(row[part] for row in rows) == sum(getattr(used, part) for used in totals), part
    assert all("status" not in row and "unmetered" not in row for row in rows)


@pytest.mark.real_harness
@pytest.mark.parametrize("harness", ["claude", "codex"])
@pytest.mark.parametrize("backend", ["relay", "unconfined"])
def test_the_hooks_reach_their_guard(place: Place, provider: Running, backend: str, harness: str) -> None:
    """A session that wrote no handoff leaves the hook's note: the hook program ran, and was let in."""
    installed(harness)
    provider.load({"steps": [{"tool": "memory.t0"}, {"text": "I looked around and stopped there."}]})
    place.destination(provider.url)
    if refuses_root(backend, harness):
        pytest.skip("Claude Code does not run without questions as root")
    done = place.launch("--backend", backend, "--model", MODELS[harness], "--prompt", "look around", harness=harness)
    assert done.code == 0, done.err + done.out
    assert place.amem("handoff", "show", "--json").json["left_by"] == "hook"
