"""Credentials in what is kept: not readable there, given back to whoever has the root's key, and to nobody else."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.errors import IntegrityError
from amem.record.sealed import Sealer
from tests.record.made import QUICK

GITHUB = b"ghp_" + b"a1B2" * 9
ANTHROPIC = b"sk-ant-api03-" + b"Zz9_" * 20
PEM = b"-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAA\\n-----END OPENSSH PRIVATE KEY-----"
TEXT = b'{"a": "' + GITHUB + b'", "b": "export KEY=' + ANTHROPIC + b'", "c": "' + PEM + b'", "d": "plain"}'


def test_what_is_kept_holds_none_of_them_and_is_json_still(tmp_path: Path) -> None:
    sealer = Sealer(tmp_path)
    kept = sealer.masked(TEXT)
    for secret in (GITHUB, ANTHROPIC, b"b3BlbnNz"):
        assert secret not in kept
    assert json.loads(kept)["d"] == "plain"
    assert sealer.unmasked(kept) == TEXT
    assert (tmp_path / "seal.key").stat().st_mode & 0o777 == 0o600


def test_the_same_is_sealed_alike_and_once(tmp_path: Path) -> None:
    first, second = Sealer(tmp_path), Sealer(tmp_path)
    assert first.masked(TEXT) == second.masked(TEXT)
    assert first.masked(first.masked(TEXT)) == first.masked(TEXT)


def test_another_roots_key_and_a_changed_seal_give_nothing(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    kept = Sealer(tmp_path).masked(TEXT)
    Sealer(tmp_path / "other").masked(TEXT)
    with pytest.raises(IntegrityError, match="another root"):
        Sealer(tmp_path / "other").unmasked(kept)
    at = kept.index(b"amem-sealed.") + 40
    changed = kept[:at] + (b"A" if kept[at : at + 1] != b"A" else b"B") + kept[at + 1 :]
    with pytest.raises(IntegrityError, match="changed"):
        Sealer(tmp_path).unmasked(changed)
    plain, broken = Sealer(tmp_path).opened(changed + kept)
    assert (plain.endswith(TEXT), len(broken), plain.startswith(TEXT)) == (True, 1, False)
    (tmp_path / "seal.key").write_bytes(b"short")
    with pytest.raises(IntegrityError, match="no key"):
        Sealer(tmp_path).unmasked(kept)


@pytest.mark.parametrize("before", [b"amem-sealed.", b"amem-sealed.x", b"amem-sealed.abcdefgh", b"amem-sealed.amem-sealed."])
def test_a_text_that_begins_a_seal_before_a_credential_comes_back(tmp_path: Path, before: bytes) -> None:
    text = before + PEM + b" " + GITHUB
    kept = Sealer(tmp_path).masked(text)
    assert GITHUB not in kept and b"b3BlbnNz" not in kept
    assert Sealer(tmp_path).unmasked(kept) == text


def test_a_key_that_is_gone_is_missed_and_not_made_again(tmp_path: Path) -> None:
    kept = Sealer(tmp_path).masked(TEXT)
    (tmp_path / "seal.key").rename(tmp_path / "away")
    for fails in (lambda: Sealer(tmp_path).opened(kept), lambda: Sealer(tmp_path).unmasked(kept), lambda: Sealer(tmp_path).masked(TEXT)):
        with pytest.raises(IntegrityError, match="is gone") as raised:
            fails()
        assert raised.value.hint == f"restore {tmp_path / 'seal.key'} from a backup"
    assert not (tmp_path / "seal.key").exists()
    assert Sealer(tmp_path).masked(b"plain") == b"plain"
    (tmp_path / "away").rename(tmp_path / "seal.key")
    assert Sealer(tmp_path).unmasked(kept) == TEXT


def test_a_made_up_seal_where_no_key_was_made_hides_nothing(tmp_path: Path) -> None:
    text = b"before amem-sealed." + b"A" * 40 + b". after"
    plain, broken = Sealer(tmp_path).opened(text)
    assert (plain, len(broken)) == (text, 1)
    assert list(tmp_path.iterdir()) == []


@QUICK
@given(
    st.lists(
        st.sampled_from([GITHUB, ANTHROPIC, PEM, b"-----BEGIN ", b"PRIVATE KEY-----", b"sk-", b" ", b"x", b"\xff\x00", b"amem-sealed."])
    )
)
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    sealer = Sealer(tmp_path_factory.mktemp("state"))
    text = b"".join(parts)
    assert sealer.unmasked(sealer.masked(text)) == text


def test_a_text_without_any_is_kept_as_it_is_and_makes_no_key(tmp_path: Path) -> None:
    text = b"The key-value store at sk-learn: see https://example.org/AIza and -----BEGIN CERTIFICATE-----"
    assert Sealer(tmp_path).masked(text) == text
    assert not (tmp_path / "seal.key").exists()
