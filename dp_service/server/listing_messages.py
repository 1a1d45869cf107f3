"""Messages of what decides which elements a question shows, and what its columns are called."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from gris_api.dp.v1 import question_pb2

from dp_service.parameters.release import HavingCondition
from dp_service.queries.dimensions import labels_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import HistogramQuery
from dp_service.server.messages import numbers
from dp_service.terms import Comparison

_COMPARISONS = {
    number: each for each, number in numbers(Comparison, question_pb2.Comparison.DESCRIPTOR).items()
}
# Short enough that no number in it has more digits than arithmetic takes at once.
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40}|/[1-9][0-9]{0,39})?")
_NAME_CHARACTERS = 32


def having_of(message: question_pb2.HavingCondition) -> HavingCondition:
    """Return a condition on what was released.

    Raises:
        QuestionError: It names no comparison, or compares with no number.
    """
    if message.comparison not in _COMPARISONS:
        raise QuestionError("having.comparison", "expected one of COMPARISON_EQUAL to COMPARISON_AT_LEAST")
    if not _NUMBER.fullmatch(message.bound):
        raise QuestionError("having.bound", "expected a decimal number, or an exact rational number p/q")
    place = message.aggregate if message.HasField("aggregate") else None
    return HavingCondition(place, _COMPARISONS[message.comparison], Fraction(message.bound))


def name_of_conditions(conditions: Sequence[HavingCondition]) -> str:
    """Return a name for conditions, the same only for equal ones; empty for none.

    It is no text of theirs: what a question compares with is nobody's business but the asker's.
    """
    if not conditions:
        return ""
    written = repr([[each.aggregate, each.comparison.name, str(each.bound)] for each in conditions]).encode()
    return hashlib.sha256(b"gris/having/v1:" + written).hexdigest()[:_NAME_CHARACTERS]


def column_aliases(query: HistogramQuery, names: Sequence[str]) -> tuple[str | None, ...]:
    """Return the alias of each column; a function has a name that says what it is, if nothing else has that.

    Args:
        query: The question.
        names: The names of the columns in the answer.
    """
    labels = labels_of(query.dimensions)
    if not any(labels):
        return query.aliases
    aliases = query.aliases or (None,) * len(names)
    numbers = (query.count_alias, *(each.alias for each in query.aggregates))
    taken = Counter((each or "").casefold() for each in (*names, *aliases, *numbers, *labels))
    return tuple(
        alias or (label if label is not None and taken[label] == 1 else None)
        for label, alias in zip(labels, aliases, strict=True)
    )
