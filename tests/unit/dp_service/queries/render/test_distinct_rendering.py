"""Queries for distinct values: DuckDB answers what the pure reference does, and every engine is asked so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import DistinctValues
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, QuestionError
from dp_service.queries.lookups import hash_of
from dp_service.queries.policy import Policy, parse_policy, read_policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.render.member_bounds import first_elements_of, min_count_of
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from tests.support.examples import examples
from tests.support.queries.duckdb_rows import store
from tests.support.queries.reference import Row, distinct_answer
from tests.support.queries.strategies import NOW, offering, policies, questions, rows
from tests.support.typical import typically

ALL = parse_policy("""
epsilon_per: 1
delta: 1e-2
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {bound: in_query, units: 4}
    measures: {distinct_members: true, distinct: {text: 2, number: 3, day: 5}}
    columns:
      text: {type: string, group_by: true, typical: 2, filter: [in, not_in]}
      number: {type: int64, group_by: true, typical: 2, filter: [range]}
      flag: {type: bool, group_by: true, typical: 2}
      day: {type: date, group_by: true, typical: 2}
""")


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the small table."""
    with duckdb.connect() as found:
        found.execute("CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)")
        yield found


def asked(sql: str) -> Resolution:
    """Return what a text asks of the table."""
    return resolve(parse_sql(sql, ALL), ALL, now=NOW)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(
    policy=policies(),
    query=questions().map(lambda query: replace(query, filters=query.filters[:1])),
    table=rows(),
    offers=st.tuples(
        st.permutations(["text", "number", "day", "flag"]),
        *(st.integers(1, most) for most in (3, 3, 2)),
    ),
)
def test_duckdb_counts_the_values_that_members_of_the_reference_keep(
    connection: duckdb.DuckDBPyConnection,
    policy: Policy,
    query: HistogramQuery,
    table: list[Row],
    offers: tuple[list[str], int, int, int],
) -> None:
    """Filters act first, NULL is no value, and each member keeps values by a hash of its own in each element."""
    column = next(each for each in offers[0] if each not in query.dimensions)
    offered, counting = offering(policy, column, *offers[1:]), replace(query, measure=DistinctValues(column))
    try:
        resolution = resolve(counting, offered, now=NOW)
    except QuestionError:
        assume(False)
    store(connection, "t", table)
    found = connection.execute(render(resolution, "duckdb")).fetchall()
    bound, least = first_elements_of(resolution), min_count_of(resolution) or 0
    assert found == distinct_answer(counting, offered, table, bound, least=least, now=NOW)


def test_members_with_many_elements_keep_their_first_ones(connection: duckdb.DuckDBPyConnection) -> None:
    """Of thirty days a member keeps two, by the salted hash of member and day, and others keep other days."""
    table = [
        Row(f"m{member}", "abc"[(member + day) % 3], member, True, date(2024, 2, 1 + day))
        for member in range(12)
        for day in range(0, 29, 1 + member % 3)
    ]
    query = HistogramQuery("t", ("day",), DistinctValues("text"), k=3)
    resolution = resolve(query, ALL, now=NOW)
    store(connection, "t", table)
    bound = first_elements_of(resolution)
    assert bound is not None
    assert bound.typical == 2
    wanted = distinct_answer(query, ALL, table, bound, least=min_count_of(resolution) or 0, now=NOW)
    assert 2 < len(wanted) < 29
    assert connection.execute(render(resolution, "duckdb")).fetchall() == wanted


def _rows(*values: tuple[str, str | None, int]) -> list[Row]:
    return [Row(member, text, number, True, None) for member, text, number in values]


MANY = _rows(*((f"m{member}", f"v{value}", value) for member in range(40) for value in range(12)))


@pytest.mark.parametrize(
    ("where", "held", "least", "most"),
    [
        # Forty members with the same twelve values: all are kept by someone, unless all keep the same two.
        ("", MANY, 12, 12),
        # Values that the filter leaves out take nobody's place.
        ("WHERE number >= 10", MANY[:12], 2, 2),
        # One member keeps two of them, whatever it has.
        ("", MANY[:12], 2, 2),
        # Members that have one value each do not share their places.
        ("", _rows(*((f"m{i}", f"v{i}", i) for i in range(30))), 30, 30),
        # NULL, and what stands for it, is no value.
        ("", _rows(("a", None, 1), ("b", "null", 2), ("c", "x", 3)), 1, 1),
    ],
)
def test_values_count_as_members_keep_them(
    connection: duckdb.DuckDBPyConnection, where: str, held: list[Row], least: int, most: int
) -> None:
    """A total and an element count alike."""
    store(connection, "t", held)
    for asks in (
        "SELECT COUNT(DISTINCT text) FROM t",
        "SELECT flag, COUNT(DISTINCT text) FROM t GROUP BY flag",
    ):
        sql = asks.replace("FROM t", f"FROM t {where}")
        ((*_, count),) = connection.execute(render(asked(sql), "duckdb")).fetchall()
        assert least <= count <= most


