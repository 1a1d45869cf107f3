"""Distinct values of another column: one release for SQL and arguments, with noise for what a member keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import pytest

from pinot_connector import Measure, PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import InvalidQuestion, RefusedByPolicy
from tests.support.clients import own_client
from tests.support.embedded import embedded
from tests.support.rings import needs
from tests.support.slight_noise import is_near

_TABLE = """{member: member, time: {column: day, type: date, buckets: {month: 2}},
    contributions: {bound: in_query, units: 40000NAMES},
    measures: {distinct_members: true, distinct: {article: 3}},
    columns: {article: {type: string}, shop: {type: string, group_by: true, typical: 2},
              day: {type: date, filter: [range]}}}"""
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  one: {_TABLE.replace("NAMES", "")}
  two: {_TABLE.replace("NAMES", ", longest_list: 9")}
"""
_JANUARY_AND_FEBRUARY = (date(2024, 1, 1), date(2024, 3, 1))
# Three members have the same three articles, as many as each may keep.
ROWS = """
SELECT 'm' || i AS member, 'a' || (i // 3 * 3 + j) AS article, 's' || i % 4 AS shop,
  DATE '2024-01-01' + (i % 60)::INTEGER AS day
FROM range(1200) AS _(i), range(3) AS __(j)
"""


@pytest.fixture(scope="module")
@needs("process")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServices]:
    """Both services under the policy."""
    with embedded(tmp_path_factory.mktemp("distinct"), POLICY) as found:
        yield found


@pytest.fixture
def client(services: EmbeddedServices, tmp_path: Path) -> Iterator[PrivateClient]:
    """A client with an account of its own."""
    path = tmp_path / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS}) TO '{path}' (FORMAT parquet)")
    with own_client(services, dict.fromkeys(("one", "two"), path)) as found:
        yield found


def test_a_count_is_of_the_values_that_there_are(client: PrivateClient) -> None:
    """Nobody has more than it keeps, so counts are the true ones but for noise; SQL asks for the same release."""
    total = client.total("one", measure="distinct:article")
    (row,) = total.rows
    assert row.noisy_count is not None
    assert is_near(row.noisy_count, 1200)
    assert row.interval == (row.noisy_count - 1,)
    again = client.sql("SELECT DISTINCTCOUNT(article) AS articles FROM one")
    assert (again.release_id, again.charged.information) == (total.release_id, 0)
    (said,) = (each for each in total.statements if each.code == "counts.distinct")
    assert (said.column, said.values) == ("article", ("3",))
    assert "distinct values of article, among at most 3 of each member, and so are" in said.text


@pytest.mark.parametrize("table", ["one", "two"])
def test_lists_series_and_looks_count_values(client: PrivateClient, table: str) -> None:
    """By a column of an unknown domain, in one look and in two, and by buckets of time."""
    result = client.histogram(table, "shop", measure="distinct:article")
    assert {row.element for row in result.rows} == {(f"s{i}",) for i in range(4)}
    assert all(is_near(row.noisy_count, 900) for row in result.rows)
    month = "DATE_TRUNC('month', day)"
    months = client.histogram(table, month, measure="distinct:article", time_range=_JANUARY_AND_FEBRUARY)
    january, february = (
        {f"a{i // 3 * 3 + j}" for i in range(1200) for j in range(3) if i % 60 in days}
        for days in (range(31), range(31, 60))
    )
    assert [row.element for row in months.rows] == [(date(2024, 1, 1),), (date(2024, 2, 1),)]
    assert is_near(months.rows[0].noisy_count, len(january))
    assert is_near(months.rows[1].noisy_count, len(february))


def test_the_catalogue_says_what_can_be_counted(client: PrivateClient) -> None:
    """As arguments and SQL have it, with how many values of a member count."""
    members, values = client.catalog().tables[0].measures
    assert (values.measure, values.text, values.tau, values.clipped) == (
        Measure.DISTINCT_VALUES,
        "distinct:article",
        3,
        True,
    )
    assert [each.in_sql("member") for each in (members, values)] == [
        "COUNT(DISTINCT member)",
        "COUNT(DISTINCT article)",
    ]


def test_what_is_not_offered_is_refused(client: PrivateClient) -> None:
    """Another column, one that is grouped by, and sums, quantiles or a measure without a column."""
    with pytest.raises(
        RefusedByPolicy, match=r"does not offer COUNT\(DISTINCT shop\).*COUNT\(DISTINCT article\)"
    ):
        client.total("one", measure="distinct:shop")
    with pytest.raises(RefusedByPolicy, match="lists no column"):
        client.total("one", measure="distinct:articel")
    with pytest.raises(RefusedByPolicy, match="lists no values"):
        client.sql("SELECT COUNT(DISTINCT article), SUM(day) FROM one")
    with pytest.raises(InvalidQuestion, match="expected a column with MEASURE_DISTINCT_VALUES"):
        client.total("one", measure=Measure.DISTINCT_VALUES)
