"""What a harness asked for, as a value: the request target, the headers and the body of one call.

Pure. A target is brought to one spelling before any rule looks at it, and one that could be read in two ways is refused, not
repaired. A body's text is kept, so that a declared change (`shaping`) of one member touches nothing else, and a key given
twice is refused, because the provider might believe the other one.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode

from amem.egress import weight
from amem.model.call import Dialect
from amem.typed import Any, NamedTuple


class Kind(StrEnum):
    """What a request is, for the rules that differ."""

    CALL = "call"
    """A model call: decided, metered, spent."""
    COUNT = "count"
    """Counts tokens of a prompt: the prompt leaves, so it is decided like a call; nothing is spent."""
    MODELS = "models"
    """Lists models: nothing of the session leaves."""
    CONTROL = "control"
    """What a login needs beside calls (Code Assist); passes on a subscription only."""
    PROBE = "probe"
    """Asks whether anybody is there; answered here."""


class Malformed(NamedTuple):
    """A request that cannot be read in one way only; `why` goes to the caller."""

    why: str


class Unknown(NamedTuple):
    """A well-formed request for what the egress does not serve."""

    path: str
    dialect: Dialect


class Target(NamedTuple):
    """A request target that a rule matched, in its one spelling."""

    kind: Kind
    dialect: Dialect | None
    """None for a list of models at a path that two dialects share."""
    path: str
    query: str
    """Without credentials; empty when there is none."""
    model: str | None
    """The model that the path names (Gemini)."""
    stream: bool | None
    """Whether the path asks for a stream (Gemini)."""


@dataclass(frozen=True, slots=True)
class _Rule:
    method: str
    path: re.Pattern[str]
    kind: Kind
    dialect: Dialect | None
    stream: bool | None = None


_MODEL_IN_PATH = r"(?:models|tunedModels)/(?P<model>[A-Za-z0-9][A-Za-z0-9._@-]{0,127})"
RULES: tuple[_Rule, ...] = tuple(
    _Rule(method, re.compile(path), kind, dialect, stream)
    for method, path, kind, dialect, stream in (
        ("POST", r"/v1/messages", Kind.CALL, Dialect.ANTHROPIC, None),
        ("POST", r"/v1/messages/count_tokens", Kind.COUNT, Dialect.ANTHROPIC, None),
        ("POST", r"/v1/responses(?:/compact)?", Kind.CALL, Dialect.RESPONSES, None),
        ("POST", r"/v1/responses/input_tokens", Kind.COUNT, Dialect.RESPONSES, None),
        ("POST", r"/v1/(?:chat/completions|completions|embeddings)", Kind.CALL, Dialect.CHAT, None),
        ("POST", rf"/v1(?:beta)?/{_MODEL_IN_PATH}:streamGenerateContent", Kind.CALL, Dialect.GEMINI, True),
        ("POST", rf"/v1(?:beta)?/{_MODEL_IN_PATH}:(?:generateContent|embedContent|batchEmbedContents)", Kind.CALL, Dialect.GEMINI, False),
        ("POST", rf"/v1(?:beta)?/{_MODEL_IN_PATH}:countTokens", Kind.COUNT, Dialect.GEMINI, False),
        ("POST", r"/v1internal:streamGenerateContent", Kind.CALL, Dialect.GEMINI, True),
        ("POST", r"/v1internal:generateContent", Kind.CALL, Dialect.GEMINI, False),
        ("POST", r"/v1internal:countTokens", Kind.COUNT, Dialect.GEMINI, False),
        ("POST", r"/v1internal:[A-Za-z]{1,40}", Kind.CONTROL, Dialect.GEMINI, None),
        ("GET", r"/v1internal/operations/[A-Za-z0-9._-]{1,128}", Kind.CONTROL, Dialect.GEMINI, None),
        ("GET", r"/v1/models(?:/[A-Za-z0-9][A-Za-z0-9._@:-]{0,127})?", Kind.MODELS, None, None),
        ("GET", r"/v1beta/models(?:/[A-Za-z0-9][A-Za-z0-9._@-]{0,127})?", Kind.MODELS, Dialect.GEMINI, None),
        ("GET", r"/muse-code/models", Kind.MODELS, Dialect.RESPONSES, None),
        ("HEAD", r"/|/api/hello", Kind.PROBE, None, None),
        ("GET", r"/|/api/hello", Kind.PROBE, None, None),
    )
)
_PLAIN = re.compile(r"/[A-Za-z0-9._~:@!$&'()*+,=/-]*")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:")
_CREDENTIAL_QUERY = frozenset(("key", "access_token", "oauth_token", "api_key", "api-key", "$httpmethod", "x-http-method-override"))
MAX_TARGET_CHARS = 4096


@lru_cache(maxsize=64)
def target(method: str, raw: str) -> Target | Unknown | Malformed:
    """Read the request target of a request line. `raw` is what stood on the line, nothing decoded."""
    if len(raw) > MAX_TARGET_CHARS:
        return Malformed("the request target is too long")
    if not raw.startswith("/") or not raw.isascii() or not raw.isprintable() or "#" in raw or "\\" in raw or " " in raw:
        return Malformed("the request target is not a plain path")
    raw_path, _, raw_query = raw.partition("?")
    # RFC 3986, section 6.2.2: an escaped unreserved character is the character; any other escape is not needed here.
    path = _ESCAPE.sub(_unescape, raw_path)
    if _PLAIN.fullmatch(path) is None:
        return Malformed("the path has characters that no path here needs")
    if "//" in path or any(segment in (".", "..") for segment in path.split("/")):
        return Malformed("the path has empty or dot segments")
    query = _query(raw_query)
    for rule in RULES:
        if rule.method == method and (match := rule.path.fullmatch(path)):
            model = match.groupdict().get("model")
            return Target(rule.kind, rule.dialect, path, query, model, rule.stream)
    return Unknown(path, guess(path))


def guess(path: str) -> Dialect:
    """The dialect whose error shape suits a path that nobody serves."""
    if path.startswith(("/v1beta", "/v1internal")):
        return Dialect.GEMINI
    return Dialect.ANTHROPIC if path.startswith(("/v1/messages", "/api/")) else Dialect.CHAT


def _unescape(match: re.Match[str]) -> str:
    byte = int(match[1], 16)
    return chr(byte) if byte in _UNRESERVED else match[0]


def _query(raw: str) -> str:
    """The query without a caller's own credentials or a method override; byte for byte when there are none."""
    if not raw:
        return ""
    pairs = parse_qsl(raw, keep_blank_values=True)
    if not any(name.lower() in _CREDENTIAL_QUERY for name, _ in pairs):
        return raw
    return urlencode([(name, value) for name, value in pairs if name.lower() not in _CREDENTIAL_QUERY], quote_via=quote)


