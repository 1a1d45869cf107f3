"""Days between two columns of a row: on DuckDB, Spark's text and Pinot's planner what Python counts."""

from __future__ import annotations

import datetime
from collections import Counter

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution
from tests.support.examples import examples
from tests.support.queries.day_differences import DAYS, NULL, Order, arrow_table, counted, resolved

EDGES = [
    datetime.date.fromisoformat(each) for each in ("0001-01-01", "2024-02-28", "2024-03-01", "9999-12-31")
]
DAY = st.sampled_from([None, NULL, *EDGES]) | st.dates(datetime.date(2024, 2, 20), datetime.date(2024, 3, 10))


def answered(rows: list[Order], resolution: Resolution) -> dict[int, int]:
    """Return what DuckDB counts, beside rows with infinite days."""
    with duckdb.connect() as database:
        database.register("given", arrow_table(rows))
        database.execute("CREATE TABLE orders AS SELECT * FROM given")
        database.execute(
            "INSERT INTO orders VALUES ('eve', 'infinity', '-infinity'), ('eve', '2024-01-01', 'infinity')"
        )
        return dict(database.execute(render(resolution, "duckdb")).fetchall())


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.builds(Order, st.sampled_from(["ada", "bob", "cyd"]), DAY, DAY), max_size=12))
def test_days_between_two_days_are_pythons_and_of_a_row_alone(rows: list[Order]) -> None:
    """A member changes its own bins, no more than the query leaves it, each by one; a bin is in the domain."""
    assert answered(rows, resolved()) == counted(rows)
    bounded = resolved(delta_0=1)
    whole, without = (
        Counter(answered(given, bounded)) for given in (rows, [row for row in rows if row.customer != "ada"])
    )
    changes = {each: whole[each] - without[each] for each in {*whole, *without}}
    assert sorted(filter(None, changes.values())) in ([], [1])
    assert {(each,) for each in whole} <= set(bounded.parameters.domain or ())


def test_a_plan_carries_it_and_an_answer_says_it() -> None:
    """The edges in whole days, and which column is counted from."""
    query = resolved().query
    adapter = TypeAdapter(CanonicalQuery)
    assert adapter.validate_json(adapter.dump_json(query)) == query
    assert str(query.dimensions[0]) == "the days from ordered to sent"
    assert (
        len({bytes(resolved(each).query.dimensions[0]) for each in (DAYS, DAYS.replace("7, 2", "6.5, 2"))})
        == 1
    )
    turned = DAYS.replace("ordered, sent", "sent, ordered")
    assert bytes(resolved(turned).query.dimensions[0]) != bytes(query.dimensions[0])


def test_each_engine_has_its_own_words() -> None:
    """Pinot stores days as numbers."""
    texts = {dialect: render(resolved(), dialect) for dialect in ("duckdb", "spark", "pinot")}
    assert 'date_diff(\'day\', "ordered", "sent") < 4' in texts["duckdb"]
    assert "datediff(`sent`, `ordered`) < 4" in texts["spark"]
    assert '("sent" - "ordered") < 4' in texts["pinot"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (DAYS.replace("'day'", "'month'"), "expected DATE_DIFF"),
        (DAYS.replace("sent", "city"), "two columns of days"),
        (DAYS.replace(", ordered", ""), "expected DATE_DIFF"),
    ],
)
def test_what_it_is_not_of_is_refused(function: str, message: str) -> None:
    """By its place, with what to write instead."""
    with pytest.raises(QuestionError, match=message):
        resolved(function)


def test_a_promise_of_elements_of_columns_bounds_none_of_it() -> None:
    """As of bins."""
    with pytest.raises(RefusedByPolicyError, match="bound: assumed"):
        resolved(bound="assumed")
