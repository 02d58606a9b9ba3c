"""The public hosts of the providers' logins, on loopback: TLS under an authority of the test's own, made-up accounts, scripted models.

What a harness asks its provider about an account is answered from `ACCOUNTS`; every other request goes on to the scripted provider, so
that it is counted there. `asked` holds every host and path that came.
"""

import asyncio
import base64
import datetime
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import zstandard
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from amem.harnesses import registry

COPILOT = "api.individual.githubcopilot.com"
MODELS = {
    "data": [
        {
            "id": "fake-1", "name": "Fake 1", "object": "model", "vendor": "lab", "version": "fake-1", "preview": False,
            "model_picker_enabled": True, "policy": {"state": "enabled"}, "supported_endpoints": ["/chat/completions"],
            "capabilities": {
                "type": "chat", "family": "fake", "object": "model_capabilities", "tokenizer": "o200k_base",
                "limits": {"max_context_window_tokens": 128000, "max_prompt_tokens": 120000, "max_output_tokens": 8000},
                "supports": {"streaming": True, "tool_calls": True, "parallel_tool_calls": True},
            },
        }
    ]
}  # fmt: skip
ACCOUNTS: Mapping[tuple[str, str], Any] = {
    ("oauth2.googleapis.com", "/tokeninfo"): {"email": "lab@example.org", "expires_in": 3000, "scope": "openid", "aud": "x"},
    ("www.googleapis.com", "/oauth2/v2/userinfo"): {"id": "1", "email": "lab@example.org"},
    ("api.github.com", "/copilot_internal/user"): {
        "login": "labuser", "copilot_plan": "individual", "access_type_sku": "plus_yearly_subscriber_quota", "chat_enabled": True,
        "cli_enabled": True, "is_mcp_enabled": True, "endpoints": {"api": f"https://{COPILOT}", "telemetry": "https://telemetry.individual.githubcopilot.com"},
    },
    (COPILOT, "/models"): MODELS,
    ("chatgpt.com", "/backend-api/wham/accounts/check"): {
        "accounts": [
            {
                "id": "acct-lab", "account_id": "acct-lab", "name": "lab", "plan_type": "plus", "structure": "personal",
                "is_deactivated": False,
                "can_access_with_session": True, "is_fedramp_compliant_workspace": False, "workspace_backend_origin": "https://chatgpt.com",
                "account_routing_override": "NO_CONSTRAINT",
            }
        ],
        "default_account_id": "acct-lab", "account_ordering": ["acct-lab"],
    },
    ("api.githubcopilot.com", "/models"): MODELS,
}  # fmt: skip
MOVED = {COPILOT: "/", "api.githubcopilot.com": "/", "chatgpt.com": "/backend-api/codex/"}
"""Where a host has what the scripted provider has at `/v1/`."""


def token(**claims: Any) -> str:
    """An unsigned web token: no harness checks its own login's signature."""
    parts = ({"alg": "none", "typ": "JWT"}, {"iss": "https://lab.example", "sub": "lab", "exp": 1990000000, **claims})
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), "c2lnbmF0dXJl"])


class Lab:
    """The hosts while they are up."""

    def __init__(self, port: int, authority: Path) -> None:
        self.port, self.authority = port, authority
        self.asked: list[tuple[str, str, str]] = []
        """Host, method and path of each request."""
        self.accounts = dict(ACCOUNTS)
        """What is answered to a host and path; of a test's own, if it says so."""


@contextmanager
def lab(folder: Path, provider: str) -> Iterator[Lab]:
    """Serve every tunnel host of every harness; model calls go on to `provider`."""
    hosts = sorted({host.removesuffix(":443") for name in registry.names() for host in registry.load(name).tunnel_hosts})
    context = _issue(folder, hosts)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="lab", daemon=True)
    thread.start()
    found = Lab(0, folder / "authority.pem")
    try:
        runner = asyncio.run_coroutine_threadsafe(_serve(found, context, provider), loop).result()
        try:
            yield found
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve(lab: Lab, context: ssl.SSLContext, provider: str) -> web.AppRunner:
    client = aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None))
    came: set[asyncio.Transport] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        host = (request.host or "").partition(":")[0]
        lab.asked.append((host, request.method, request.path))
        if request.transport is not None:
            came.add(request.transport)
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "content-length")}
        if headers.get("Content-Encoding", headers.get("content-encoding")) == "zstd":  # as Codex sends to ChatGPT
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
            headers = {name: value for name, value in headers.items() if name.lower() != "content-encoding"}
        known = lab.accounts.get((host, request.path))
        if known is not None:
            return web.json_response(known)
        moved, path = MOVED.get(host), request.path_qs
        if moved is not None and path.startswith(moved) and not path.startswith("/v1/"):
            path = "/v1/" + path.removeprefix(moved)
        if path == "/v1/chat/completions":  # GitHub says unasked what a call used
            body = json.dumps(json.loads(body) | {"stream_options": {"include_usage": True}}).encode()
        async with client.request(request.method, provider + path, data=body, headers=headers) as far:
            kept = {name: value for name, value in far.headers.items() if name.lower() in ("content-type", "content-encoding")}
            near = web.StreamResponse(status=far.status, headers=kept)
            await near.prepare(request)
            async for piece in far.content.iter_any():
                await near.write(piece)
            await near.write_eof()
            return near

    async def close(_: web.Application) -> None:
        await client.close()
        for transport in came:  # else those of a program that was killed wait for its half of the goodbye
            transport.abort()
        await asyncio.sleep(0)

    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{tail:.*}", answer)
    app.on_cleanup.append(close)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, auto_decompress=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    lab.port = runner.addresses[0][1]
    return runner


def _issue(folder: Path, hosts: list[str]) -> ssl.SSLContext:
    """An authority and one certificate for all hosts."""
    now = datetime.datetime.now(datetime.UTC)
    root_key, leaf_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "amem lab")])

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(name).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        return made.not_valid_after(now + datetime.timedelta(days=30))

    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    root = builder(name, root_key).add_extension(x509.BasicConstraints(ca=True, path_length=0), True).add_extension(usage, True)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    leaf = builder(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, hosts[0])]), leaf_key).add_extension(names, False)
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False)
    signed = [made.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) for made in (root, leaf)]
    private = leaf_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    (folder / "authority.pem").write_bytes(signed[0])
    (folder / "leaf.pem").write_bytes(signed[1] + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem")
    context.set_alpn_protocols(["http/1.1"])
    return context
