"""Rendered queries, run: DuckDB answers what the question means, and no literal is more than a literal."""

import datetime
import re
from collections.abc import Callable, Iterator

import duckdb
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, Like, column_filters
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.text_functions import Piece
from tests.support.examples import examples
from tests.support.queries.duckdb_rows import store
from tests.support.queries.policies import POLICY
from tests.support.queries.reference import Row, answer
from tests.support.queries.sql_reader import PATTERNS, parsed
from tests.support.queries.strategies import NOW, TEXTS, policies, questions_and_totals, rows

Run = Callable[[list[Row], str], list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Give a function that runs SQL over rows in DuckDB."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)"
        )

        def over(table: list[Row], sql: str) -> list[tuple[object, ...]]:
            store(connection, "t", table)
            return connection.execute(sql).fetchall()

        yield over


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(policy=policies(), query=questions_and_totals(), table=rows())
def test_duckdb_answers_what_the_question_means(
    run: Run,
    policy: Policy,
    query: HistogramQuery,
    table: list[Row],
) -> None:
    """The rendered query returns exactly the rows, order and types of the plain reading, NULLs and all."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except (QuestionError, RefusedByPolicyError):
        assume(False)
    expected, actual = answer(query, policy, table, now=NOW), run(table, render(resolution, "duckdb"))
    assert expected == actual
    assert [list(map(type, row)) for row in expected] == [list(map(type, row)) for row in actual]


def is_text(node: exp.Expr) -> bool:
    """Return whether a node is a literal, or joined of some."""
    return isinstance(node, exp.Literal) or (
        isinstance(node, exp.Concat) and all(map(is_text, node.expressions))
    )


def joined(node: exp.Expr) -> str:
    """Return the text that is joined of literals."""
    return "".join(map(joined, node.expressions)) if isinstance(node, exp.Concat) else str(node.this)


@pytest.mark.slow
@given(policy=policies(), query=questions_and_totals())
def test_a_rendered_query_is_one_statement_with_the_questions_literals(
    policy: Policy, query: HistogramQuery
) -> None:
    """Whatever the literals hold, a parser finds one SELECT that ends in its limit, and texts that were asked for."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except (QuestionError, RefusedByPolicyError):
        assume(False)
    for dialect in DIALECTS:
        *options, select = parsed(render(resolution, dialect), dialect)
        assert isinstance(select, exp.Select)
        assert all(isinstance(option, exp.Set) for option in options)
        # What expressions are is read in test_round_trips.
        texts = {
            literal.this
            for literal in select.find_all(exp.Literal)
            if literal.is_string
            and not isinstance(literal.parent, PATTERNS)
            and not (isinstance(literal.parent, exp.Concat) and is_text(literal.parent))
        }
        # Pinot reads two quotes side by side as one, so such a text is joined of others.
        whole = (each for each in select.find_all(exp.Concat) if not isinstance(each.parent, exp.Concat))
        texts |= {joined(each) for each in whole if is_text(each)}
        stated = (*query.filters, *(each for one in query.functions for each in one.conditions))
        leaves = (each for condition in stated for each in column_filters(condition))
        asked = {re.sub(r"\\(.)", r"\1", each.pattern) for each in leaves if isinstance(each, Like)}
        parts = [each.function for each in query.dimensions if isinstance(each, PartOfText)]
        asked |= {each.separator for each in parts if isinstance(each, Piece)}
        assert {text for text in texts if not re.fullmatch(r"\d{4}-\d\d-\d\d", text)} <= {
            *TEXTS,
            *asked,
            "UTF-8",
        }
        assert re.search(r" LIMIT \d+\Z", render(resolution, dialect))


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40))
@example("x' OR 'a'='a")
@example("\\' OR 1=1 --")
@example("a OPTION(serverReturnFinalResult=true)")
@example("'; SET numGroupsLimit=1; --")
@example("line\r\nbreak\u2028\x85\x1a")
def test_any_text_goes_through_unchanged(run: Run, text: str) -> None:
    """From SQL to the structured form, and from there to an engine, a text stays the same text."""
    quoted = text.replace("'", "''")
    head, tail = "SELECT score, COUNT(*) FROM engagement WHERE article_id =", "GROUP BY score LIMIT 1"
    query = parse_sql(f"{head} '{quoted}' {tail}", POLICY)
    assert query.filters == (In("article_id", (text,)),)
    assume(text != "null")
    sql = render(resolve(query, POLICY, now=0), "duckdb")
    literal = re.search(r"\"article_id\" = ('(?:[^']|'')*')", sql)
    assert literal is not None
    assert run([], f"SELECT {literal[1]}") == [(text,)]


ODD_ROWS = """
    (1, 'a', DATE '2019-01-01'), (2, 'a', 'infinity'::DATE), (3, 'a', '-infinity'::DATE), (4, 'a', DATE '20000-01-01'),
    (5, repeat('x', 1025), DATE '2019-01-01'), (6, repeat('y', 1024), DATE '2019-01-02')
"""
ODD_POLICY = """
epsilon_per: 1
delta: 1e-2
tables:
  odd:
    member: m
    measures: {distinct_members: true}
    columns:
      name: {type: string, group_by: true, delta: 1}
      day: {type: date, group_by: true, delta: 1}
      kept: {type: date, group_by: true, delta: 1, nulls: keep, null_value: 1970-01-01}
"""


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        ("day", [(datetime.date(2019, 1, 1), 2), (datetime.date(2019, 1, 2), 1)]),
        ("kept", [(datetime.date(2019, 1, 1), 2), (datetime.date(2019, 1, 2), 1)]),
        ("name", [("a", 4), ("y" * 1024, 1)]),
    ],
)
def test_a_row_that_no_answer_can_carry_is_left_out(dimension: str, expected: list[object]) -> None:
    """An infinite or far day, or a text without end, does not decide whether there is an answer."""
    query = HistogramQuery("odd", (dimension,), Measure.DISTINCT_MEMBERS)
    sql = render(resolve(query, parse_policy(ODD_POLICY), now=0), "duckdb")
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE odd AS SELECT m, name, day, day AS kept FROM (VALUES {ODD_ROWS}) t(m, name, day)"  # noqa: S608
        )
        assert connection.execute(sql).fetchall() == expected