# ---- headers ---------------------------------------------------------------------------

HOP = frozenset((
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade", "http2-settings",
))  # fmt: skip
"""RFC 9110, section 7.6.1: they speak of one connection."""
_OWN = frozenset(("host", "content-length", "expect"))
CREDENTIALS = frozenset(("authorization", "x-api-key", "x-goog-api-key", "api-key"))
"""A caller's own; they leave on a subscription only."""
_OVERRIDES = frozenset(("x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"))
_NOT_OUT = HOP | _OWN | _OVERRIDES | {"cookie"}
"""A cookie is a credential that nobody gave the harness, and none of them needs one."""

_NONE: frozenset[str] = frozenset()

Headers = list[tuple[str, str]]


def outgoing(headers: Iterable[tuple[str, str]], *, own_credentials: bool, plain: bool = False) -> Headers:
    """The headers that go on, in their order. `plain`: the body was decoded, so it goes without its encoding."""
    pairs = list(headers)
    dropped = _NOT_OUT | _nominated(pairs)
    if not own_credentials:
        dropped |= CREDENTIALS
    if plain:
        dropped |= {"content-encoding"}
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def incoming(headers: Iterable[tuple[str, str]]) -> Headers:
    """The headers of an answer that go to the harness: all but those of the connection, and the length, which is ours to say."""
    pairs = list(headers)
    dropped = HOP | {"content-length", "alt-svc"} | _nominated(pairs)
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def _nominated(pairs: Headers) -> frozenset[str]:
    named = {part.strip().lower() for name, value in pairs if name.lower() == "connection" for part in value.split(",")}
    if not named:
        return _NONE
    # A caller may not use `connection` to have a header dropped that a rule relies on.
    return frozenset(named - {"content-type", "content-encoding", "anthropic-version", "content-length", "host", ""})


def presented(headers: Mapping[str, str], query: str = "") -> str | None:
    """The credential that a caller presents, bare; None when it presents none."""
    for name in ("x-api-key", "x-goog-api-key", "api-key"):
        if value := headers.get(name):
            return value
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip()
    return next((value for name, value in parse_qsl(query) if name == "key"), None)


def several(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a request carries more than one credential: the egress would look at one of them, and the provider at another."""
    return sum(name.lower() in CREDENTIALS for name, _ in headers) > 1


# ---- the body --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Body:
    """A body that was read: its text and the values of its top-level members."""

    text: str
    members: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a top-level member."""
        return self.members.get(name, default)

    def replaced(self, name: str, value: Any) -> "Body":
        """This body with one member set to another value, every other character as it was. Adds the member when it is not there."""
        written = _written(value)
        if name not in self.members:
            at = self.text.rindex("}")
            comma = "," if self.members else ""
            text = f"{self.text[:at]}{comma}{json.dumps(name)}:{written}{self.text[at:]}"
        else:
            start, end = _span(self.text, name)
            text = self.text[:start] + written + self.text[end:]
        again = read_body(text.encode())
        assert isinstance(again, Body)
        return again


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Half of a surrogate pair can stand in JSON as an escape, and in UTF-8 not at all.
    return text if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text) else json.dumps(value, separators=(",", ":"))


