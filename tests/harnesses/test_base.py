"""Choices and refusals common to all harnesses."""

import pytest

from amem.errors import UsageError
from amem.harnesses import base, registry
from amem.harnesses.base import Auth, Choice, LaunchFacts, Version

FACTS = LaunchFacts(
    auth=Auth.KEY, destination="anthropic", program=("/opt/claude",), egress_url="http://127.0.0.1:9101", session="ses-0123abcd",
    workdir="/r/tree", placeholder="placeholder-0123456789abcdef",
)  # fmt: skip


@pytest.mark.parametrize(
    ("harness", "auth", "destination", "chosen"),
    [
        ("claude", None, None, Choice(auth=Auth.SUBSCRIPTION, destination="anthropic")),
        ("claude", "key", None, Choice(auth=Auth.KEY, destination="anthropic")),
        ("claude", None, "demo", Choice(auth=Auth.KEY, destination="demo")),
        ("codex", "key", "xai", Choice(auth=Auth.KEY, destination="xai")),
        ("codex", None, "llmao", Choice(auth=Auth.GATEWAY, destination="llmao")),
        ("command", None, None, Choice(auth=Auth.KEY, destination="anthropic")),
        ("opencode", None, None, Choice(auth=Auth.KEY, destination="anthropic")),
        ("opencode", None, "github-copilot", Choice(auth=Auth.SUBSCRIPTION, destination="github-copilot")),
        ("qwen", None, None, Choice(auth=Auth.KEY, destination="dashscope")),
    ],
)
def test_auth_and_destination_are_settled(harness: str, auth: str | None, destination: str | None, chosen: Choice) -> None:
    assert base.choose(registry.load(harness), auth=auth, destination=destination) == chosen


@pytest.mark.parametrize(
    ("harness", "auth", "destination", "says"),
    [
        ("command", "subscription", None, "no login that could be carried in"),
        ("qwen", "subscription", None, "free login tier ended"),
        ("pi", "subscription", None, "pi has none of its own"),
        ("claude", "keys", None, "no AUTH mode 'keys'; claude has subscription, key, gateway"),
        ("claude", "key", "openai", "AUTH key does not go to 'openai'; it goes to anthropic, demo"),
        ("claude", None, "xai", "no destination 'xai'; it has anthropic, demo, llmao"),
        ("codex", "gateway", "openai", "AUTH gateway does not go to 'openai'"),
    ],
)
def test_what_is_not_to_be_had_is_refused_with_the_reason(harness: str, auth: str | None, destination: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        base.choose(registry.load(harness), auth=auth, destination=destination)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt": " \n"}, "prompt is empty"),
        ({"prompt": "x" * (base.MAX_PROMPT_BYTES + 1)}, "put the rest into a file"),
        ({"prompt": "é" * (base.MAX_PROMPT_BYTES // 2 + 1)}, "put the rest into a file"),
        ({"prompt": "a\0b"}, "NUL"),
        ({"args": ("a\0b",)}, "NUL"),
        ({"auth": Auth.GATEWAY, "destination": "llmao"}, "needs a model"),
        ({"destination": "openai"}, "does not go to"),
    ],
)
def test_facts_that_cannot_be_launched_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        base.launch(registry.load("claude"), FACTS._replace(**change))  # type: ignore[arg-type]


def test_a_destination_may_need_a_model_where_its_mode_does_not() -> None:
    opencode = registry.load("opencode")
    base.launch(opencode, FACTS)
    with pytest.raises(UsageError, match="AUTH key at demo needs a model"):
        base.launch(opencode, FACTS._replace(destination="demo"))


def test_the_longest_prompt_that_is_taken_fits_one_argument() -> None:
    launch = base.launch(registry.load("claude"), FACTS._replace(prompt="-" * base.MAX_PROMPT_BYTES))
    assert max(len(argument.encode()) + 1 for argument in launch.argv) <= 128 * 1024


def test_a_command_without_a_program_is_refused() -> None:
    with pytest.raises(UsageError, match="no program to run"):
        base.launch(registry.load("command"), FACTS._replace(program=()))


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_prompt_that_looks_like_a_flag_is_no_flag(name: str) -> None:
    harness = registry.load(name)
    facts = FACTS._replace(destination=harness.destinations[Auth.KEY][0], prompt="--help")
    argv = base.launch(harness, facts).argv
    assert " --help" in argv and "--help" not in argv


@pytest.mark.parametrize("name", registry.names())
def test_tables_agree_with_themselves(name: str) -> None:
    harness = registry.load(name)
    assert harness.name == name
    assert set(harness.destinations) == set(harness.auth)
    assert all(harness.destinations[mode] for mode in harness.auth)
    assert not set(harness.refusals) & set(harness.auth)
    if Auth.SUBSCRIPTION in harness.auth:
        assert harness.login is not None or harness.tunnel_hosts
    # A hook's own deadline is eight seconds; a harness that gives up earlier lets the tool run.
    assert all(hook.timeout_s > 8 for hook in harness.hooks if hook.kind is base.HookKind.PRE_TOOL)


@pytest.mark.parametrize(("version", "too_old"), [("pi 0.74.2", True), ("1.0.0", False), ("v1.6.0 (abc)", False), ("dev", False)])
def test_a_version_below_the_floor_is_named(version: str, too_old: bool) -> None:
    harness = registry.load("claude")._replace(version=Version(floor=(1, 0), reason="it has no MCP"))
    said = base.outdated(harness, version)
    assert (said is not None) == too_old
    assert said is None or "1.0 or later is needed, because it has no MCP" in said


@pytest.mark.parametrize(("version", "beyond"), [("3.0.0", True), ("2.9.9", False), ("1.0.0", False), ("", False), ("2.1.332", False)])
def test_a_major_version_beyond_the_tested_one_is_named(version: str, beyond: bool) -> None:
    said = base.newer(registry.load("claude"), version, "2.1.332")
    assert (said is not None) == beyond
    assert said is None or "3.0.0 is newer than amem knows: it is tested with 2.1.332" in said


@pytest.mark.parametrize("name", sorted(registry.pins().keys() - {"node"}))
def test_the_pinned_version_is_neither_too_old_nor_too_new(name: str) -> None:
    harness, pin = registry.load(name), registry.pins()[name]
    assert base.outdated(harness, pin.version) is None and base.newer(harness, pin.version, pin.version) is None
