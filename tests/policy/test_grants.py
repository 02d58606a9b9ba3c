from fnmatch import fnmatchcase
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from amem.model.label import Label
from amem.policy.grants import NOBODY, grants_data, resolver
from amem.settings.grants import DestinationGrant, DomainGrant, Grants, PrincipalGrant

from .asks import DATA, OWNER


def test_the_longest_pattern_wins() -> None:
    assert resolver(DATA)("dom-a", "agent:codex") == {
        "known": True,
        "owner": False,
        "read": "internal",
        "write": True,
        "server_tools": [],
        "admit_own": False,
    }
    assert resolver(DATA)("dom-a", "agent:claude") == {
        "known": True,
        "owner": False,
        "read": "restricted",
        "write": False,
        "server_tools": [],
        "admit_own": False,
    }
    assert resolver(DATA)("dom-a", "agent:gemini") == {
        "known": True,
        "owner": False,
        "read": "public",
        "write": False,
        "server_tools": [],
        "admit_own": False,
    }


def test_who_matches_nothing_has_nothing() -> None:
    assert resolver(DATA)("dom-a", "tap:fetch") == {**NOBODY, "known": True}
    assert resolver(DATA)("dom-b", "agent:codex") == {**NOBODY, "known": True, "admit_own": True}
    assert resolver(DATA)("dom-none", OWNER) == NOBODY
    assert resolver({})("dom-a", OWNER) == NOBODY


def test_owner_and_amem_itself_have_all_of_a_domain_and_one_of_them_is_the_owner() -> None:
    for principal in (OWNER, "system:amem"):
        assert resolver(DATA)("dom-b", principal) == {
            "known": True, "owner": principal == OWNER, "read": "restricted", "write": True, "server_tools": [], "admit_own": True,
        }  # fmt: skip


def test_nobody_is_the_owner_where_the_request_names_another_one() -> None:
    assert resolver(DATA)("dom-b", OWNER, OWNER)["owner"] is True
    assert resolver(DATA)("dom-b", OWNER, "human:acme:eve")["owner"] is False
    assert resolver(DATA)("dom-b", "human:acme:eve", "human:acme:eve")["owner"] is False


_patterns = st.lists(st.text("ab*?:[]", min_size=1, max_size=5), max_size=6, unique=True)


@given(_patterns, st.text("ab:", max_size=4))
def test_the_policy_sees_the_grant_that_settings_would_give(patterns: list[str], name: str) -> None:
    granted = {
        pattern: PrincipalGrant(read=list(Label)[i % 3], write=i % 2 == 0, server_tools=("mcp",) * (i % 2))
        for i, pattern in enumerate(patterns)
    }
    grants = Grants(
        owner=OWNER, domains={"dom-a": DomainGrant(principals=granted)}, destinations={"x": DestinationGrant(ceiling=Label.PUBLIC)}
    )
    found, expected = resolver(grants_data(grants))("dom-a", name), grants.grant("dom-a", name)
    if expected is None:
        assert found == {**NOBODY, "known": True} and not any(fnmatchcase(name, pattern) for pattern in patterns)
    else:
        told = {"read": expected.read, "write": expected.write, "server_tools": list(expected.server_tools)}
        assert found == {"known": True, "owner": False, "admit_own": False, **told}


def test_the_data_holds_words_and_no_addresses() -> None:
    grants = Grants(
        owner=OWNER,
        domains={"dom-a": DomainGrant(admit_own=True, principals={"agent:*": PrincipalGrant(read=Label.INTERNAL, capabilities=("code",))})},
        destinations={"x": DestinationGrant(ceiling=Label.PUBLIC, base_url="https://u.example")},
    )
    expected: dict[str, Any] = {
        "grants": {
            "owner": OWNER,
            "domains": {
                "dom-a": {
                    "default": "internal",
                    "admit_own": True,
                    "principals": {"agent:*": {"read": "internal", "write": False, "capabilities": ["code"], "server_tools": []}},
                }
            },
            "destinations": {"x": {"ceiling": "public"}},
            "gates": {"max_supersedes_per_session": 20},
        }
    }
    assert grants_data(grants) == expected