def test_values_take_no_places_of_elements(connection: duckdb.DuckDBPyConnection) -> None:
    """A member with twelve values in each of three elements counts in two of them, with two values in each."""
    store(connection, "t", [row._replace(day=date(2024, 1, day)) for row in MANY[:12] for day in (1, 2, 3)])
    query = HistogramQuery("t", ("day",), DistinctValues("text"))
    found = connection.execute(render(resolve(query, ALL, now=NOW), "duckdb")).fetchall()
    assert [count for _, count in found] == [2, 2]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT {}) FROM t",
        "SELECT DISTINCTCOUNT({}) FROM t",
        "SELECT APPROX_COUNT_DISTINCT({}) AS n FROM t WHERE 1 = 1",
        "SELECT DISTINCTCOUNTHLL({}) FROM t WHERE {} IS NOT NULL",
    ],
)
def test_every_name_of_the_number_is_one_question(sql: str) -> None:
    """They have the fingerprint of the structured form, and another column, or another bound, has another."""
    names = {
        name: resolve(HistogramQuery("t", (), DistinctValues(name)), ALL, now=NOW).query
        for name in ("text", "day")
    }
    assert canonical_bytes(asked(sql.format("text", "text")).query) == canonical_bytes(names["text"])
    assert canonical_bytes(names["text"]) != canonical_bytes(names["day"])
    other = offering(ALL, "text", 3, 2, 1)
    found = resolve(HistogramQuery("t", (), DistinctValues("text")), other, now=NOW).query
    assert canonical_bytes(found) != canonical_bytes(names["text"])


def test_pinot_needs_its_engine_for_queries_inside_others() -> None:
    """So a cluster without it refuses by name, a total too."""
    for asks in (
        "SELECT COUNT(DISTINCT text) FROM t",
        "SELECT flag, COUNT(DISTINCT text) FROM t GROUP BY flag",
    ):
        assert required_features(asked(asks), "pinot") == (Feature.PINOT_MULTISTAGE,)
        assert required_features(asked(asks), "spark") == ()


REFUSED: dict[str, Any] = {
    "SELECT COUNT(DISTINCT flag) FROM t": r"COUNT\(DISTINCT day\), COUNT\(DISTINCT number\), COUNT\(DISTINCT text\)",
    "SELECT COUNT(DISTINCT text), COUNT(*) FROM t": "a second count is not accepted",
    "SELECT COUNT(DISTINCT text), COUNT(DISTINCT member) FROM t": "a second count is not accepted",
    "SELECT text, COUNT(DISTINCT text) FROM t GROUP BY text": "a column other than those to group by",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_has_no_answer_is_refused_with_what_to_write(sql: str) -> None:
    """Numbers beside it are questions of their own."""
    with pytest.raises(QuestionError, match=REFUSED[sql]):
        asked(sql)


FAULTS = {
    "member": ("member: 2", "expected another column than the member column"),
    "not listed": ("city: 2", "expected a column of the table that the policy lists"),
    "looked up": (
        "topic: 2",
        "expected a column of the table that the policy lists, and that is not looked up",
    ),
    "a truth value": ("flag: 2", "expected a column of type string, int64, date"),
    "none": ("text: 0", "expected a number greater than 0"),
    "too many": ("text: 2000000", "expected a number less than or equal to 1000000"),
    "more than noise can hide": ("text: 1000000", "contributions.units: expected more"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_policy_names_columns_whose_values_can_be_counted(tmp_path: Path, fault: str) -> None:
    """With how many of a member count, which decides the noise."""
    offered, expected = FAULTS[fault]
    with pytest.raises(PolicyError, match=re.escape(expected)):
        _read(tmp_path, "{bound: in_query, units: 1}", offered)


@pytest.mark.parametrize(
    "block",
    [
        "",
        "{bound: assumed, delta: 2, units: 1}",
        "{bound: prepared, delta: 2, units: 1, elements: [text, topic], period: all}",
    ],
)
def test_values_are_counted_of_members_that_the_query_bounds(tmp_path: Path, block: str) -> None:
    """A promise of elements says nothing of values, and a copy may have lost them."""
    with pytest.raises(PolicyError, match="expected contributions with bound: in_query"):
        _read(tmp_path, block, "text: 2")


def _read(folder: Path, block: str, offered: str) -> Policy:
    topics = b"number,topic\n1,one\n"
    (folder / "topics.csv").write_bytes(topics)
    lookup = f"{{column: number, file: topics.csv, hash: '{hash_of(topics)}'}}"
    text = f"""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    {f"contributions: {block}" if block else ""}
    measures: {{distinct_members: true, distinct: {{{offered}}}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true}}
      number: {{type: int64}}
      flag: {{type: bool}}
      topic: {{type: string, group_by: true, lookup: {lookup}}}
"""
    text = typically(100_000, text) if "in_query" in block else text
    return read_policy(text.encode(), str(folder / "policy.yaml")).policy
