"""Checks names of data versions that others than the owner of the data can see: in a policy or a published domain."""

from __future__ import annotations

import re

# The lengths of common hashes in hexadecimal, alone or after the name of one or a prefix that engines write.
_DIGITS = "|".join(f"[0-9a-f]{{{length}}}" for length in (32, 40, 56, 64, 96, 128))
_PLAIN_HASH = re.compile(
    rf"(?:(?:md5|sha-?[0-9]{{1,3}}(?:[-_/][0-9]{{3}})?|blake[0-9a-z]{{1,3}}|files|pinot)[:=-])?(?:{_DIGITS})",
    re.IGNORECASE,
)


def is_plain_hash(data_version: str) -> bool:
    """Return whether the name of a version looks like a hash without a key.

    Anyone who can guess the data, for example all but one member of them, could compute such a hash and verify the
    guess. A hash with another prefix, such as `hmac-sha256:`, is taken for a keyed one.
    """
    return _PLAIN_HASH.fullmatch(data_version) is not None
