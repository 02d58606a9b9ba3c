import pytest

from amem.egress.way import Way, of_session
from amem.errors import UsageError
from amem.model.call import Auth

GATEWAY = Way("llmao", Auth.GATEWAY)


@pytest.mark.parametrize(
    ("asked", "provider", "auth", "destination", "expected"),
    [
        (None, None, Auth.KEY, "openai", Way("openai", Auth.KEY)),
        (None, None, Auth.GATEWAY, "llmao", GATEWAY),
        (None, None, Auth.SUBSCRIPTION, "anthropic", None),
        ("none", None, Auth.KEY, "openai", None),
        ("gateway", None, Auth.SUBSCRIPTION, "anthropic", GATEWAY),
        ("gateway", None, Auth.KEY, "openai", GATEWAY),
        ("key", "xai", Auth.SUBSCRIPTION, "anthropic", Way("xai", Auth.KEY)),
        (None, "xai", Auth.SUBSCRIPTION, "anthropic", Way("xai", Auth.KEY)),
        ("key", None, Auth.KEY, "openai", Way("openai", Auth.KEY)),
        (None, "llmao", Auth.KEY, "openai", GATEWAY),
    ],
)
def test_own_calls_follow_the_harness_unless_they_are_given_a_way(
    asked: str | None, provider: str | None, auth: Auth, destination: str, expected: Way | None
) -> None:
    assert of_session(asked, provider, auth=auth, destination=destination) == expected


@pytest.mark.parametrize(
    ("asked", "provider", "why"),
    [
        ("subscription", None, "a login belongs to its harness alone"),
        ("key", None, "--server-provider takes"),
        ("gateway", "openai", "takes no provider"),
        ("kay", "openai", "--server-auth kay: expected key or gateway"),
        ("key", "opnai", "--server-provider opnai: expected one of"),
        ("none", "openai", "takes no --server-provider"),
    ],
)
def test_what_cannot_be_a_way_is_refused_in_the_words_of_the_launch(asked: str, provider: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        of_session(asked, provider, auth=Auth.SUBSCRIPTION, destination="anthropic")
