from hypothesis import given
from hypothesis import strategies as st

from amem.egress.scrub import Scrubber, scrubbed

SECRET = b"sk-aba-abab"


@given(
    st.lists(st.sampled_from([b"sk-", b"aba", b"-", b"abab", SECRET, b"x", b"sk-aba-", b"\n\n"]), max_size=30).map(b"".join),
    st.integers(1, 13),
)
def test_a_secret_is_taken_out_wherever_the_stream_splits_it(data: bytes, size: int) -> None:
    scrubber = Scrubber(SECRET)
    out = b"".join(scrubber.feed(data[at : at + size]) for at in range(0, len(data), size)) + scrubber.end()
    assert out == scrubbed(data, SECRET)
    assert len(out) == len(data)
    assert SECRET not in out


def test_what_cannot_be_the_secret_is_not_held_back() -> None:
    scrubber = Scrubber(SECRET)
    assert scrubber.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert scrubber.feed(b"data: sk-ab") == b"data: "
    assert scrubber.feed(b"out\n\n") == b"sk-about\n\n"
    assert scrubber.end() == b""
