"""What may name a version of the data where others than its owner see the name: in a policy, or a published domain."""

from __future__ import annotations

import re

# The lengths of common hashes in hexadecimal, alone or behind the name of one, or behind what engines write there.
_DIGITS = "|".join(f"[0-9a-f]{{{length}}}" for length in (32, 40, 56, 64, 96, 128))
_PLAIN_HASH = re.compile(
    rf"(?:(?:md5|sha-?[0-9]{{1,3}}(?:[-_/][0-9]{{3}})?|blake[0-9a-z]{{1,3}}|files|pinot)[:=-])?(?:{_DIGITS})",
    re.IGNORECASE,
)


def is_plain_hash(data_version: str) -> bool:
    """Tell whether a name of a version looks like a hash that nobody's key went into.

    Whoever can guess the data, such as all but one member of them, could compute it and verify the guess. What begins
    with another word, such as `hmac-sha256:`, is taken for a keyed one.
    """
    return _PLAIN_HASH.fullmatch(data_version) is not None
