"""The one canonical encoding of a sequence of byte strings."""

_LENGTH_BYTES = 8


def length_prefixed(*fields: bytes) -> bytes:
    """Encode a sequence of byte strings so that different sequences never encode alike.

    Each one is preceded by its length in bytes as an 8-byte big-endian integer.

    >>> length_prefixed(b"ab", b"c").hex()
    '00000000000000026162000000000000000163'
    """
    return b"".join(len(field).to_bytes(_LENGTH_BYTES, "big") + field for field in fields)
