import pytest

from amem.egress import flow, routes
from amem.egress.destinations import BEARER, DESTINATIONS, X_API_KEY, X_GOOG
from amem.egress.flow import Target
from amem.egress.routes import Auth, Route
from amem.errors import ConfigError, UnavailableError
from amem.model.call import Billing, Dialect
from amem.model.label import Label
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import DestinationGrant, Grants


def grants(**destinations: DestinationGrant) -> Grants:
    return Grants(owner="human:o:n", destinations={name.replace("_", "-"): grant for name, grant in destinations.items()})


def internal(base_url: str | None = None, **more: object) -> DestinationGrant:
    return DestinationGrant(ceiling=Label.INTERNAL, base_url=base_url, **more)  # type: ignore[arg-type]


NOTHING = Credentials({}, {})


def url(table: object, dialect: Dialect, path: str) -> str:
    assert isinstance(table, dict)
    return str(table[dialect].url(path, ""))


def test_a_destination_gives_a_route_for_each_dialect_it_speaks() -> None:
    found = routes.table("anthropic", Auth.KEY, grants(anthropic=internal()), NOTHING)
    assert found[Dialect.ANTHROPIC] == Route(
        destination="anthropic", base_url="https://api.anthropic.com", ceiling=Label.INTERNAL, billing=Billing.METERED, auth=Auth.KEY,
        header=X_API_KEY,
    )  # fmt: skip
    assert set(found) == {Dialect.ANTHROPIC, Dialect.CHAT}


@pytest.mark.parametrize("name", DESTINATIONS)
def test_every_destination_without_a_grant_is_refused(name: str) -> None:
    with pytest.raises(UnavailableError, match="nothing may be sent there"):
        routes.table(name, Auth.KEY, grants(), NOTHING)


def test_an_unknown_destination_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="it knows anthropic, openai"):
        routes.table("elsewhere", Auth.KEY, grants(elsewhere=internal()), NOTHING)


@pytest.mark.parametrize(
    ("destination", "base", "dialect", "path", "expected"),
    [
        ("openai", None, Dialect.RESPONSES, "/v1/responses", "https://api.openai.com/v1/responses"),
        ("openai", "https://proxy.example/v1", Dialect.RESPONSES, "/v1/responses", "https://proxy.example/v1/responses"),
        ("openai", "https://proxy.example/openai/", Dialect.CHAT, "/v1/models", "https://proxy.example/openai/v1/models"),
        (
            "dashscope",
            None,
            Dialect.CHAT,
            "/v1/chat/completions",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions",
        ),
        ("google", None, Dialect.CHAT, "/v1/chat/completions", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
        ("google", "http://127.0.0.1:9", Dialect.CHAT, "/v1/chat/completions", "http://127.0.0.1:9/v1/chat/completions"),
        ("google", None, Dialect.GEMINI, "/v1beta/models/g:x", "https://generativelanguage.googleapis.com/v1beta/models/g:x"),
        ("github-copilot", None, Dialect.CHAT, "/v1/chat/completions", "https://api.githubcopilot.com/chat/completions"),
        ("github-copilot", None, Dialect.ANTHROPIC, "/v1/messages", "https://api.githubcopilot.com/v1/messages"),
    ],
)
def test_a_base_and_a_path_join_without_saying_v1_twice(
    destination: str, base: str | None, dialect: Dialect, path: str, expected: str
) -> None:
    found = routes.table(destination, Auth.KEY, grants(**{destination.replace("-", "_"): internal(base)}), NOTHING)
    assert url(dict(found), dialect, path) == expected


@pytest.mark.parametrize(
    ("base", "inward"),
    [("http://127.0.0.1:9101", True), ("http://localhost:9", True), ("http://127.0.0.1/v1", True), ("http://[::1]:9", True),
     ("https://10.0.0.5", True), ("https://gateway.internal", True), ("https://api.example.com", False)],
)  # fmt: skip
def test_only_a_base_that_grants_name_inward_may_be_inward(base: str, inward: bool) -> None:
    found = routes.table("demo", Auth.KEY, grants(demo=internal(base)), NOTHING)
    assert {route.inward for route in found.values()} == {inward}


@pytest.mark.parametrize(
    "base",
    ["http://api.example.com", "http://10.0.0.5:4000", "http://192.168.1.1", "ftp://127.0.0.1", "https://u:p@h",
     "http://127.0.0.1:9@api.example.com", "http://127.0.0.1\\@api.example.com/", "http://localhost.example.com", "http://127.0.0.1:9?x"],
)  # fmt: skip
def test_keys_and_prompts_never_go_in_clear_text_to_another_machine(base: str) -> None:
    with pytest.raises(ConfigError):
        routes.table("demo", Auth.KEY, grants(demo=internal(base)), NOTHING)


def test_demo_is_nowhere_until_grants_say_where() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        routes.table("demo", Auth.KEY, grants(demo=internal()), NOTHING)


def test_the_gateways_base_is_grants_before_environment_before_default() -> None:
    environment = Credentials({"LLMAO_URL": "https://llm.example"}, {})

    def base(grant: DestinationGrant, credentials: Credentials) -> str:
        return routes.table("llmao", Auth.GATEWAY, grants(llmao=grant), credentials)[Dialect.CHAT].base_url

    assert base(internal("https://mine.example"), environment) == "https://mine.example"
    assert base(internal(), environment) == "https://llm.example"
    assert base(internal(), NOTHING) == "http://127.0.0.1:4000"


def test_gateway_auth_is_for_gateways() -> None:
    with pytest.raises(ConfigError, match="no gateway"):
        routes.table("openai", Auth.GATEWAY, grants(openai=internal()), NOTHING)


def test_an_obligation_that_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"require\.inference_geo"):
        routes.table("openai", Auth.KEY, grants(openai=internal(require={"inference_geo": "us"})), NOTHING)


