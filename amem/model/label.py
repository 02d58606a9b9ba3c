"""Labels: `public < internal < restricted`, the only order that confidentiality has here."""

from collections.abc import Iterable
from enum import StrEnum


class Label(StrEnum):
    """A classification of an entry, the label of a session, or a ceiling, depending on where it stands."""

    PUBLIC = "public"
    INTERNAL = "internal"
    RESTRICTED = "restricted"

    @property
    def rank(self) -> int:
        """0 for public, 1 for internal, 2 for restricted."""
        return _RANK[self]

    def exceeds(self, ceiling: "Label") -> bool:
        """Say whether this label is above `ceiling`."""
        return self.rank > ceiling.rank


_RANK = {Label.PUBLIC: 0, Label.INTERNAL: 1, Label.RESTRICTED: 2}


def highest(labels: Iterable[Label], floor: Label = Label.PUBLIC) -> Label:
    """The highest of `labels` and `floor`."""
    return max((floor, *labels), key=lambda label: label.rank)


def lowest(first: Label, *others: Label) -> Label:
    """The lowest of the labels."""
    return min((first, *others), key=lambda label: label.rank)
