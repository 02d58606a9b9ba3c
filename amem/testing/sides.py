"""What the scripted provider answers to requests that are not model calls: token counts, model lists, Code Assist's set-up."""

from collections.abc import Sequence

from amem.testing import shapes
from amem.testing.exchanges import Exchange
from amem.testing.requests import Side
from amem.testing.script import Script
from amem.typed import Any


def credentials(exchange: Exchange) -> set[str]:
    """Every credential that a request carries, wherever a provider would look for one."""
    bearer = exchange.headers.get("authorization", "").removeprefix("Bearer ")
    query = {value for name, _, value in (pair.partition("=") for pair in exchange.query.split("&")) if name == "key"}
    return {bearer, exchange.headers.get("x-api-key", ""), exchange.headers.get("x-goog-api-key", "")} | query


def answer(kind: Side, exchange: Exchange, script: Script, path: str) -> tuple[int, Any]:
    """Status and body for a request that is not a model call."""
    match kind:
        case Side.COUNT_TOKENS:
            return 200, {"input_tokens": -(-len(exchange.body) // 4)}
        case Side.GEMINI_COUNT:
            return 200, {"totalTokens": -(-len(exchange.body) // 4)}
        case Side.MODELS:
            return 200, _model_list(exchange, script.models)
        case Side.CODE_ASSIST:
            return 200, _CODE_ASSIST[path.rpartition(":")[2]]
        case Side.IDENTITY:
            told = script.accounts.get(exchange.headers.get("authorization", "").removeprefix("Bearer "))
            return (200, told) if told is not None else (401, shapes.error(kind, 401, "no such token"))
        case Side.ROOT:
            return 200, {"provider": "scripted"}
        case Side.UNKNOWN:
            return 404, shapes.error(kind, 404, f"the scripted provider has no {exchange.method} {path}")


_CODE_ASSIST: dict[str, Any] = {
    "loadCodeAssist": {"currentTier": {"id": "standard-tier", "name": "Scripted"}, "cloudaicompanionProject": "scripted-project"},
    "onboardUser": {"done": True, "response": {"cloudaicompanionProject": {"id": "scripted-project"}}},
    "retrieveUserQuota": {"buckets": []},
    "listExperiments": {"experimentIds": [], "flags": []},
}


def _model_list(exchange: Exchange, models: Sequence[str]) -> Any:
    """The model list in the shape of whoever asks: Codex, Google, Anthropic, else OpenAI."""
    if "client_version=" in exchange.query:
        return {"models": []}
    if "x-goog-api-key" in exchange.headers or "key=" in exchange.query:
        methods = ["generateContent", "countTokens"]
        return {"models": [{"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": methods} for model in models]}
    if "anthropic-version" in exchange.headers:
        rows = [{"type": "model", "id": model, "display_name": model, "created_at": "2026-01-01T00:00:00Z"} for model in models]
        return {"data": rows, "has_more": False, "first_id": models[0], "last_id": models[-1]}
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "scripted"} for model in models]}
