import threading

import pytest

from amem.memory.session import Session
from amem.model.entry import Tier
from amem.model.label import Label


def session(kept: list[Label] | None = None, **changes: object) -> Session:
    values = {"id": "ses-00000000", "principal": "agent:claude", "owner": "human:a:b", "domain": "dom-me", "handling": Label.RESTRICTED}
    return Session(**{**values, "persist": (kept if kept is not None else []).append, **changes})  # type: ignore[arg-type]


def test_label_only_rises_and_each_rise_is_kept_once() -> None:
    kept: list[Label] = []
    sitting = session(kept)
    for to in (Label.PUBLIC, Label.INTERNAL, Label.PUBLIC, Label.INTERNAL, Label.RESTRICTED, Label.INTERNAL):
        sitting.raise_label(to)
    assert sitting.label is Label.RESTRICTED
    assert kept == [Label.INTERNAL, Label.RESTRICTED]


def test_rise_that_cannot_be_kept_stands_and_is_tried_again() -> None:
    kept: list[Label] = []
    full = True

    def persist(label: Label) -> None:
        if full:
            raise OSError("the disk is full")
        kept.append(label)

    sitting = session(persist=persist)
    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            sitting.raise_label(Label.INTERNAL)
    assert sitting.label is Label.INTERNAL
    full = False
    assert sitting.raise_label(Label.PUBLIC) is Label.INTERNAL
    assert kept == [Label.INTERNAL]


def test_threads_that_raise_at_once_end_at_the_highest() -> None:
    kept: list[Label] = []
    sitting = session(kept)
    threads = [threading.Thread(target=sitting.raise_label, args=(label,)) for label in [*Label] * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sitting.label is Label.RESTRICTED
    assert kept == sorted(kept, key=lambda label: label.rank)
    assert kept[-1] is Label.RESTRICTED


def test_lineage_is_the_least_trusted_tier_served() -> None:
    sitting = session()
    assert sitting.lineage is None
    sitting.served([Label.PUBLIC], [Tier.VERIFIED])
    assert sitting.lineage is Tier.VERIFIED
    sitting.served([Label.INTERNAL, Label.PUBLIC], [Tier.CURATED, Tier.VERIFIED])
    sitting.served([], [])
    assert (sitting.lineage, sitting.label) == (Tier.CURATED, Label.INTERNAL)
