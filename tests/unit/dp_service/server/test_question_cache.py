"""What a question means is kept, and never given for another question, another policy or another period."""

from __future__ import annotations

import datetime

import pytest
from gris_api.dp.v1 import question_pb2

from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy, read_policy
from dp_service.server.errors import RequestError
from dp_service.server.question_cache import MAX_ELEMENTS, MAX_KEPT, MAX_QUESTION_BYTES, QuestionCache
from pinot_connector import In, NotIn, sql_question, structured_question


def policy_of(table: str = "reading", *, elements: int = 3) -> Policy:
    """Returns a policy of one table whose months are closed when they have ended."""
    text = f"""
epsilon_per: 0.15
delta: 1e-10
tables:
  {table}:
    member: member_id
    time: {{column: day, type: date, refresh: month}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article: {{type: string, group_by: true, filter: [in, not_in]}}
      flag: {{type: bool, filter: [in]}}
      many: {{type: int64, group_by: true, domain: {list(range(elements))}}}
      day: {{type: date}}
"""
    return read_policy(text.encode(), "policy").policy


def second(day: str) -> int:
    """Returns the middle of a day, in seconds since 1970."""
    noon = datetime.datetime.fromisoformat(f"{day}T12:00:00+00:00")
    return int(noon.timestamp())


JUNE, LATE_JUNE, JULY = second("2024-06-10"), second("2024-06-29"), second("2024-07-10")
TOP = structured_question("reading", "article", k=5)
SQL = "SELECT article, COUNT(DISTINCT member_id) FROM reading GROUP BY article ORDER BY 2 DESC LIMIT 5"


@pytest.mark.parametrize("question", [TOP, sql_question(SQL)])
def test_a_question_is_resolved_once_until_another_period_is_closed(question: question_pb2.Question) -> None:
    """A day later it means the same; when the month has ended it sees that month too."""
    cache, policy = QuestionCache(), policy_of()
    first = cache.resolve(question, policy, now=JUNE)
    assert cache.resolve(question, policy, now=LATE_JUNE) is first
    later = cache.resolve(question, policy, now=JULY)
    assert later.resolution.fixed_data_version != first.resolution.fixed_data_version
    assert cache.resolve(question, policy, now=JUNE) is first


def test_a_condition_in_sql_is_one_of_a_structured_question() -> None:
    """It means what it means behind WHERE; what is wrong is named by its field and place."""
    cache, policy = QuestionCache(), policy_of()
    condition = "flag OR NOT article IN ('a', 'b')"
    sql = SQL.replace("GROUP", f"WHERE {condition} GROUP")
    asked = structured_question("reading", "article", k=5, where=condition)
    found, expected = (
        cache.resolve(each, policy, now=JUNE).resolution.query for each in (asked, sql_question(sql))
    )
    assert canonical_bytes(found) == canonical_bytes(expected)
    written = structured_question("reading", "article", k=5, where="WHERE flag;")
    plain = structured_question("reading", "article", k=5, where={"flag": True})
    both = (cache.resolve(each, policy, now=JUNE).resolution.query for each in (written, plain))
    assert len(set(map(canonical_bytes, both))) == 1
    for wrong, place in (
        ("flag OR\n  articel = 'secret'", "line 2, column 3: "),
        ("flag GROUP BY article", "line 1, column 6: "),
        ("1 = 0", "line 1, column 1: a condition that no row meets"),
        (" ", "line 1, column 2: "),
        (f"article = '{'a' * 300_000}'", "at most 262,144 bytes"),
    ):
        with pytest.raises((QuestionError, RefusedByPolicyError), match=place) as refused:
            cache.resolve(structured_question("reading", "article", k=5, where=wrong), policy, now=JUNE)
        assert "secret" not in str(refused.value)
        assert getattr(refused.value, "field", "condition") == "condition"


