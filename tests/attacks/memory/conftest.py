from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.memory.session import Memory
from tests.memory.seed import seeded


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with seeded(tmp_path) as found:
        yield found
