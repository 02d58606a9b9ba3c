import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import flow
from amem.egress.flow import Body, Call, Kind, Malformed, Target, Unknown
from amem.model.call import Dialect


@pytest.mark.parametrize(
    ("method", "raw", "expected"),
    [
        ("POST", "/v1/messages?beta=true", Target(Kind.CALL, Dialect.ANTHROPIC, "/v1/messages", "beta=true", None, None)),
        ("POST", "/v1/messages/count_tokens", Target(Kind.COUNT, Dialect.ANTHROPIC, "/v1/messages/count_tokens", "", None, None)),
        ("POST", "/v1/responses", Target(Kind.CALL, Dialect.RESPONSES, "/v1/responses", "", None, None)),
        ("POST", "/v1/chat/completions", Target(Kind.CALL, Dialect.CHAT, "/v1/chat/completions", "", None, None)),
        ("POST", "/v1/embeddings", Target(Kind.CALL, Dialect.CHAT, "/v1/embeddings", "", None, None)),
        (
            "POST",
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            Target(Kind.CALL, Dialect.GEMINI, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", "alt=sse", "gemini-2.5-pro", True),
        ),
        ("POST", "/v1beta/models/g:countTokens", Target(Kind.COUNT, Dialect.GEMINI, "/v1beta/models/g:countTokens", "", "g", False)),
        (
            "POST",
            "/v1internal:streamGenerateContent?alt=sse",
            Target(Kind.CALL, Dialect.GEMINI, "/v1internal:streamGenerateContent", "alt=sse", None, True),
        ),
        ("POST", "/v1internal:loadCodeAssist", Target(Kind.CONTROL, Dialect.GEMINI, "/v1internal:loadCodeAssist", "", None, None)),
        ("GET", "/v1/models", Target(Kind.MODELS, None, "/v1/models", "", None, None)),
        ("GET", "/v1beta/models?pageSize=50", Target(Kind.MODELS, Dialect.GEMINI, "/v1beta/models", "pageSize=50", None, None)),
        ("HEAD", "/", Target(Kind.PROBE, None, "/", "", None, None)),
        ("HEAD", "/api/hello", Target(Kind.PROBE, None, "/api/hello", "", None, None)),
        ("DELETE", "/v1/messages", Unknown("/v1/messages", Dialect.ANTHROPIC)),
        ("POST", "/v1/files", Unknown("/v1/files", Dialect.CHAT)),
        ("GET", "/v1beta/files", Unknown("/v1beta/files", Dialect.GEMINI)),
    ],
)
def test_a_target_is_read_as_its_kind(method: str, raw: str, expected: object) -> None:
    assert flow.target(method, raw) == expected


@pytest.mark.parametrize("raw", ["/v1/%6Dessages", "/v1/m%65ssages", "/%76%31/messages"])
def test_another_spelling_of_a_path_comes_to_the_one(raw: str) -> None:
    assert flow.target("POST", raw) == flow.target("POST", "/v1/messages")


@pytest.mark.parametrize(
    "raw",
    [
        "http://evil/v1/messages",
        "//evil/v1/messages",
        "/v1/../v1/messages",
        "/v1/%2e%2e/v1/messages",
        "/v1/./messages",
        "/v1//messages",
        "/v1/messages/",
        "/v1/messages/..",
        "/v1%2Fmessages",
        "/v1/messages%00",
        "/v1/messages#x",
        "/v1\\messages",
        "/v1/messages;x=1",
        "/v1/mess ages",
        "/v1/messages%0d%0aX:y",
        "/v1/méssages",
        "*",
        "",
        "/v1/messages%3Fx",
        "/V1/messages",
        "/" + "a" * 5000,
        "/v1beta/models/../../x:generateContent",
        "/v1beta/models/%2e%2e:generateContent",
        "/v1beta/models/a%2fb:generateContent",
        "/v1internal:generateContent%3fx",
        "/v1internal:../x",
    ],
)
def test_a_doubtful_target_is_no_call(raw: str) -> None:
    assert not isinstance(flow.target("POST", raw), Target)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("alt=sse&key=SECRET", "alt=sse"),
        ("KEY=SECRET", ""),
        ("%6bey=SECRET&x=1", "x=1"),
        ("access_token=a&alt=sse&$httpMethod=DELETE", "alt=sse"),
        ("a=b%2Fc&d=%20", "a=b%2Fc&d=%20"),
        ("", ""),
    ],
)
def test_a_credential_in_a_query_never_goes_on(query: str, kept: str) -> None:
    found = flow.target("POST", f"/v1/messages?{query}")
    assert isinstance(found, Target)
    assert found.query == kept


