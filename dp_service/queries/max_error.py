"""How exact a question wants its counts: a bound of what their noise may be on average."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dp_service.queries.errors import QuestionError

MAX_ERROR = "max_error"
"""The field of a question, and the option in SQL."""
ANYWAY = "anyway"
"""What it says where a question is asked however noisy the answer is."""

# More digits than a count has are none that anybody means.
_WANTED = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?(%?)")
_EXPECTED = "expected how far a count may be off on average: a number above 0 such as 16, a part such as 10%, or anyway"


@dataclass(frozen=True)
class MaxError:
    """How far a count may be off on average by the noise of the answer, above 0.

    Attributes:
        number: The distance in counts, or as a part.
        is_part: Whether it is a part, of the smallest count that the answer is about.
    """

    number: Fraction
    is_part: bool = False

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return what a text wants; None: it is empty or anyway, and wants nothing.

        Raises:
            QuestionError: It is no such number.
        """
        if text in ("", ANYWAY):
            return None
        found = _WANTED.fullmatch(text)
        number = Fraction(0) if found is None else Fraction(found[1])
        if found is None or not number or (found[2] and number > 100):
            raise QuestionError(MAX_ERROR, _EXPECTED)
        return cls(number / 100, is_part=True) if found[2] else cls(number)
