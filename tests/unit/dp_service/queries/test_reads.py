"""What an engine learns of the columns that a query names: all of them, and what the query takes for granted."""

import datetime

import pytest

from dp_service.queries.filters import INT64_MINIMUM
from dp_service.queries.intervals import Interval
from dp_service.queries.read_columns import ReadColumn
from dp_service.terms import ColumnType
from tests.support.queries.policies import resolved

MEMBER = ReadColumn("member_id", None, "null", None)
ARTICLE = ReadColumn("article_id", ColumnType.STRING, "null", None)
HEAD = "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement"
TAIL = "GROUP BY article_id LIMIT 5"


def test_every_column_is_named_once_however_it_is_used() -> None:
    """Group-by, filters, time and the member, by name."""
    conditions = ("title NOT LIKE 'x%'", "article_id <> 'y'", "day >= DATE '2024-01-01'", "active = TRUE")
    for word in (" AND ", " OR "):
        assert (
            ReadColumn("active", ColumnType.BOOL, False, None),
            ARTICLE,
            ReadColumn("day", ColumnType.DATE, None, None),
            MEMBER,
            ReadColumn("title", ColumnType.STRING, "", None),
        ) == resolved(f"{HEAD} WHERE {word.join(conditions)} {TAIL}").reads


def test_a_member_column_that_the_policy_lists_has_its_type() -> None:
    """Its own null value is left out, so the engine must store it; here that is to lie above the smallest number."""
    above = Interval(INT64_MINIMUM + 1, INT64_MINIMUM + 2)
    user = ReadColumn("user", ColumnType.INT64, INT64_MINIMUM, above)
    reads = resolved("SELECT item, COUNT(DISTINCT user) FROM clicks GROUP BY item LIMIT 5").reads
    assert user in reads


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("score = 1", Interval(1, 2)),
        ("score IN (-1, 5000000000)", Interval(-1, 5_000_000_001)),
        ("score <= 5", Interval(INT64_MINIMUM + 1, 6)),
        # The last number of a narrower column is no number outside of it.
        ("score <= 2147483647", Interval(INT64_MINIMUM + 1, 2**31)),
        ("score < 2147483648", Interval(INT64_MINIMUM + 1, 2**31)),
        ("score > 2147483646", Interval(2**31 - 1, 2**31)),
        ("score BETWEEN 2 AND 2000", Interval(2, 2001)),
        # Beside a gap that is not listed, the ends of its neighbours are written.
        ("score NOT BETWEEN -5 AND 1000000", Interval(INT64_MINIMUM + 1, 1_000_002)),
        ("active OR score = 1 OR (score = 0 AND day > '2024-01-01')", Interval(0, 2)),
    ],
)
def test_the_numbers_that_a_column_is_compared_with_are_told(condition: str, numbers: Interval) -> None:
    """All that the rendered query says of it lies between them, and both are said."""
    (score,) = [read for read in resolved(f"{HEAD} WHERE {condition} {TAIL}").reads if read.name == "score"]
    assert numbers == score.numbers


def test_days_are_compared_as_days() -> None:
    """No day is a number to an engine's reader, however Pinot stores it."""
    reads = resolved(f"{HEAD} WHERE day = DATE '{datetime.date.max}' {TAIL}").reads
    assert ReadColumn("day", ColumnType.DATE, None, None) in reads
