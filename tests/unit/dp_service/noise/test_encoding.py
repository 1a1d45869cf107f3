"""Canonical encoding."""

from hypothesis import example, given
from hypothesis import strategies as st

from dp_service.noise.encoding import length_prefixed

PARTS = st.lists(st.binary(max_size=12), max_size=4)


def test_a_part_is_preceded_by_its_length_in_eight_bytes() -> None:
    """The format is written down byte by byte, for other languages."""
    assert bytes(7) + b"\x02ab" + bytes(8) == length_prefixed(b"ab", b"")


@given(PARTS, PARTS)
@example([b"ab", b"c"], [b"a", b"bc"])
def test_different_sequences_never_encode_alike(first: list[bytes], second: list[bytes]) -> None:
    """Two sequences of parts have the same encoding only if they are the same sequence."""
    assert (first == second) == (length_prefixed(*first) == length_prefixed(*second))
