"""What tells the rows of a pairs copy apart: a number for each row, and one for the content of each period.

The number of a period is a hash of all its rows, whatever engine writes them and however often: the same rows have the
same one, so a copy that is made anew from the same data is the same copy. Another row, or another `gris_previous`,
gives another number: sums of two times 60 bits of each row's SHA-256 are part of what is hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.pairs_manifest import LARGEST_BUILD

DIGITS = ((1, 15), (16, 15), (31, 5))
"""Of the 64 hexadecimal digits of a row's hash, where three numbers begin and how long they are: two that are summed to
name the period, and what `gris_check` is in the row."""

NO_TEXT = "-,"
"""Stands for NULL in what is hashed of a row."""


@dataclass(frozen=True)
class PeriodContent:
    """What the rows of a period add up to.

    Attributes:
        period: Its first day, as a number of days since 1970-01-01.
        rows: How many there are.
        sums: The sums of the first two numbers of `DIGITS`.
        check_sum: The sum of the third, each times the weight of its row's previous period, modulo `CHECK_MODULUS`.
    """

    period: int
    rows: int
    sums: tuple[int, int]
    check_sum: int

    def build(self, identity: bytes) -> int:
        """Return what names this content in a copy of that identity.

        >>> PeriodContent(19723, 2, (7, 8), 9).build(b"a copy")
        3010283005189327
        """
        stated = (str(each).encode() for each in (self.period, self.rows, *self.sums))
        digest = hashlib.sha256(length_prefixed(b"gris/pairs-build/v1", identity, *stated)).digest()
        return int.from_bytes(digest) & LARGEST_BUILD


def hashed_text(values: Iterable[str | None]) -> str:
    """Return what is hashed of a row: its values as texts, each behind its length in bytes.

    This is the reference for the engines. The values are member, elements, attributes, period and previous period.

    >>> hashed_text(["ada", None, "19723"])
    '3:ada,-,5:19723,'
    """
    return "".join(NO_TEXT if each is None else f"{len(each.encode())}:{each}," for each in values)


def numbers_of(values: Sequence[str | None]) -> tuple[int, int, int]:
    """Return the three numbers of a row.

    >>> numbers_of(["ada", None, "19723"])
    (945955453652969525, 995213520375921929, 353034)
    """
    digest = hashlib.sha256(hashed_text(values).encode()).hexdigest()
    first, second, check = (int(digest[start - 1 : start - 1 + length], 16) for start, length in DIGITS)
    return first, second, check
