"""What is said of a port that cannot be opened."""

import errno

import pytest

from amem.errors import UnavailableError
from amem.launch import ports


@pytest.mark.parametrize(("number", "hint"), [(errno.EACCES, "name a port of 1024 or more"), (errno.EADDRINUSE, "ss -ltnp sport = 80")])
def test_a_port_that_cannot_be_had_says_what_helps(monkeypatch: pytest.MonkeyPatch, number: int, hint: str) -> None:
    def listen(port: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(ports.relay, "listen", listen)
    with pytest.raises(UnavailableError, match="--port 80: no") as caught:
        ports.Ports((80,), ())
    assert caught.value.hint == hint
