"""Series in time and HAVING, through the real services on the example data: what is shown, and what is free.

In one table the noise is as small as it gets, so an answer can be compared with the data
(`tests.support.slight_noise`).
"""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from gris_cli.app import app
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import InvalidQuestion, RefusedByPolicy
from pinot_connector.parameters import IntervalKind, Laplace, Mechanism, Shift
from pinot_connector.questions import In
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue
from tests.support.clients import own_client
from tests.support.leaked_numbers import number_pattern
from tests.support.paths import EXAMPLES
from tests.support.slight_noise import MOST, is_near, require_near
from tests.support.some import some
from tests.support.typical import typically
from tests.support.world import new_account

DATA = EXAMPLES / "online_retail" / "purchases.parquet"
UNITS = 40_000
_TABLE = """
    member: member_id
    time: {column: day, type: date, buckets: [week, month, year]}
    BLOCK
    measures: {distinct_members: true, events: {tau: 3, tau_is: clipped}}
    columns:
      member_id: {type: string}
      country: {type: string, group_by: true, filter: [in]}
"""
BOUNDED = "contributions: {bound: in_query, units: UNITS, SUMS}"
SUMS = "sums: {max_members: 1000000, max_rows: 100000000}"
VALUES = """    values:
      quantity: {type: int64, quantum: 100, lower: 0, upper: 1000, row_lower: -1000, row_upper: 1000}
"""
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  exact: {typically(100, _TABLE).replace("BLOCK", BOUNDED.replace("UNITS", str(UNITS)).replace("SUMS", SUMS))}{VALUES}
  noisy: {typically(100, _TABLE).replace("BLOCK", BOUNDED.replace("UNITS", "1").replace(", SUMS", ""))}
  unbounded: {_TABLE.replace("BLOCK", "")}
