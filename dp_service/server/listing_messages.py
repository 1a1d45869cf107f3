"""Messages of what decides which elements a question shows: buckets of time, and conditions on what was released."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from fractions import Fraction

from gris_api.dp.v1 import question_pb2

from dp_service.parameters.release import HavingCondition
from dp_service.queries.answer_columns import BUCKET_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import Bucket, HistogramQuery
from dp_service.server.messages import numbers
from dp_service.terms import Comparison

BUCKET_LENGTHS = {
    BucketLength.DAY: question_pb2.BUCKET_LENGTH_DAY,
    BucketLength.WEEK: question_pb2.BUCKET_LENGTH_WEEK,
    BucketLength.MONTH: question_pb2.BUCKET_LENGTH_MONTH,
    BucketLength.QUARTER: question_pb2.BUCKET_LENGTH_QUARTER,
    BucketLength.YEAR: question_pb2.BUCKET_LENGTH_YEAR,
}
_COMPARISONS = {
    number: each for each, number in numbers(Comparison, question_pb2.Comparison.DESCRIPTOR).items()
}
# Short enough that no number in it has more digits than arithmetic takes at once.
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40}|/[1-9][0-9]{0,39})?")
_NAME_CHARACTERS = 32


def bucket_of(message: question_pb2.TimeBucket) -> Bucket:
    """Return how a question divides the time column.

    Raises:
        QuestionError: It names no length.
    """
    for length, number in BUCKET_LENGTHS.items():
        if message.length == number:
            return Bucket(length, message.ranked)
    raise QuestionError(
        "bucket.length", "expected one of BUCKET_LENGTH_DAY, _WEEK, _MONTH, _QUARTER and _YEAR"
    )


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
    """Return the alias of each column; that of buckets is their length, if the question gives none and nothing has it.

    Args:
        query: The question.
        names: The names of the columns in the answer.
    """
    if query.bucket is None:
        return query.aliases
    aliases = query.aliases or (None,) * len(names)
    length = str(query.bucket.length)
    numbers = (query.count_alias, *(each.alias for each in query.aggregates))
    taken = {(each or "").casefold() for each in (*names, *aliases, *numbers)}
    by_length = None if length in taken else length
    return tuple(
        alias or (by_length if name == BUCKET_COLUMN else None)
        for name, alias in zip(names, aliases, strict=True)
    )
