"""Bins of numbers and parts of texts on a real DuckDB: what Python makes of each value."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.functions.bins import Binned
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import expressions, render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from tests.support.queries.row_functions import EDGES, FUNCTIONS, arrow_table, expected, resolved

LISTED = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    {more}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: {tau_is}}}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, filter: [in], domain: [AT, At, DE]{delta}}}
      free: {{type: string, group_by: true{delta}}}
      hour: {{type: int64, group_by: true, filter: [in, range], domain: [0, 5, 11, 12, 23]}}
"""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the rows."""
    with duckdb.connect() as found:
        found.register("t", arrow_table())
        yield found


def counts(database: duckdb.DuckDBPyConnection, resolution: Resolution) -> dict[object, int]:
    """Return the count of each element; where counts are shifted, a column of first counts stands behind it."""
    return {value: count for value, count, *_ in database.execute(render(resolution, "duckdb")).fetchall()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_a_row_are_those_of_python(database: duckdb.DuckDBPyConnection, function: str) -> None:
    """Also of infinities and NaN, at the ends of 64 bits, of other letters than A to Z, and where nothing is found."""
    resolution = resolved(function)
    found = counts(database, resolution)
    assert found == expected(function)
    if resolution.parameters.domain is not None:
        assert {(each,) for each in found} <= set(resolution.parameters.domain)


def test_an_edge_that_is_in_the_bin_below_it_is_found(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5.0 is in the bin that begins there."""
    real = expressions.row_function
    wrong = lambda *given: real(*given).replace("BIGINT) < ", "BIGINT) <= ")  # noqa: E731
    monkeypatch.setattr(expressions, "row_function", wrong)
    function = next(iter(EDGES))
    assert counts(database, resolved(function)) != expected(function)


@pytest.mark.parametrize("function", ["WIDTH_BUCKET(whole, 0, 20, 4)"])
def test_a_query_without_another_one_inside_has_pinots_own_integers(function: str) -> None:
    """Pinot 0.11 reads no BIGINT."""
    cells = "{type: int64, grid: {scale: linear, from: 0, to: 20, cells: 10}}"
    policy = parse_policy(
        LISTED.format(more="", tau_is="clipped", delta=", delta: 2") + f"    values: {{whole: {cells}}}\n"
    )
    sql = f"SELECT {function}, COUNT(DISTINCT member) FROM t GROUP BY 1"  # noqa: S608 - the test's own
    query = render(resolve(parse_sql(sql, policy), policy, now=0), "pinot")
    assert "AS LONG)" in query
    assert "BIGINT" not in query


def asked(
    function: str, more: str = "", *, tau_is: str = "clipped", count: str = "COUNT(DISTINCT member)"
) -> object:
    """Return the domain and the Delta of a question by a function."""
    policy = parse_policy(LISTED.format(more=more, tau_is=tau_is, delta="" if more else ", delta: 2"))
    sql = f"SELECT {function}, {count} FROM t GROUP BY ALL"  # noqa: S608 - the test's own
    parameters = resolve(parse_sql(sql, policy), policy, now=0).parameters
    return parameters.domain, parameters.delta_l0


def test_a_part_of_a_text_has_the_domain_and_at_most_the_delta_of_its_column() -> None:
    """Two listed texts become one; of an unknown domain nothing is known but the Delta."""
    assert asked("LOWER(text)") == ((("at",), ("de",)), 2)
    assert asked("LEFT(text, 1)") == ((("A",), ("D",)), 2)
    assert asked("LEFT(text, 1), SPLIT_PART(free, '@', 2)") == (None, 4)
    assert asked("FLOOR(hour / 12) * 12") == (((0,), (12,)), 2)


@pytest.mark.parametrize("function", ["LOWER(free)", "FLOOR(hour / 12)"])
def test_what_is_promised_of_a_column_is_not_promised_of_its_functions(function: str) -> None:
    """Bounds that a copy has, or that are assumed, and tau are of the column's own values."""
    with pytest.raises(RefusedByPolicyError, match="parts of texts are not offered"):
        asked(function, "contributions: {bound: assumed, delta: 2, units: 10}")
    with pytest.raises(RefusedByPolicyError, match="assumes how many"):
        asked(function, tau_is="assumed", count="COUNT(*)")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("LOWER(hour)", "a part of a column of texts"),
        ("LEFT(free, 0)", "1 to 100 characters"),
        ("SUBSTR(free, 2, 1)", "expected LEFT"),
        ("SPLIT_PART(free, '::', 2)", "one ASCII character"),
        ("SPLIT_PART(free, '@', 0)", "a piece from 1 to 10"),
        ("FLOOR(hour / 0)", "a width above 0"),
        ("FLOOR(hour / 2) * 3", "is the one behind /"),
        ("FLOOR(free / 2)", "bounds in the policy's values"),
    ],
)
def test_other_forms_are_refused_with_what_to_write(function: str, message: str) -> None:
    """By what is wrong with them."""
    with pytest.raises(QuestionError, match=message):
        asked(function)


def test_a_time_that_stands_for_null_has_no_parts() -> None:
    """Pinot stores 1970-01-01T00:00Z where a time is missing: its hour is not 0, nor any other."""
    policy = parse_policy("""
epsilon_per: 1
delta: 1e-6
tables:
  t:
    member: member
    time: {column: at, type: timestamp, zone: UTC, parts: [hour]}
    measures: {distinct_members: true}
    columns:
      member: {type: string}
      text: {type: string, filter: [in]}
""")
    sql = "SELECT COUNT(DISTINCT member) FROM t WHERE EXTRACT(HOUR FROM at) < 2 OR text = 'a'"
    rendered = render(resolve(parse_sql(sql, policy), policy, now=0), "pinot")
    assert " <> 0 AND hour(" in rendered


def test_bins_have_ascending_edges() -> None:
    """And not too many of them."""
    with pytest.raises(QuestionError, match="1 to 100 edges"):
        Binned("x", (), (1,))
