"""The destinations a session's calls can go to: a table of values.

Pure. A destination is usable only when grants.toml declares it with a ceiling; this table says how it speaks. Hosts are exact:
no pattern, so no sibling name is let in by one.
"""

from collections.abc import Mapping
from types import MappingProxyType

from amem.model.call import Dialect
from amem.typed import NamedTuple


class Header(NamedTuple):
    """How a credential stands in a request."""

    name: str
    prefix: str = ""

    def value(self, credential: str) -> str:
        """The header's value."""
        return self.prefix + credential


BEARER = Header("authorization", "Bearer ")
X_API_KEY = Header("x-api-key")
X_GOOG = Header("x-goog-api-key")


class Wire(NamedTuple):
    """How a destination speaks one dialect."""

    header: Header
    base_url: str | None = None
    """Where this dialect is, when not at the destination's base."""
    cut: str = ""
    """The start of the path that this destination does without."""
    shaping: tuple[str, ...] = ()
    """The declared changes to a request (`shaping.CHANGES`), in order."""


class Identity(NamedTuple):
    """Where a destination says whose a login's token is, asked with that token alone (B14)."""

    method: str
    url: str
    """On a private base its path is asked there."""
    tells: Mapping[str, tuple[str, ...]]
    """What it says of the account: its name, and where it stands in the answer."""


class Destination(NamedTuple):
    """One row."""

    name: str
    base_url: str | None
    """None: only grants.toml says where it is."""
    wires: Mapping[Dialect, Wire]
    key_env: str
    """The name of its key, in the environment or credentials.env."""
    key_env_also: tuple[str, ...] = ()
    """Other names that the key goes by."""
    base_url_env: str | None = None
    """The name of a setting that moves the base, below grants.toml."""
    needs_key: bool = True
    gateway: bool = False
    """Calls here are on a gateway: one destination, whatever it fronts."""
    tunnel_hosts: tuple[str, ...] = ()
    """Hosts that a login of this provider may reach through a tunnel, port 443."""
    identity: Identity | None = None
    """None: nobody can be asked, so a token that was refreshed inside stays a stranger's."""
    obligations: Mapping[str, str] = MappingProxyType({})
    """What `require` may ask (B18): its name -> the member of the request and of the answer's usage that tell it."""


_ALL = (Dialect.RESPONSES, Dialect.CHAT)
_SHORT = ("cap_output",)

