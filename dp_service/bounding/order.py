"""The order in which a member's elements are kept: by the salted SHA-256 of member and element.

Hashed are the salt, the member and the values of the element, each with its length in front (`length_prefixed`), as
canonical texts in UTF-8. Elements are kept in ascending order of the hash, ties in code-point order. Engines compute it
(`render.dialects`), and tests compare what they compute with Python's.
"""

from __future__ import annotations

import hashlib

from dp_service.noise.encoding import length_prefixed

_SALT_LABEL = b"gris/bounding/v1"


def table_salt(table: str, use: str) -> bytes:
    """Return the public salt of a table; for another use the elements of a member have another order.

    It is no secret, since engines keep logs of their queries. What is kept may depend on the member's own rows and on
    anything that everybody knows.

    >>> table_salt("clicks", "all").hex()[:16]
    '2ec3c102eb86d163'
    """
    return hashlib.sha256(length_prefixed(_SALT_LABEL, table.encode(), use.encode())).digest()
