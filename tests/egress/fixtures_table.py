"""The external usage fixtures, and their figures read off by hand from each file."""

from typing import NamedTuple

from amem.model.call import Dialect, Usage


class Fixture(NamedTuple):
    """A recorded answer and what it says was used; `usage` None where it says nothing."""

    name: str
    dialect: Dialect
    usage: Usage | None
    model: str

    @property
    def content_type(self) -> str:
        return "text/event-stream" if "stream" in self.name else "application/json"


A, R, C, G = Dialect.ANTHROPIC, Dialect.RESPONSES, Dialect.CHAT, Dialect.GEMINI
FIXTURES = (
    Fixture("anthropic--stream_tool", A, Usage(input=15, output=12), "claude-haiku-4-5-20251001"),
    Fixture("anthropic--stream_tool_empty_args", A, Usage(input=15, output=8), "claude-haiku-4-5-20251001"),
    Fixture("anthropic--thinking", A, Usage(input=47, output=251, cache_read=2, cache_write=1), "claude-opus-4-6"),
    Fixture("anthropic--tool", A, Usage(input=558, output=48, cache_read=2, cache_write=1), "claude-opus-4-6"),
    # prompt 1000, of which 300 were read from the cache and 200 written to it
    Fixture("completions--cache_write", C, Usage(input=500, output=10, cache_read=300, cache_write=200, reasoning=0), "gpt-5.6"),
    # The file's own total is 8: Gemini leaves thinking out of completion_tokens and names it nowhere. The stated figure stands.
    Fixture("completions--gemini_zero_completion_tokens", C, Usage(input=7, output=0), "gemini-2.5-flash"),
    Fixture("completions--stream_tool_empty_content", C, Usage(input=12, output=8), "claude-opus-4-8"),
    Fixture("openai--embeddings", C, Usage(input=8, output=0), "text-embedding-3-small"),
    Fixture("openai--gemini-embeddings", C, None, "gemini-embedding-001"),
    Fixture("responses--reasoning", R, Usage(input=18, output=5, reasoning=8), "qwen3-8b"),
    Fixture("responses--stream-custom-tool", R, Usage(input=6, output=5, cache_read=4, reasoning=0), "gpt-5.6-luna"),
    Fixture("responses--stream-image", R, Usage(input=1755, output=1314, reasoning=1152), "gpt-5-2025-08-07"),
    Fixture("responses--stream-refusal", R, Usage(input=5, output=3, reasoning=0), "gpt-4.1-mini"),
    Fixture("vertex-gemini--basic", G, Usage(input=8, output=6), "gemini-2.5-pro"),
    Fixture("vertex-gemini--stream_tool", G, Usage(input=15, output=12), "gemini-2.5-pro"),
    Fixture("vertex-gemini--tool", G, Usage(input=20, output=8), "gemini-2.5-pro"),
)