class _Doubtful(ValueError):
    """A number that JSON does not have."""


def _constant(name: str) -> Any:
    raise _Doubtful(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        told: set[str] = set()
        for key, _ in pairs:
            if key in told:
                raise _Doubtful(f"the body tells {key[:64]!r} twice in one object")
            told.add(key)
    return found


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_object)
_SCANNER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\n\r]*")


def read_body(data: bytes) -> Body | Malformed:
    """Read a JSON object in which no object tells a key twice. A nesting or number beyond Python's own bounds is malformed."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Malformed("the body is not UTF-8")
    if weight.is_heavy(text):
        return Malformed(f"the body may hold more than {weight.MAX_VALUES:,} values, which is the most that a request may have")
    try:
        members = _DECODER.decode(text)
    except _Doubtful as error:
        return Malformed(str(error))
    except (ValueError, RecursionError):
        members = None
    return Body(text, members) if isinstance(members, dict) else Malformed("the body is not a JSON object")


def _span(text: str, name: str) -> tuple[int, int]:
    """Where the value of a member that is there stands in the text of an object that was read."""
    at = _past(text, text.index("{") + 1)
    while True:
        key, at = _SCANNER.raw_decode(text, at)
        start = _past(text, _past(text, at) + 1)
        _, end = _SCANNER.raw_decode(text, start)
        if key == name:
            return start, end
        at = _past(text, _past(text, end) + 1)


def _past(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that goes to a provider, read and checked."""

    kind: Kind
    dialect: Dialect
    path: str
    query: str
    model: str
    """Empty for what names none."""
    stream: bool
    body: Body | None
    """None for a request without one."""
    max_output: int | None = None
    """The output tokens it asks for at most; None when it does not say."""
    answers: int = 1
    """How many answers it asks for, each with so much output."""

    def sent(self) -> "Call":
        """The same without its body, whose values may be many times its size."""
        return Call(
            kind=self.kind, dialect=self.dialect, path=self.path, query=self.query, model=self.model, stream=self.stream, body=None,
            max_output=self.max_output, answers=self.answers,
        )  # fmt: skip


MODEL_FORM = re.compile(r"[\x21-\x7e]{1,256}")


def call(where: Target, dialect: Dialect, data: bytes) -> Call | Malformed:
    """Read a call from its target and its (decoded) body. A model call that names no model is malformed: no rule could judge it."""
    if where.kind is Kind.MODELS:
        return Call(kind=where.kind, dialect=dialect, path=where.path, query=where.query, model="", stream=False, body=None)
    body = read_body(data)
    if isinstance(body, Malformed):
        return body
    model = where.model if where.model is not None else body.get("model", "" if where.kind is Kind.CONTROL else None)
    if where.kind is not Kind.CONTROL and (not isinstance(model, str) or MODEL_FORM.fullmatch(model) is None):
        return Malformed("the body names no model")
    stream = body.get("stream", False) if where.stream is None else where.stream
    if not isinstance(stream, bool | None):
        return Malformed("stream is neither true nor false")
    most, answers = _most(dialect, body)
    return Call(
        kind=where.kind, dialect=dialect, path=where.path, query=where.query, model=model if isinstance(model, str) else "",
        stream=bool(stream), body=body, max_output=most, answers=answers,
    )  # fmt: skip


def _most(dialect: Dialect, body: Body) -> tuple[int | None, int]:
    """The highest that a call says an answer may come to in output tokens, and how many answers it asks for."""
    told: list[Any] = []
    answers: list[Any] = [1]
    match dialect:
        case Dialect.ANTHROPIC:
            told = [body.get("max_tokens")]
        case Dialect.RESPONSES:
            told = [body.get("max_output_tokens")]
        case Dialect.CHAT:
            told = [body.get("max_completion_tokens"), body.get("max_tokens")]
            answers += [body.get("n"), body.get("best_of")]
        case Dialect.GEMINI:
            inner = body.get("request")  # the envelope of Code Assist
            for source in (body, inner if isinstance(inner, dict) else {}):
                # Google reads either spelling.
                for config in (source.get("generationConfig"), source.get("generation_config")):
                    if isinstance(config, dict):
                        told += [config.get("maxOutputTokens"), config.get("max_output_tokens")]
                        answers += [config.get("candidateCount"), config.get("candidate_count")]
    return max(map(_count, told), default=0) or None, max(map(_count, answers))


def _count(told: Any) -> int:
    """A count that a body tells, 0 for what is none; 8e3 and Google's "8000" are counts too."""
    if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) < 20:
        return int(told)
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 < told < 1e18:
        return 0
    return int(told)
