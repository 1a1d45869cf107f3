"""The order in which a member's elements are kept: by the salted SHA-256 of member and element."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeVar

from dp_service.noise.encoding import length_prefixed

_SALT_LABEL = b"gris/bounding/v1"

Text = TypeVar("Text", str, tuple[str, ...])


def table_salt(table: str, use: str) -> bytes:
    """Return the public salt of a table; for another use the elements of a member have another order.

    It is no secret, since engines keep logs of their queries. What is kept may depend on the member's own rows and on
    anything that everybody knows.

    >>> table_salt("clicks", "all").hex()[:16]
    '2ec3c102eb86d163'
    """
    return hashlib.sha256(length_prefixed(_SALT_LABEL, table.encode(), use.encode())).digest()


def order_hash(salt: bytes, member: str, *element: str) -> bytes:
    """Return the 32 bytes by which one element of one member is ordered.

    `salt` is public. The member and the values of the element, one for each column, are canonical texts in UTF-8.

    >>> order_hash(b"salt", "ada", "x").hex()[:16]
    '0652e5bbe34b3ad6'
    """
    texts = (text.encode() for text in (member, *element))
    return hashlib.sha256(length_prefixed(salt, *texts)).digest()


def kept(salt: bytes, member: str, elements: Iterable[Text], typical: int) -> list[Text]:
    """Return the at most `typical` distinct elements that count, in the order in which they are kept.

    An element is a text, or a tuple of texts, one for each column. This is the reference for the engines: ascending
    by `order_hash`, ties by element in code-point order.
    """

    def place(element: Text) -> tuple[bytes, Text]:
        values = (element,) if isinstance(element, str) else element
        return order_hash(salt, member, *values), element

    return sorted(set(elements), key=place)[:typical]
