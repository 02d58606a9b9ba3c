"""Keys and spend of the local gateway, in PostgreSQL, where LiteLLM runs as a process and has no database of its own.

LiteLLM imports this module beside its configuration. A key is looked up by its digest, and is in no table itself. Every call that was
answered leaves a row; one that cannot be written fails the gateway's log and not the call, as LiteLLM's own log does.
"""

import hashlib
import os

import psycopg
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import ProxyException, UserAPIKeyAuth

INSERT = """
insert into spend(id, model_group, model, api_key, prompt_tokens, completion_tokens, total_tokens, cache_read, cache_write, usd)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict do nothing
"""


def _connected():
    return psycopg.AsyncConnection.connect(os.environ["GATEWAY_DATABASE_URL"], autocommit=True)


async def known(request, api_key):
    """Let in who presents a key that `make local-key` minted; anybody else is refused."""
    presented = (api_key or request.headers.get("x-api-key") or request.headers.get("x-goog-api-key") or "").removeprefix("Bearer ")
    digest = hashlib.sha256(presented.encode()).hexdigest()
    try:
        async with await _connected() as connection:
            found = await (await connection.execute("select alias from keys where digest = %s", (digest,))).fetchone()
    except psycopg.Error:
        raise ProxyException(
            "the gateway's PostgreSQL does not answer: make local-up", type="internal_error", param=None, code=503
        ) from None
    if found is None:
        raise ProxyException("not a key of this gateway; make local-key mints one", type="auth_error", param="key", code=401)
    return UserAPIKeyAuth(api_key=digest, key_alias=found[0], user_role="internal_user")


class Spend(CustomLogger):
    """One row a call, from LiteLLM's own accounting of it."""

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        """Keep what a call used and cost."""
        told = kwargs["standard_logging_object"]
        usage = (told.get("metadata") or {}).get("usage_object") or {}
        details = usage.get("prompt_tokens_details") or {}
        row = (
            told["id"], told["model_group"], told["model"], told["metadata"].get("user_api_key_hash"),
            told["prompt_tokens"], told["completion_tokens"], told["total_tokens"],
            usage.get("cache_read_input_tokens") or details.get("cached_tokens") or 0,
            usage.get("cache_creation_input_tokens") or details.get("cache_creation_tokens") or 0,
            told["response_cost"],
        )  # fmt: skip
        async with await _connected() as connection:
            await connection.execute(INSERT, row)


spend = Spend()
