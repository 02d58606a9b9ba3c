"""Any program as a harness: it finds the egress by the usual base-URL variables and its memory by `MEMORY_MCP_URL`.

Its `program` is what the user wrote after `--`, arguments and all; a prompt becomes the last argument. It has no hooks
and keeps no transcript that amem knows of, so a session leaves a handoff only by the memory tool.
"""

from collections.abc import Mapping

from amem.harnesses.base import DEMO, GATEWAY, Auth, Harness, LaunchFacts
from amem.model.call import Dialect


def environment(facts: LaunchFacts) -> Mapping[str, str]:
    """Every base URL and every key variable: which of them the program reads is its own matter."""
    env = {
        "ANTHROPIC_BASE_URL": facts.egress_url,
        "ANTHROPIC_API_KEY": facts.placeholder,
        "OPENAI_BASE_URL": facts.openai_url,
        "OPENAI_API_KEY": facts.placeholder,
        "GOOGLE_GEMINI_BASE_URL": facts.egress_url,
        "GEMINI_API_KEY": facts.placeholder,
    }
    if facts.model is not None:
        env |= dict.fromkeys(("ANTHROPIC_MODEL", "OPENAI_MODEL", "GEMINI_MODEL"), facts.model)
    return env


def arguments(facts: LaunchFacts) -> tuple[str, ...]:
    """The prompt, as it is: whether it may begin with a dash is the program's matter."""
    return () if facts.prompt is None else (facts.prompt,)


HARNESS = Harness(
    name="command",
    title="any program",
    binary="",
    auth=(Auth.KEY, Auth.GATEWAY),
    destinations={
        Auth.KEY: ("anthropic", "openai", "google", "xai", "meta", "dashscope", DEMO),
        Auth.GATEWAY: (GATEWAY,),
    },
    dialects=tuple(Dialect),
    environment=environment,
    files=lambda facts: {},
    arguments=arguments,
    refusals={Auth.SUBSCRIPTION: "a plain program has no login that could be carried in"},
    model_required=frozenset(),
    install="",
    keyless=True,
)
