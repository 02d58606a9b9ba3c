"""`grants.toml`: what it means, and what is wrong with one, by name."""

from pathlib import Path

import pytest

from amem.errors import ConfigError
from amem.model.label import Label
from amem.settings import grants

BASE = """
owner = "human:asf:you"
[grants.dom-me]
default = "internal"
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
[grants.dom-me.principals."agent:claude"]
read = "restricted"
[destinations.anthropic]
ceiling = "internal"
"""


def load(tmp_path: Path, text: str) -> grants.Grants:
    path = tmp_path / "grants.toml"
    path.write_text(text)
    return grants.load(path)


def test_the_longest_pattern_wins_and_none_is_no_access(tmp_path: Path) -> None:
    found = load(tmp_path, BASE)
    assert found.grant("dom-me", "agent:claude") == grants.PrincipalGrant(read=Label.RESTRICTED)
    assert found.grant("dom-me", "agent:codex") == grants.PrincipalGrant(read=Label.INTERNAL, write=True)
    assert found.grant("dom-me", "tap:fetch") is None
    assert found.grant("dom-other", "agent:claude") is None


def test_the_owner_needs_no_grant(tmp_path: Path) -> None:
    owner = load(tmp_path, BASE).grant("dom-me", "human:asf:you")
    assert owner is not None and owner.write and owner.read is Label.RESTRICTED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('owner = "agent:claude"\n[grants.dom-me]', "owner: expected human:<org>:<name>"),
        ("[grants.dom-me]", "owner: is required"),
        ('owner = "human:asf:you"', "grants: names no domain"),
        (BASE + "[gates]\nmax_superseds_per_session = 3", "unknown key; did you mean max_supersedes_per_session?"),
        (BASE + "[gates]\nmax_supersedes_per_session = true", "gates.max_supersedes_per_session: expected a whole number, found True"),
        (BASE + '[destinations.openai]\nceiling = "secret"', "openai.ceiling: expected public, internal or restricted"),
        (BASE + "[destinations.openai]", "destinations.openai.ceiling: is required"),
        (BASE + '[destinations.openai]\nceiling="public"\nbase_url="ftp://x"', "destinations.openai.base_url: expected http(s)://host[/path]"),
        (BASE + '[destinations.openai]\nceiling="public"\nbase_url="https://u:p@x"', "destinations.openai.base_url: expected http(s)"),
        (BASE + '[grants.me]\ndefault="public"', "grants.me: expected dom-"),
        (BASE + '[limits]\nmemory = "8 gigs"', "limits.memory: expected a size such as 512M or 2G"),
        (BASE + '[grants.dom-me.principals."agent:x"]\ncapabilities=["human"]', "capabilities: 'human' is what a person has"),
        ('default_domain = "dom-x"\n' + BASE, "default_domain: dom-x has no [grants.dom-x]"),
        (BASE + '[taps.fetch]\nceiling = "public"', "taps: there are no taps yet, so nothing would heed it: leave it out"),
        ("owner = ", "Invalid value"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert says in caught.value.message
    assert caught.value.message.startswith(str(tmp_path / "grants.toml"))


def test_limits_read_sizes_and_durations(tmp_path: Path) -> None:
    found = load(tmp_path, BASE + '[limits]\nprocesses=9\nmemory="512M"\ntmp="1G"\nwall_clock="2h"').limits
    assert (found.processes, found.memory_bytes, found.tmp_bytes, found.wall_clock_s) == (9, 512 << 20, 1 << 30, 7200)


def test_grants_do_not_show_the_address_of_the_ledger(tmp_path: Path) -> None:
    found = load(tmp_path, BASE + '[ledger]\nurl="postgresql://amem:planted-secret@127.0.0.1/amem"')
    assert found.ledger_url is not None and "planted-secret" not in f"{found!r} {found}"


def test_a_size_that_no_machine_counts_is_refused() -> None:
    assert grants.size_bytes(f"{(1 << 63) - 1}") == (1 << 63) - 1
    with pytest.raises(ValueError, match="more than a machine counts"):
        grants.size_bytes("99999999999999999999G")


@pytest.mark.parametrize(("size", "text"), [(0, "0"), (1, "1"), (1536, "1536"), (1 << 20, "1M"), (200 << 20, "200M"), (1 << 50, "1024T")])
def test_a_size_is_written_as_it_is_read(size: int, text: str) -> None:
    assert grants.size_text(size) == text
    assert grants.size_bytes(text) == size