@given(st.text(max_size=60))
def test_no_text_makes_a_target_raise_or_leave_its_path(text: str) -> None:
    found = flow.target("POST", "/" + text)
    if isinstance(found, Target):
        assert any(rule.path.fullmatch(found.path) for rule in flow.RULES)
        assert ".." not in found.path.split("/")


# ---- headers


def test_outgoing_headers_lose_the_connection_and_every_credential() -> None:
    given_headers = [
        ("Host", "127.0.0.1:9"),
        ("Content-Length", "3"),
        ("Connection", "keep-alive, X-Mine"),
        ("X-Mine", "1"),
        ("Keep-Alive", "5"),
        ("Transfer-Encoding", "chunked"),
        ("TE", "trailers"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "x"),
        ("Expect", "100-continue"),
        ("X-Api-Key", "k"),
        ("AUTHORIZATION", "Bearer k"),
        ("x-goog-api-key", "k"),
        ("Api-Key", "k"),
        ("Cookie", "k"),
        ("Proxy-Authorization", "k"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("anthropic-beta", "a"),
        ("anthropic-beta", "b"),
        ("User-Agent", "claude-cli"),
        ("Accept-Encoding", "gzip, br"),
    ]
    assert flow.outgoing(given_headers, own_credentials=False) == [
        ("anthropic-beta", "a"),
        ("anthropic-beta", "b"),
        ("User-Agent", "claude-cli"),
        ("Accept-Encoding", "gzip, br"),
    ]


def test_connection_cannot_nominate_what_a_rule_relies_on() -> None:
    headers = [("Connection", "close, Content-Type, anthropic-version"), ("Content-Type", "application/json"), ("anthropic-version", "1")]
    assert flow.outgoing(headers, own_credentials=False) == headers[1:]


def test_a_login_passes_with_its_own_credential_only() -> None:
    headers = [("Authorization", "Bearer login"), ("Proxy-Authorization", "x")]
    assert flow.outgoing(headers, own_credentials=True) == headers[:1]


@pytest.mark.parametrize(
    ("headers", "query", "expected"),
    [
        ({"x-api-key": "a"}, "", "a"),
        ({"authorization": "Bearer b"}, "", "b"),
        ({"authorization": "bearer  b"}, "", "b"),
        ({"x-goog-api-key": "c"}, "", "c"),
        ({}, "key=d", "d"),
        ({"authorization": "Basic e"}, "", None),
        ({}, "", None),
    ],
)
def test_the_presented_credential_is_found_where_each_dialect_puts_it(headers: dict[str, str], query: str, expected: str | None) -> None:
    assert flow.presented(headers, query) == expected


# ---- bodies

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), values, max_size=6), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_members_are_those_of_the_object_and_their_spans_are_theirs(
    value: dict[str, object], indent: int | str | None, ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    try:
        data = f"\n {text}\r\n".encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair, which UTF-8 cannot say
    body = flow.read_body(data)
    assert isinstance(body, Body)
    assert body.members == value
    for name in value:
        start, end = flow._span(body.text, name)
        assert json.loads(body.text[start:end]) == value[name]


@given(st.dictionaries(st.sampled_from("abcde"), values, max_size=5), st.sampled_from("abcdef"), values)
def test_replacing_a_member_changes_nothing_else(value: dict[str, object], name: str, other: object) -> None:
    body = flow.read_body(json.dumps(value, indent=2).encode())
    assert isinstance(body, Body)
    changed = body.replaced(name, other)
    assert json.loads(changed.text) == {**value, name: other}
    if name in value:
        start, end = flow._span(body.text, name)
        assert changed.text.startswith(body.text[:start])
        assert changed.text.endswith(body.text[end:])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1,}',
        b'{"a":1 "b":2}',
        b'{"a":1} x',
        b'{"a":1}{"b":2}',
        b"{'a':1}",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":{"b":Infinity}}',
        b'{"model":"cheap","model":"dear"}',
        b'{"model":"cheap","mod\\u0065l":"dear"}',
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b'{"a":' * 100_000,
        b'{"a":"\xff"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":"\x01"}',
        b'{"a":' + b"9" * 10_000 + b"}",
        b"{,}",
        b'{"a":01}',
    ],
)
def test_a_body_that_could_be_read_otherwise_is_malformed(data: bytes) -> None:
    assert isinstance(flow.read_body(data), Malformed)


