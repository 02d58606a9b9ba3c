import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.memory.session import Memory
from tests.memory.seed import GRANTS, seeded

from .actors import Actor

GRANTED = "".join(
    f'[grants.dom-me.principals."human:acme:{name}"]\nread = "restricted"\nwrite = true\n' for name in ("bob", "cleo")
)  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A root with an owner, two other persons and agents."""
    with seeded(tmp_path, GRANTS.replace("[grants.dom-open]", f"{GRANTED}[grants.dom-open]", 1)) as found:
        yield found


@pytest.fixture
def actors(memory: Memory) -> Iterator[list[Actor]]:
    """Two other processes on the root, ready to act."""
    started = [Actor([sys.executable, "-m", "tests.attacks.policy.actors", str(memory.root.path)]) for _ in range(2)]
    try:
        yield started
    finally:
        for each in started:
            each.end()