"""
YEAR = "day >= '2010-12-01' AND day < '2011-12-01'"
MONTHS = (
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(DISTINCT member_id) AS people{} FROM {} WHERE " + YEAR
)
MONTH = "DATE_TRUNC('month', day)"
BY_MONTH = " GROUP BY DATE_TRUNC('month', day)"
TOTALS = (
    "SELECT month, COUNT(*) AS people, SUM(pieces), AVG(pieces) FROM (SELECT member_id, DATE_TRUNC('month', day) AS "
    f"month, SUM(quantity) AS pieces FROM exact WHERE {YEAR} GROUP BY member_id, month) GROUP BY month"
)


@pytest.fixture
def client(services: EmbeddedServices) -> Iterator[PrivateClient]:
    """A client with an account of its own."""
    with own_client(services, dict.fromkeys(("exact", "noisy", "unbounded"), DATA)) as client:
        yield client


def monthly() -> dict[datetime.date, tuple[int, int]]:
    """Return customers of every month of the data, and the sum of their totals as the policy rounds and bounds them."""
    totals = (
        "SELECT date_trunc('month', day)::DATE AS m, member_id, 100 * least(greatest(sum(least(greatest("
        "floor(quantity / 100 + 0.5), -10), 10)), 0), 10) AS s "
        f"FROM '{DATA}' GROUP BY ALL"
    )
    with duckdb.connect() as database:
        rows = database.execute(
            f"SELECT m, count(*), sum(s) FROM ({totals}) GROUP BY m ORDER BY m"
        ).fetchall()
    return {month: (members, int(pieces)) for month, members, pieces in rows}


def shown(result: PrivateResult) -> list[tuple[object, float | None]]:
    """Return elements and counts in their order."""
    return [
        (row.element[0] if len(row.element) == 1 else row.element, row.noisy_count) for row in result.rows
    ]


def test_a_monthly_series_is_that_of_the_data(client: PrivateClient) -> None:
    """In the order of time, with sums and averages."""
    result = client.sql(TOTALS)
    expected = [
        (month, numbers) for month, numbers in monthly().items() if month < datetime.date(2011, 12, 1)
    ]
    require_near(dict(shown(result)), {month: members for month, (members, _) in expected})
    assert [month for month, _ in shown(result)] == [month for month, _ in expected]
    assert (result.mechanism, result.cost.calls) == (Mechanism.BOUND_MOMENTS, 0)
    assert [column.title for column in result.columns] == ["month"]
    for row, (_, (members, pieces)) in zip(result.rows, expected, strict=True):
        total, average = row.values
        assert isinstance(total, AggregateValue)
        assert isinstance(average, AggregateValue)
        # Noise is in half steps of 100. The average has a count of its own, each of which brings 500 with it.
        assert is_near(total.value, pieces, 50 * MOST)
        assert is_near(average.value * members, pieces, (50 + 500) * MOST)
        assert average.interval[0] <= average.value <= average.interval[-1]


def test_a_bucket_without_rows_is_shown_too(client: PrivateClient) -> None:
    """The months before the data begin count 0: which buckets there are says nothing of the data."""
    result = client.histogram(
        "exact", MONTH, time_range=(datetime.date(2010, 10, 1), datetime.date(2011, 1, 2))
    )
    expected = {
        datetime.date(2010, 10, 1): 0,
        datetime.date(2010, 11, 1): 0,
        datetime.date(2010, 12, 1): monthly()[datetime.date(2010, 12, 1)][0],
        datetime.date(2011, 1, 1): 0,
    }
    require_near(dict(shown(result)), expected)
    assert [month for month, _ in shown(result)] == list(expected)


def test_the_order_of_a_series_and_its_length_are_free(client: PrivateClient) -> None:
    """The first months, the largest months, and months by country: one release for each set of elements."""
    first = client.sql(MONTHS.format("", "noisy") + BY_MONTH)
    assert first.charged.information == 1
    assert (first.interval_kind, len(first.rows)) == (IntervalKind.PLAIN, 12)
    few = client.sql(MONTHS.format("", "noisy") + BY_MONTH + " ORDER BY month LIMIT 3")
    assert (few.charged.information, few.interval_kind) == (0, IntervalKind.PLAIN)
    assert few.rows == first.rows[:3]
    largest = client.sql(MONTHS.format("", "noisy") + BY_MONTH + " ORDER BY people DESC LIMIT 3")
    assert (largest.charged.information, largest.interval_kind) == (0, IntervalKind.GIVEN_SHOWN)
    by_count = sorted(shown(first), key=lambda row: (-(row[1] or 0), str(row[0])))
    assert shown(largest) == by_count[:3]
    both = client.histogram(
        "noisy",
        [MONTH, "country"],
        where={"country": In(["France", "Germany"])},
        time_range=(datetime.date(2011, 1, 1), datetime.date(2011, 3, 1)),
    )
    elements = [row.element for row in both.rows]
    assert elements == sorted(elements)
    assert both.interval_kind is IntervalKind.GIVEN_SHOWN


def test_a_series_relative_to_its_total_is_one_too(client: PrivateClient) -> None:
    """Where customers may count in all months."""
    result = client.sql(MONTHS.format("", "noisy") + BY_MONTH)
    assert result.total is not None
    assert result.parameters.bounded is not None
    assert isinstance(result.parameters.bounded.looks, Shift)
    assert [row.element[0] for row in result.rows] == sorted(
        month for month in monthly() if month.year < 2012
    )[:12]
    few = client.sql(MONTHS.format("", "noisy") + BY_MONTH + " LIMIT 3")
    assert (few.charged.information, few.rows) == (0, result.rows[:3])


def test_without_a_bound_all_buckets_carry_the_noise_of_one_member_in_each(client: PrivateClient) -> None:
    """KnownLap, whose price is a unit for each of them."""
    result = client.sql(MONTHS.format("", "unbounded") + BY_MONTH)
    assert (result.mechanism, result.cost.information) == (Mechanism.KNOWN_LAP, 12)
    assert isinstance(result.parameters.kind, Laplace)
    assert result.parameters.kind.delta_l0 == 12
    assert [row.element[0] for row in result.rows] == sorted(monthly())[:12]


def test_having_leaves_out_what_was_released(client: PrivateClient) -> None:
    """It costs nothing, changes nothing of what is left but the intervals, and none of its numbers is in a result."""
    whole = client.sql(MONTHS.format(", SUM(quantity)", "exact") + BY_MONTH)
    condition = " HAVING COUNT(DISTINCT member_id) > 900 AND SUM(quantity) >= 75013"
    left = client.sql(MONTHS.format(", SUM(quantity)", "exact") + BY_MONTH + condition)
    assert (left.release_id, left.charged.information) == (whole.release_id, 0)
    assert left.interval_kind is IntervalKind.SIMULTANEOUS
    expected = []
    for row in whole.rows:
        (total,) = row.values
        assert isinstance(total, AggregateValue)
        assert row.noisy_count is not None
        if row.noisy_count > 900 and total.value >= 75_013:
            expected.append((row.element[0], row.noisy_count))
    assert 0 < len(expected) < 12
    assert shown(left) == expected
    assert not re.search(number_pattern(75_013), str(left.to_dict()))
    assert client.sql(MONTHS.format("", "exact") + BY_MONTH + " HAVING people > 100000").rows == ()


def test_having_on_an_average_of_totals_leaves_out_what_was_released(client: PrivateClient) -> None:
    """As it leaves out counts and sums."""
    whole = client.sql(TOTALS)
    left = client.sql(f"{TOTALS} HAVING COUNT(*) > 900 AND AVG(pieces) < 80")
    assert (left.release_id, left.charged.information) == (whole.release_id, 0)
    expected = []
    for row in whole.rows:
        _, average = row.values
        assert isinstance(average, AggregateValue)
        assert row.noisy_count is not None
        if row.noisy_count > 900 and average.value < 80:
            expected.append((row.element[0], row.noisy_count))
    assert 0 < len(expected) < 12
    assert shown(left) == expected


def test_intervals_of_a_filtered_list_cover_together(client: PrivateClient) -> None:
    """They are wider than those of the whole list, by the number of elements released, not by that of those left."""
    # A year of weeks has noise enough that rounding hides no difference.
    by_week = (
        (MONTHS.format("", "noisy") + BY_MONTH).replace("'month'", "'week'").replace(" AS month", " AS week")
    )
    whole = client.sql(by_week)
    (middle,) = sorted(shown(whole), key=lambda row: row[1] or 0)[6:7]
    left = client.sql(f"{by_week} HAVING people >= {middle[1]} ORDER BY people DESC LIMIT 2")
    assert left.release_id == whole.release_id
    ranked = sorted(shown(whole), key=lambda row: (-(row[1] or 0), str(row[0])))
    assert shown(left) == ranked[:2]
    every = client.sql(f"{by_week} HAVING people > -1000000")
    assert every.interval_kind is IntervalKind.SIMULTANEOUS
    widths = {row.element: row.interval for row in every.rows}
    assert [row.interval for row in left.rows] == [widths[row.element] for row in left.rows]
    ends = []
    for row in some(whole.rows):
        wide = widths[row.element]
        assert row.interval is not None
        assert wide is not None
        ends += [(wide[0], row.interval[0]), (row.interval[-1], wide[-1])]
    # Ends are whole numbers, so a few of them are the same.
    assert all(one <= other for one, other in ends)
    assert any(one < other for one, other in ends)


def test_the_catalogue_and_the_price_say_what_a_series_is(client: PrivateClient) -> None:
    """Before anything is asked."""
    time = {table.name: table.time for table in client.catalog().tables}["exact"]
    assert time is not None
    assert time.buckets == ("week", "month", "year")
    explained = client.explain(MONTHS.format("", "exact") + BY_MONTH + " HAVING people > 5")
    text = " ".join(explained.sentences)
    assert "by the month of day" in text
    assert "in ascending order of its elements" in text
    assert "cover together" in text
    assert explained.parameters.domain_size == 12


def test_a_bucket_without_an_alias_is_called_by_its_length(client: PrivateClient) -> None:
    """With a day for each."""
    result = client.sql(
        "SELECT DATE_TRUNC('YEAR', day), COUNT(DISTINCT member_id) FROM exact WHERE " + YEAR + " GROUP BY 1"
    )
    assert [column.title for column in result.columns] == ["year"]
    assert [row.element for row in result.rows] == [
        (datetime.date(2010, 1, 1),),
        (datetime.date(2011, 1, 1),),
    ]


def test_the_command_line_asks_for_a_series(services: EmbeddedServices, tmp_path: Path) -> None:
    """In the order of time, or by its largest buckets."""
    flags = [
        "ask",
        "--dp",
        services.dp_address,
        "--budget",
        services.budget_address,
        "--account",
        new_account(),
    ]
    flags += [
        "--data",
        f"noisy={DATA}",
        "--releases",
        str(tmp_path / "releases.sqlite"),
        "--json",
    ]
    year = "FROM noisy WHERE day >= '2010-12-01' AND day < '2011-12-01'"
    month = f"SELECT DATE_TRUNC('month', day), COUNT(DISTINCT member_id) {year} GROUP BY 1"
    months = [*flags, "--sql", month]
    asked = CliRunner().invoke(app, months)
    assert asked.exit_code == 0, asked.output
    assert [row["element"] for row in json.loads(asked.stdout)["rows"]][:2] == [
        ["2010-12-01"],
        ["2011-01-01"],
    ]
    ranked = CliRunner().invoke(app, [*flags, "--sql", f"{month} ORDER BY 2 DESC LIMIT 2"])
    assert json.loads(ranked.stdout)["rows"][0]["element"] == ["2011-11-01"]
    question = ["--table", "noisy", "--from", "2010-12-01", "--to", "2011-12-01", "--by", "country"]
    by_country = CliRunner().invoke(app, [*flags, *question])
    assert by_country.exit_code == 0, by_country.output


@pytest.mark.parametrize(
    ("bucket", "range_of", "error", "reason"),
    [
        (
            "DATE_TRUNC('day', day)",
            (datetime.date(2011, 1, 1), datetime.date(2011, 2, 1)),
            RefusedByPolicy,
            "buckets of a day",
        ),
        (MONTH, (datetime.date(2011, 1, 1), None), InvalidQuestion, "both ends"),
        (
            "DATE_TRUNC('month', country)",
            (datetime.date(2011, 1, 1), datetime.date(2011, 2, 1)),
            InvalidQuestion,
            "time column day",
        ),
        (
            "DATE_TRUNC('week', day)",
            (datetime.date(2, 1, 1), datetime.date(9999, 1, 1)),
            InvalidQuestion,
            "both ends|10000|years",
        ),
    ],
)
def test_what_is_no_series_is_refused_before_it_costs(
    client: PrivateClient,
    bucket: str,
    range_of: tuple[datetime.date | None, datetime.date | None] | None,
    error: type[Exception],
    reason: str,
) -> None:
    """By the name of what is wrong."""
    with pytest.raises(error, match=reason):
        client.histogram("exact", bucket, time_range=range_of)
