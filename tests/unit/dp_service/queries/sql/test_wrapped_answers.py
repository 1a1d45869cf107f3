"""Statements that aggregate another one's answer: of single rows they are that one, of more they are refused."""

from __future__ import annotations

import pytest

from dp_service.queries.errors import QuestionError
from tests.support.queries.policies import resolved

INNER = "SELECT country, COUNT(DISTINCT member_id) AS c FROM engagement GROUP BY country"
BY_TWO = "SELECT country, score, COUNT(*) AS c FROM engagement GROUP BY 1, 2"
TOTAL = "SELECT COUNT(DISTINCT member_id) AS c FROM engagement"


def around(inner: str, outer: str) -> str:
    """Return a statement around another one, whose place in it is a Q."""
    return outer.replace("Q", f"({inner}) AS v")


@pytest.mark.parametrize(
    ("inner", "outer", "same"),
    [
        (INNER, 'SELECT country AS country, SUM(c) AS "SUM(c)" FROM Q GROUP BY country', INNER),
        (
            INNER,
            'SELECT country AS x, SUM(v.c) AS "SUM(c)" FROM Q GROUP BY x ORDER BY "SUM(c)" DESC LIMIT 2',
            f"{INNER} ORDER BY 2 DESC LIMIT 2",
        ),
        (
            INNER,
            "SELECT country, MAX(c) FROM Q GROUP BY 1 ORDER BY MAX(c) LIMIT 2",
            f"{INNER} ORDER BY c LIMIT 2",
        ),
        (
            INNER,
            "SELECT AVG(c) AS c, country FROM Q WHERE country <> 'FR' GROUP BY ALL HAVING c > 5",
            INNER.replace("GROUP", "WHERE country <> 'FR' GROUP") + " HAVING c > 5",
        ),
        (INNER, "SELECT country, MIN(c) FROM Q GROUP BY country HAVING SUM(c) > 5", f"{INNER} HAVING c > 5"),
        (
            BY_TWO,
            "SELECT score, country, SUM(c) FROM Q GROUP BY country, score LIMIT 5",
            BY_TWO.replace("country, score", "score, country") + " LIMIT 5",
        ),
        (TOTAL, "SELECT SUM(c) FROM Q", TOTAL),
    ],
)
def test_numbers_of_single_rows_are_these_rows(inner: str, outer: str, same: str) -> None:
    """BI tools aggregate whatever they read, and group an answer by the columns that it is already grouped by."""
    assert resolved(around(inner, outer)) == resolved(same)


@pytest.mark.parametrize(
    ("inner", "outer", "message"),
    [
        (INNER, "SELECT SUM(c) FROM Q", "line 1, column 8: a sum .* leave GROUP BY out"),
        (INNER, "SELECT MAX(c) FROM Q", "column 8: the largest or smallest .* LIMIT 1"),
        (INNER, "SELECT AVG(c) FROM Q", "column 8: a number computed"),
        (INNER, "SELECT COUNT(*) FROM Q", "column 8: a count of an answer's rows"),
        (INNER, "SELECT country, COUNT(*) FROM Q GROUP BY country", "column 17: a count of an answer's rows"),
        (INNER, "SELECT country, SUM(country) FROM Q GROUP BY country", "column 17: a number computed"),
        (INNER, "SELECT country, SUM(c), MAX(c) FROM Q GROUP BY 1", "column 29: .* selected twice"),
        (INNER, "SELECT country, SUM(DISTINCT c) FROM Q GROUP BY country", "column 17: a sum"),
        (BY_TWO, "SELECT country, SUM(c) FROM Q GROUP BY country", "of exactly its columns"),
        (BY_TWO, "SELECT country, score, c FROM Q HAVING c > 1", "of exactly its columns"),
    ],
)
def test_numbers_of_several_rows_are_refused_with_what_to_write(inner: str, outer: str, message: str) -> None:
    """A member is in several of them, and not all of them are released."""
    with pytest.raises(QuestionError, match=message):
        resolved(around(inner, outer))