DESTINATIONS: Mapping[str, Destination] = {
    row.name: row
    for row in (
        Destination(
            name="anthropic",
            base_url="https://api.anthropic.com",
            wires={Dialect.ANTHROPIC: Wire(X_API_KEY), Dialect.CHAT: Wire(BEARER)},
            key_env="ANTHROPIC_API_KEY",
            # Claude Code 2.1 asks for its profile, and renews its login, outside its base URL (2026-11).
            tunnel_hosts=("api.anthropic.com", "platform.claude.com"),
            # Claude Code 2.1.332 asks this for the account that it writes into ~/.claude.json (read in its program, 2026-11).
            # An organization's owners can see what is done in it, so that of the login counts as well.
            identity=Identity(
                "GET",
                "https://api.anthropic.com/api/oauth/profile",
                {"account": ("account", "uuid"), "organization": ("organization", "uuid")},
            ),
            obligations={"inference_geo": "inference_geo"},
        ),
        Destination(
            name="openai",
            base_url="https://api.openai.com",
            wires={dialect: Wire(BEARER) for dialect in _ALL},
            key_env="OPENAI_API_KEY",
            tunnel_hosts=("chatgpt.com", "auth.openai.com"),
        ),
        Destination(
            name="google",
            base_url="https://generativelanguage.googleapis.com",
            wires={
                Dialect.GEMINI: Wire(X_GOOG),
                Dialect.CHAT: Wire(BEARER, base_url="https://generativelanguage.googleapis.com/v1beta/openai", cut="/v1"),
            },
            key_env="GEMINI_API_KEY",
            key_env_also=("GOOGLE_API_KEY",),
            # Gemini CLI asks `tokeninfo` at every start; agy asks for the account and its picture before all else (2026-11).
            tunnel_hosts=(
                "oauth2.googleapis.com", "accounts.google.com", "cloudcode-pa.googleapis.com", "daily-cloudcode-pa.googleapis.com",
                "www.googleapis.com", "lh3.googleusercontent.com",
            ),
            # As Gemini CLI 0.61 asks it at every start (google-auth-library's `getTokenInfo`, 2026-11). `aud` is the program that the token
            # was given to: one that another program got from the same person is not this login's.
            identity=Identity("POST", "https://oauth2.googleapis.com/tokeninfo", {"sub": ("sub",), "aud": ("aud",)}),
        ),
        Destination(
            name="xai",
            base_url="https://api.x.ai",
            wires={dialect: Wire(BEARER) for dialect in (*_ALL, Dialect.ANTHROPIC)},
            key_env="XAI_API_KEY",
            tunnel_hosts=("cli-chat-proxy.grok.com", "code.grok.com", "auth.x.ai"),
        ),
        Destination(
            # Where a Grok login's own calls go, metered; the login of `xai` is tunnelled there.
            name="grok",
            base_url="https://cli-chat-proxy.grok.com",
            wires={dialect: Wire(BEARER) for dialect in _ALL},
            key_env="XAI_API_KEY",
            tunnel_hosts=("auth.x.ai",),
        ),
        Destination(
            name="dashscope",
            base_url="https://dashscope-intl.aliyuncs.com/compatible-mode",
            wires={Dialect.CHAT: Wire(BEARER)},
            key_env="DASHSCOPE_API_KEY",
        ),
        Destination(
            name="meta",
            base_url="https://api.meta.ai",
            wires={dialect: Wire(BEARER) for dialect in _ALL},
            key_env="META_API_KEY",
        ),
        Destination(
            name="github-copilot",
            base_url="https://api.githubcopilot.com",
            wires={Dialect.CHAT: Wire(BEARER, cut="/v1"), Dialect.RESPONSES: Wire(BEARER, cut="/v1"), Dialect.ANTHROPIC: Wire(BEARER)},
            key_env="COPILOT_GITHUB_TOKEN",
            key_env_also=("GH_TOKEN", "GITHUB_TOKEN"),
            tunnel_hosts=(
                "api.github.com", "api.githubcopilot.com", "api.individual.githubcopilot.com", "api.business.githubcopilot.com",
                "api.enterprise.githubcopilot.com",
            ),
        ),
        Destination(
            name="llmao",
            base_url="http://127.0.0.1:4000",
            base_url_env="LLMAO_URL",
            gateway=True,
            wires={
                Dialect.ANTHROPIC: Wire(BEARER, shaping=("fold_system", "gateway_effort", *_SHORT)),
                Dialect.RESPONSES: Wire(BEARER, shaping=("muse_models", "gateway_effort", *_SHORT)),
                Dialect.CHAT: Wire(BEARER, shaping=_SHORT),
                Dialect.GEMINI: Wire(BEARER, shaping=("fold_function_response", *_SHORT)),
            },
            key_env="LLMAO_KEY",
        ),
        Destination(
            name="demo",
            base_url=None,
            needs_key=False,
            wires={
                Dialect.ANTHROPIC: Wire(X_API_KEY), Dialect.RESPONSES: Wire(BEARER), Dialect.CHAT: Wire(BEARER),
                Dialect.GEMINI: Wire(X_GOOG),
            },
            key_env="DEMO_API_KEY",
        ),
    )
}  # fmt: skip

CODE_ASSIST_URL = "https://cloudcode-pa.googleapis.com"
"""Where a Google login's calls go; they are told from Gemini API calls by their path (`/v1internal:…`)."""