def test_another_policy_is_asked_anew() -> None:
    """What it does not list is refused, though it was kept before; and the other way round."""
    cache, before, now = QuestionCache(), policy_of(), policy_of("another")
    first = cache.resolve(TOP, before, now=JUNE)
    with pytest.raises(RefusedByPolicyError):
        cache.resolve(TOP, now, now=JUNE)
    cache.resolve(structured_question("another", "article", k=5), now, now=JUNE)
    again = cache.resolve(TOP, before, now=JUNE)
    assert again is not first
    assert again.resolution == first.resolution


def test_questions_that_python_would_call_equal_are_others() -> None:
    """A number is no truth value, and a question that differs in anything has a resolution of its own."""
    cache, policy = QuestionCache(), policy_of()
    yes = structured_question("reading", "article", k=5, where={"flag": In([True])})
    cache.resolve(yes, policy, now=JUNE)
    with pytest.raises(QuestionError):
        cache.resolve(
            structured_question("reading", "article", k=5, where={"flag": In([1])}), policy, now=JUNE
        )
    sql = cache.resolve(sql_question(SQL + " "), policy, now=JUNE)
    assert sql.resolution == cache.resolve(TOP, policy, now=JUNE).resolution


def test_nothing_is_kept_of_refusals_and_of_what_is_large() -> None:
    """Long questions and large domains would fill the memory, and so would any number of questions."""
    cache = QuestionCache()
    for question, error in [
        (structured_question("reading", "day", k=5), RefusedByPolicyError),
        (question_pb2.Question(), RequestError),
    ]:
        for _ in range(2):
            with pytest.raises(error):
                cache.resolve(question, policy_of(), now=JUNE)
    policy = policy_of(elements=MAX_ELEMENTS + 1)
    listed = structured_question("reading", "many", k=5)
    assert cache.resolve(listed, policy, now=JUNE) is not cache.resolve(listed, policy, now=JUNE)
    long = structured_question(
        "reading",
        "article",
        k=5,
        where={"article": NotIn(["x" * 1000 + str(i) for i in range(1 + MAX_QUESTION_BYTES // 1000)])},
    )
    assert cache.resolve(long, policy, now=JUNE) is not cache.resolve(long, policy, now=JUNE)
    first = cache.resolve(TOP, policy, now=JUNE)
    for number in range(MAX_KEPT):
        where = {"article": NotIn([f"no {number}"])}
        cache.resolve(structured_question("reading", "article", k=5, where=where), policy, now=JUNE)
    assert cache.resolve(TOP, policy, now=JUNE) is not first


def test_a_query_is_written_once_for_each_engine() -> None:
    """And each engine has its own."""
    asked = QuestionCache().resolve(TOP, policy_of(), now=JUNE)
    (pinot,) = asked.engine_queries(["pinot"])
    assert [each.dialect for each in asked.engine_queries(["duckdb", "pinot"])] == ["duckdb", "pinot"]
    assert asked.engine_queries(["pinot"])[0] is pinot


def test_a_question_is_quick_once_one_like_it_was_small() -> None:
    """Until then, and where a domain is large or the policy another one, it is resolved off the event loop."""
    cache, policy = QuestionCache(), policy_of()
    with_condition = structured_question("reading", "article", k=5, where={"article": NotIn(["a"])})
    assert not cache.is_quick(with_condition, policy)
    cache.resolve(TOP, policy, now=JUNE)
    assert cache.is_quick(with_condition, policy)
    others = [
        sql_question(SQL),
        structured_question("reading", "article", k=6),
        structured_question("reading", "article", k=5, where={"article": NotIn(["a" * 3000])}),
        structured_question("reading", "article", k=5, where="flag"),
    ]
    assert not any(cache.is_quick(each, policy) for each in others)
    assert not cache.is_quick(with_condition, policy_of())
    large = policy_of(elements=MAX_ELEMENTS + 1)
    over_domain = structured_question("reading", "many", k=5)
    cache.resolve(over_domain, large, now=JUNE)
    assert not cache.is_quick(over_domain, large)
