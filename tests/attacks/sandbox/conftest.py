from collections.abc import Iterator

import pytest

from tests.sandbox.launching import Place, place


@pytest.fixture(params=["user", "root"])
def here(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place(request.param) as made:
        yield made
