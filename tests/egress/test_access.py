import asyncio
from pathlib import Path

import pytest

from amem.egress import contexts
from amem.egress.access import granted
from amem.egress.reserve import Reservations
from amem.egress.routes import Way
from amem.errors import UnavailableError
from amem.model.call import Dialect
from amem.model.label import Label
from amem.settings.grants import DestinationGrant, DomainGrant, Grants, Spend
from amem.settings.root import Root
from tests.egress.support import SESSION, call, session


def grants(*, keep: bool, limit: int | None) -> Grants:
    return Grants(
        owner="human:o:n",
        domains={"dom-me": DomainGrant(contexts=keep)},
        destinations={name: DestinationGrant(ceiling=Label.INTERNAL, base_url="http://127.0.0.1:1") for name in ("demo", "anthropic")},
        spend={"demo": Spend(session_tokens=limit)} if limit is not None else {},
        spend_zone="Europe/Berlin",
    )


def test_the_grants_limits_hold_and_contexts_are_kept_in_the_domains_place(tmp_path: Path) -> None:
    async def run() -> None:
        root = Root(tmp_path)
        root.state.mkdir()
        more = granted(root, grants(keep=True, limit=10), destination="demo", auth="key", domain="dom-me", session=SESSION)
        assert more["tunnels"] == {}
        async with session(tmp_path, **more) as s:
            assert (await s.post(*call(Dialect.CHAT)))[0] == 403
        (root.state / "usage.sqlite").unlink()
        more = granted(root, grants(keep=True, limit=100_000), destination="demo", auth="key", domain="dom-me", session=SESSION)
        async with session(tmp_path, **more) as s:
            assert (await s.post(*call(Dialect.CHAT)))[0] == 200
        # The end of the application wrote everything that was open.
        [line] = contexts.read(tmp_path / "record" / "dom-me" / ".contexts" / SESSION)
        assert line["status"] == 200

    asyncio.run(run())


def test_nothing_is_kept_limited_or_tunnelled_that_the_grants_do_not_name(tmp_path: Path) -> None:
    more = granted(Root(tmp_path), grants(keep=False, limit=None), destination="demo", auth="key", domain="dom-me", session=SESSION)
    assert isinstance(more.pop("reservations"), Reservations)
    assert more == {"spend": {}, "contexts": None, "slots": None, "tunnels": {}}


def test_a_login_may_tunnel_to_its_providers_hosts_under_its_ceiling(tmp_path: Path) -> None:
    found = grants(keep=False, limit=None)
    more = granted(Root(tmp_path), found, destination="anthropic", auth="subscription", domain="dom-me", session=SESSION)
    assert more["tunnels"] == {host: Way("anthropic", Label.INTERNAL) for host in ("api.anthropic.com", "platform.claude.com")}
    with pytest.raises(UnavailableError):
        granted(Root(tmp_path), found, destination="openai", auth="subscription", domain="dom-me", session=SESSION)