@given(st.binary(max_size=200))
def test_no_bytes_make_a_body_raise(data: bytes) -> None:
    flow.read_body(data)


def call_of(method: str, raw: str, dialect: Dialect, body: object) -> Call | Malformed:
    where = flow.target(method, raw)
    assert isinstance(where, Target)
    return flow.call(where, dialect, json.dumps(body).encode())


def test_a_call_knows_its_model_stream_and_output_cap() -> None:
    cases = [
        (call_of("POST", "/v1/messages", Dialect.ANTHROPIC, {"model": "c", "max_tokens": 5, "stream": True}), "c", True, 5),
        (call_of("POST", "/v1/responses", Dialect.RESPONSES, {"model": "o", "max_output_tokens": 6}), "o", False, 6),
        (
            call_of("POST", "/v1/chat/completions", Dialect.CHAT, {"model": "a/b:free", "max_tokens": 7, "stream": None}),
            "a/b:free",
            False,
            7,
        ),
        (call_of("POST", "/v1beta/models/g:generateContent", Dialect.GEMINI, {"generationConfig": {"maxOutputTokens": 8}}), "g", False, 8),
        (
            call_of(
                "POST",
                "/v1internal:streamGenerateContent",
                Dialect.GEMINI,
                {"model": "h", "request": {"generationConfig": {"maxOutputTokens": 9}}},
            ),
            "h",
            True,
            9,
        ),
    ]
    for call, model, stream, most in cases:
        assert isinstance(call, Call)
        assert (call.model, call.stream, call.max_output) == (model, stream, most)


@pytest.mark.parametrize(
    "data",
    [
        b'{"model":"m","model":"n"}',
        b'{"model":"m","tools":[{"type":"web_search_20250305","name":"s","type":"custom"}]}',
        b'{"model":"m","messages":[{"content":[{"source":{"type":"base64","\\u0074ype":"url"}}]}]}',
    ],
)
def test_a_key_that_is_told_twice_at_any_depth_is_refused(data: bytes) -> None:
    """A provider that believes the first and an egress that believes the last would judge two different calls."""
    where = flow.target("POST", "/v1/messages")
    assert isinstance(where, Target)
    told = flow.call(where, Dialect.ANTHROPIC, data)
    assert isinstance(told, Malformed)
    assert "twice" in told.why


@pytest.mark.parametrize(
    "body", [{}, {"model": None}, {"model": ""}, {"model": 3}, {"model": "a b"}, {"model": "x" * 300}, {"model": "m", "stream": "yes"}]
)
def test_a_model_call_without_a_clear_model_is_malformed(body: object) -> None:
    assert isinstance(call_of("POST", "/v1/messages", Dialect.ANTHROPIC, body), Malformed)