def test_a_login_is_billed_to_the_plan() -> None:
    found = routes.table("anthropic", Auth.SUBSCRIPTION, grants(anthropic=internal()), NOTHING)
    assert found[Dialect.ANTHROPIC].billing is Billing.PLAN


def test_the_key_is_the_first_name_that_is_set() -> None:
    credentials = Credentials({"GOOGLE_API_KEY": "the-second"}, {"ANTHROPIC_API_KEY": "of-a-file"})
    found = routes.credential("google", Auth.KEY, credentials)
    assert found is not None
    assert found.reveal() == "the-second"
    assert routes.credential("anthropic", Auth.SUBSCRIPTION, credentials) is None
    assert routes.credential("demo", Auth.KEY, credentials) is None
    with pytest.raises(UnavailableError, match="OPENAI_API_KEY"):
        routes.credential("openai", Auth.KEY, credentials)


def test_a_virtual_key_counts_first_on_a_gateway() -> None:
    found = routes.credential("llmao", Auth.GATEWAY, Credentials({"LLMAO_API_KEY": "of-the-environment"}, {}), Secret("sk-virtual"))
    assert found is not None
    assert found.reveal() == "sk-virtual"


@pytest.mark.parametrize("text", ["a", "sk-1234", "sk-12345678\n", "sk 12345678", "sk-ключ-12345678", "sk-\x7f12345678"])
def test_a_key_that_would_be_masked_where_it_is_none_or_fits_no_header_is_refused_at_set_up(text: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY: is no key"):
        routes.credential("openai", Auth.KEY, Credentials({"OPENAI_API_KEY": text}, {}))
    with pytest.raises(ConfigError, match="virtual key"):
        routes.credential("llmao", Auth.GATEWAY, NOTHING, Secret(text))
    routes.credential("openai", Auth.KEY, Credentials({"OPENAI_API_KEY": "x" * routes.KEY_LENGTH}, {}))


def test_a_list_of_models_goes_where_its_client_belongs() -> None:
    table = routes.table("demo", Auth.KEY, grants(demo=internal("http://127.0.0.1:1")), NOTHING)
    where = flow.target("GET", "/v1/models")
    assert isinstance(where, Target)
    anthropic = routes.resolve(where, table, {"anthropic-version": "2023-06-01"})
    openai = routes.resolve(where, table, {})
    assert anthropic is not None
    assert openai is not None
    assert (anthropic[0], openai[0]) == (Dialect.ANTHROPIC, Dialect.CHAT)


def test_a_dialect_that_the_destination_does_not_speak_has_no_route() -> None:
    table = routes.table("dashscope", Auth.KEY, grants(dashscope=internal()), NOTHING)
    where = flow.target("POST", "/v1/messages")
    assert isinstance(where, Target)
    assert routes.resolve(where, table, {}) is None


def test_code_assist_takes_a_login_and_has_its_own_base() -> None:
    where = flow.target("POST", "/v1internal:generateContent")
    assert isinstance(where, Target)
    key = routes.table("google", Auth.KEY, grants(google=internal()), NOTHING)
    login = routes.table("google", Auth.SUBSCRIPTION, grants(google=internal()), NOTHING)
    assert routes.resolve(where, key, {}) is None
    found = routes.resolve(where, login, {})
    assert found is not None
    assert found[1].base_url == "https://cloudcode-pa.googleapis.com"


@pytest.mark.parametrize("name", DESTINATIONS)
def test_every_row_is_whole(name: str) -> None:
    row = DESTINATIONS[name]
    assert row.wires
    assert {wire.header for wire in row.wires.values()} <= {BEARER, X_API_KEY, X_GOOG}
    assert all(host == host.lower() and "*" not in host for host in row.tunnel_hosts)
