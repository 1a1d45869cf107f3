"""Errors of the policy and of limits, which are met after a text is read, name line, column and what stands there."""

from __future__ import annotations

import pytest
from gris_api.dp.v1 import question_pb2

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.server.question_cache import QuestionCache
from tests.support.queries.policies import POLICY
from tests.support.queries.strategies import NOW

HEAD = "SELECT article_id, COUNT(DISTINCT member_id)\nFROM engagement "
BY_COUNTRY = "SELECT country, COUNT(DISTINCT member_id) FROM engagement"


@pytest.mark.parametrize(
    ("sql", "line", "word"),
    [
        (f"{HEAD}GROUP BY 1", 1, "SELECT"),
        (f"{HEAD}WHERE active AND country = 'XX' GROUP BY 1 LIMIT 5", 2, "country"),
        (f"{HEAD}WHERE day = '2019-01-01' AND\ncohort = 'x' GROUP BY 1 LIMIT 5", 3, "cohort"),
        (f"{HEAD}WHERE active OR NOT (title LIKE 'x%')\nGROUP BY 1 LIMIT 5", 0, ""),
        (f"{HEAD}WHERE active AND score > 3 AND score < 2 GROUP BY 1 LIMIT 5", 2, "score"),
        ("SELECT article_id,\ntitle, COUNT(*) FROM engagement GROUP BY 1, 2 LIMIT 5", 2, "title"),
        ("SELECT\nCOUNT(*) FROM engagement", 2, "COUNT(*)"),
        ("SELECT cohort, COUNT(*) FROM engagement GROUP BY 1\nORDER BY 2 LIMIT 5", 2, "2"),
        (f"{HEAD}GROUP BY 1\nLIMIT 99999999999", 3, "99999999999"),
        ("SELECT cohort, COUNT(*) FROM engagement GROUP BY 1\nLIMIT 5000", 2, "5000"),
        (BY_COUNTRY.replace(" FROM", ",\nSUM(score) FROM") + " GROUP BY 1", 2, "SUM(score)"),
        (" ".join(["SELECT * FROM (", BY_COUNTRY, "\nWHERE country = 'XX' GROUP BY 1) AS v"]), 2, "country"),
        ("SELECT country, article_id, score, active, cohort, COUNT(*) FROM engagement GROUP BY ALL", 1, "country"),
    ],
)  # fmt: skip
def test_an_error_has_the_place_of_what_it_is_about(sql: str, line: int, word: str) -> None:
    """The clause, and in it the column."""
    question = question_pb2.Question(sql=sql)
    if not word:
        assert QuestionCache().resolve(question, POLICY, now=NOW)
        return
    with pytest.raises((QuestionError, RefusedByPolicyError)) as error:
        QuestionCache().resolve(question, POLICY, now=NOW)
    column = sql.split("\n")[line - 1].index(word) + 1
    assert str(error.value).startswith(f"line {line}, column {column}: ")
    assert "^" * len(word) == str(error.value).rsplit("\n", 1)[1].strip()
    assert error.value.__context__ is None
