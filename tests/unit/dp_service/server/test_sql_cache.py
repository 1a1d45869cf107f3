"""A text is parsed once under a policy, and never understood by another policy than that of now."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy, read_policy
from dp_service.server.sql_cache import MAX_TEXTS, ParsedSqlCache
from tests.support.some import some

SQL = "SELECT article, COUNT(DISTINCT member_id) FROM reading GROUP BY article ORDER BY 2 DESC LIMIT {}"


def policy_of(table: str) -> Policy:
    """Returns a policy of one table."""
    text = f"""
epsilon_per: 0.15
delta: 1e-10
tables:
  {table}:
    member: member_id
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article: {{type: string, group_by: true}}
"""
    return read_policy(text.encode(), "policy").policy


def test_a_text_is_parsed_once_and_another_one_is_another_question() -> None:
    """Also by several threads at once."""
    cache, policy = ParsedSqlCache(), policy_of("reading")
    first = cache.question(SQL.format(5), policy)
    with ThreadPoolExecutor(4) as threads:
        again = list(threads.map(lambda k: cache.question(SQL.format(k), policy), [5, 6] * 20))
    assert all(each is first for each in some(again[::2]))
    assert {6} == {each.k for each in again[1::2]}


def test_another_policy_reads_a_text_anew() -> None:
    """What it does not list is refused, though the text was understood before; and the other way round."""
    cache, before, now = ParsedSqlCache(), policy_of("reading"), policy_of("another")
    assert cache.question(SQL.format(5), before).dimensions == ("article",)
    for _ in range(2):
        with pytest.raises(RefusedByPolicyError):
            cache.question(SQL.format(5), now)
    assert cache.question(SQL.format(5), before).dimensions == ("article",)


@pytest.mark.slow
def test_the_oldest_texts_are_forgotten_and_refusals_are_not_kept() -> None:
    """Texts that strangers send take bounded memory."""
    cache, policy = ParsedSqlCache(), policy_of("reading")
    first = cache.question(SQL.format(1), policy)
    for k in range(2, MAX_TEXTS + 1):
        cache.question(SQL.format(k), policy)
    for _ in range(3):
        with pytest.raises(QuestionError):
            cache.question("SELECT nothing", policy)
    assert cache.question(SQL.format(1), policy) is first
    cache.question(SQL.format(MAX_TEXTS + 1), policy)
    cache.question(SQL.format(MAX_TEXTS + 2), policy)
    assert cache.question(SQL.format(2), policy) is not None
    assert cache.question(SQL.format(1), policy) is first
    for k in range(1000, 1000 + MAX_TEXTS):
        cache.question(SQL.format(k), policy)
    assert cache.question(SQL.format(1), policy) is not first
