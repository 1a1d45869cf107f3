"""Quantiles through the real services: what is chosen, what it costs, what is free, what is refused, how it is shown.

In the first table the noise is so small that the cell of the wanted rank is always chosen, so an answer can be compared
with the pure reference.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dp_service.queries.advice import per_member
from dp_service.queries.policy import parse_policy
from dp_service.terms import MemberValue
from dp_service.values.cells import Grid
from gris_cli.app import app
from pinot_connector import PrivateClient, dbapi
from pinot_connector.coverage import Cell
from pinot_connector.dbapi.tables import described, kinds
from pinot_connector.dbapi.types import Kind
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import EngineRefused, InvalidQuestion, RefusedByPolicy
from pinot_connector.parameters import IntervalKind, Mechanism
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue, DayValue
from pinot_connector.value_parameters import GridScale
from tests.support.cells import cell_of
from tests.support.clients import own_client
from tests.support.embedded import embedded
from tests.support.paths import EXAMPLES
from tests.support.queries import quantiles
from tests.support.queries.sums import Row, odd_rows
from tests.support.some import some
from tests.support.world import new_account

_QUANTILES = """
    values:
      whole: {type: int64, grid: {scale: linear, from: -5, to: 15, cells: 20}}
      number: {type: decimal, quantum: '0.5',
               grid: {scale: geometric, from: 1, to: 200, cells: 12}}
"""
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {{bound: in_query, units: 9, sums: {{max_members: 600, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: 2}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, typical: 2, filter: [in], domain: [a, b, z]}}
      whole: {{type: int64, group_by: true, typical: 2, filter: [range]}}
    {_QUANTILES}
  days:
    member: member
    measures: {{distinct_members: true, events: {{tau: 1, tau_is: clipped}}}}
    columns: {{member: {{type: string}}}}
    values:
      day: {{type: date, grid: {{scale: dates, from: 2011-01-01, to: 2011-01-29, step: 7}}}}
  unbounded:
    member: member
    measures: {{distinct_members: true, events: {{tau: 1, tau_is: assumed}}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, domain: [a, b, z]}}
    {_QUANTILES}
  members:
    member: member
    measures: {{distinct_members: true}}
    columns: {{member: {{type: string}}}}
    {_QUANTILES}
"""
SQL = "SELECT text, MIN(whole) AS low, PERCENTILE(whole, 50), PERCENTILEEST(whole, 99.5) AS high FROM t GROUP BY text"
HALF = "SELECT PERCENTILE(whole, 50) AS half FROM t"
# Ranks are further off once in 10^8 runs.
NEARLY_SURE = 1 - 1e-8


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the rows as a Parquet file."""
    path = tmp_path_factory.mktemp("quantiles") / "t.parquet"
    columns = dict(zip(Row._fields, zip(*odd_rows(600), strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)
    return path


@pytest.fixture
def client(services: EmbeddedServices, file: Path) -> Iterator[PrivateClient]:
    """A client with an account of its own."""
    with own_client(services, {"t": file, "unbounded": file, "members": file}) as client:
        yield client


def counts(
    column: str, by: tuple[str, ...] = ("text",), of: MemberValue = MemberValue.ROWS, table: str = "t"
) -> dict[str, Counter[int]]:
    """Return how many values are in each cell of each element, by the pure reference."""
    under = parse_policy(POLICY)
    found: dict[str, Counter[int]] = {element: Counter() for element in (("a", "b", "z") if by else ("",))}
    for *element, cell, count in quantiles.reference(
        quantiles.asked(column, by=by, of=of, table=table), under, odd_rows(600)
    ):
        found["".join(map(str, element))][int(str(cell))] = int(str(count))
    return found


def grid_of(column: str) -> Grid:
    """Return the public grid."""
    return Grid.of(parse_policy(POLICY).table("t").quantile(column).spec)


def holds(cells: Counter[int], cell: int, q: Fraction, *, cut: int | None = None) -> bool:
    """Return whether a cell holds the rank q n, or is next to it by one, and half of those in the cell of a cut."""
    n, off = sum(cells.values()), 1 + (0 if cut is None else Fraction(cells[cut], 2))
    before = sum(count for other, count in cells.items() if other < cell)
    return before - off <= q * n <= before + cells[cell] + off


def cell_at(result: PrivateResult, column: str, row: int, place: int) -> int:
    """Return which cell a value is the middle of, and check that its interval is the whole cell."""
    value = result.rows[row].values[place]
    assert isinstance(value, AggregateValue)
    assert isinstance(value.interval, Cell)
    low, high = value.interval
    quantum = 1 if column == "whole" else Fraction(1, 2)
    cell = cell_of(grid_of(column), int(low / quantum))
    assert (low, high + quantum) == tuple(end * quantum for end in grid_of(column).bounds_of(cell))
    assert value.value == (low + high) / 2
    return cell


def test_quantiles_of_every_element_are_those_of_the_reference(client: PrivateClient) -> None:
    """Also of one that nobody is in; in another order they are the same question, which is paid for once."""
    result = client.sql(SQL)
    again = client.sql(
        "SELECT text, PERCENTILE(whole, 50), PERCENTILE(whole, 99.5), MIN(whole) FROM t GROUP BY text"
    )
    assert (result.mechanism, result.interval_kind) == (Mechanism.QUANTILE_GUMB, IntervalKind.NONE)
    assert [row.element for row in result.rows] == [("a",), ("b",), ("z",)]
    # Two quantiles in 2 levels and one extreme, in each of two elements of a member.
    assert (result.charged.information, result.charged.calls) == (6, 0)
    assert (again.release_id, again.charged.information) == (result.release_id, 0)
    assert [row.values[::-1] for row in again.rows] == [
        (row.values[0], row.values[2], row.values[1]) for row in result.rows
    ]
    expected = counts("whole")
    for place, element in enumerate(("a", "b")):
        assert holds(expected[element], cell_at(result, "whole", place, 1), Fraction(1, 2))
        assert holds(expected[element], cell_at(result, "whole", place, 2), Fraction(199, 200))
    assert not expected["z"]
    assert all(row.noisy_count is None for row in result.rows)
    other = client.sql("SELECT text, MEDIAN(whole) FROM t GROUP BY text")
    assert (other.charged.information, other.release_id == result.release_id) == (2, False)


@pytest.mark.parametrize(
    ("function", "of", "called"),
    [
        ("SUM", MemberValue.TOTAL, "total"),
        ("AVG", MemberValue.MEAN, "mean"),
        ("MAX", MemberValue.LARGEST, "largest"),
    ],
)
def test_a_statement_around_one_of_members_has_quantiles_of_them(
    client: PrivateClient, function: str, of: MemberValue, called: str
) -> None:
    """And never under the name of the column."""
    table = parse_policy(POLICY).table("t")
    result = client.sql(per_member(table, "MEDIAN(value)", f"{function}(number)", ("text",)))
    assert [each.title for each in result.parameters.values] == [f"{called}_number_per_member_p50"]
    assert "one value in each element" in " ".join(each.text for each in result.statements)
    expected = counts("number", of=of)
    for place, element in enumerate(("a", "b")):
        assert holds(expected[element], cell_at(result, "number", place, 0), Fraction(1, 2))


def test_rows_need_to_be_bounded_and_the_advice_is_answered(client: PrivateClient) -> None:
    """A policy that counts no rows has quantiles of one value of each member, as its refusal says."""
    with pytest.raises(RefusedByPolicy, match="are over rows") as refused:
        client.sql("SELECT MEDIAN(whole) FROM members")
    advice = re.search(r"SELECT PERCENTILE\(.+ GROUP BY member\)", str(refused.value))
    assert advice is not None
    assert client.sql(advice[0]).parameters.values[0].title == "largest_whole_per_member_p50"
    with pytest.raises(RefusedByPolicy, match="max_rows"):
        client.sql(advice[0].replace("MAX", "SUM"))


def test_quantiles_of_all_rows_need_no_bound_by_column(client: PrivateClient) -> None:
    """A member has one row here; three quartiles cost two units, whatever a member could count in by column."""
    for table in ("t", "unbounded"):
        result = client.sql(f"SELECT PERCENTILES(number, 25, 50, 75) FROM {table}")  # noqa: S608
        assert (result.cost.information, result.cost.calls) == (2, 0)
        (cells,) = counts("number", (), table=table).values()
        median = cell_at(result, "number", 0, 1)
        for place in range(3):
            assert holds(cells, cell_at(result, "number", 0, place), Fraction(place + 1, 4), cut=median)
    few = client.sql("SELECT PERCENTILE(number, 25) FROM t WHERE text = 'a'")
    assert len(few.rows) == 1


def test_quantiles_of_days_are_days(services: EmbeddedServices, tmp_path: Path) -> None:
    """The middle of a week, with its ends: in the result, JSON and frames, and of a type of days in SQL."""
    first = datetime.date(2011, 1, 1)
    days = [first + datetime.timedelta(days=10 + place % 3) for place in range(300)]
    path = tmp_path / "days.parquet"
    pq.write_table(pa.table({"member": [f"m{place}" for place in range(300)], "day": days}), path)
    with own_client(services, {"days": path}) as asking:
        result = asking.sql("SELECT PERCENTILE(day, 50) AS half FROM days")
        explained = " ".join(asking.explain("SELECT PERCENTILE(day, 50) AS half FROM days").sentences)
        (listed,) = asking.catalog("days").tables[0].quantiles
    (value,) = result.rows[0].values
    assert value is not None
    ends = Cell(datetime.date(2011, 1, 8), datetime.date(2011, 1, 14))
    assert value == DayValue(datetime.date(2011, 1, 11), ends)
    assert (listed.scale, listed.lower, listed.upper) == (GridScale.DATES, first, datetime.date(2011, 1, 28))
    assert "among 4 public cells from 2011-01-01 to 2011-01-28, of equally many days each" in explained
    stated = json.loads(json.dumps(result.to_dict()))["rows"][0]["values"][0]
    assert stated == {"value": "2011-01-11", "interval": {"cell_from": "2011-01-08", "cell_to": "2011-01-14"}}
    assert result.to_pandas().to_dict("records") == [
        {"half": value.value, "half_cell_from": ends[0], "half_cell_to": ends[1]}
    ]
    assert [kind for _, kind, *_ in described(result, intervals=False)] == [dbapi.DATETIME]
    assert [kind for _, kind in kinds(result, intervals=False)] == [Kind.DAY]


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        ("PERCENTILE(whole, 0)", InvalidQuestion, "between 0 and 100"),
        ("PERCENTILE(whole, 100)", InvalidQuestion, "between 0 and 100"),
        ("PERCENTILE(whole, 50), MEDIAN(whole)", InvalidQuestion, "each quantile once"),
        ("PERCENTILE(whole, 99.999)", InvalidQuestion, "four digits"),
        ("MEDIAN(whole), MEDIAN(number)", InvalidQuestion, "of one column"),
        ("MEDIAN(text)", RefusedByPolicy, "lists no quantiles of a column"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(
    client: PrivateClient, number: str, error: type[Exception], message: str
) -> None:
    """Quantiles that are none, the same twice, and of columns without a grid; nothing is charged."""
    with pytest.raises(error, match=message):
        client.sql(f"SELECT text, {number} FROM t GROUP BY text")  # noqa: S608
    assert client.remaining()[-1].spent.information == 0


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (SQL.replace("MIN(whole) AS low", "COUNT(DISTINCT member)"), "nothing but columns, percentiles"),
        (SQL.replace("MIN(whole) AS low", "SUM(1)"), "nothing but columns, percentiles"),
        (f"{SQL} ORDER BY COUNT(*) DESC", "counts are not released with them"),
        (f"{SQL} LIMIT 2", "LIMIT is not accepted beside percentiles"),
        (SQL.replace("99.5", "100"), "strictly between 0 and 100"),
        (SQL.replace("99.5", "50, 75"), "strictly between 0 and 100"),
        (SQL.replace(", 99.5", ""), "strictly between 0 and 100"),
        (SQL.replace("PERCENTILEEST(whole, 99.5)", "PERCENTILERAWEST(whole, 99)"), "returns a sketch"),
        (SQL.replace("PERCENTILEEST(whole, 99.5)", "PERCENTILEMV(whole, 99)"), "several values in a row"),
        (SQL.replace("PERCENTILEEST(whole, 99.5)", "PERCENTILE(whole, 0.5)"), "has two readings"),
        (SQL.replace("PERCENTILEEST(whole, 99.5)", "PERCENTILE(whole, 1.0)"), "0.01.*or MAX"),
        (SQL.replace("PERCENTILE(whole, 50)", "MIN(DISTINCT whole)"), "DISTINCT in MIN"),
        (SQL.replace("GROUP BY text", "WHERE whole > 1.5 GROUP BY text"), "other than an integer"),
        ("SELECT whole, PERCENTILE(whole, 50) FROM t GROUP BY whole", "whose domain the policy lists"),
        ("SELECT text, MAX(whole) FROM unbounded GROUP BY text", "only where the policy bounds"),
        ("SELECT MEDIAN(n) FROM (SELECT member, COUNT(*) AS n FROM t GROUP BY member)", "how many rows each"),
        (
            "SELECT MEDIAN(n) FROM (SELECT member, MIN(whole) AS n FROM t GROUP BY member)",
            "MIN of each member",
        ),
        (
            "SELECT MEDIAN(n) FROM (SELECT member, text, MAX(whole) AS n FROM t GROUP BY member, text)",
            "one member",
        ),
    ],
)
def test_sql_that_is_not_answered_is_refused_by_name(client: PrivateClient, sql: str, message: str) -> None:
    """Counts beside them, orders, cuts, percentiles that are none, other functions, and groups without a domain."""
    with pytest.raises((InvalidQuestion, RefusedByPolicy), match=message):
        client.sql(sql)


@pytest.mark.parametrize(
    "function",
    [
        "PERCENTILETDIGEST(whole, 50)",
        "percentilekll(whole, 50.0)",
        "PERCENTILE50(whole)",
        "MEDIAN(whole)",
        "quantile_cont(whole, 0.5)",
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY whole)",
    ],
)
def test_what_pinot_calls_a_percentile_is_one(client: PrivateClient, function: str) -> None:
    """Its sketches ask for the same number, which is as exact here whatever it is called."""
    first = client.sql("SELECT PERCENTILE(whole, 50) FROM t")
    again = client.sql(HALF.replace("PERCENTILE(whole, 50)", function))
    assert (again.release_id, again.charged.information) == (first.release_id, 0)
    several = client.sql("SELECT PERCENTILES(whole, 25, 50, 75) FROM t")
    assert [each.title for each in several.parameters.values] == ["whole_p25", "whole_p50", "whole_p75"]
    assert several.charged.information == 2


def test_a_column_of_another_type_than_the_policy_says_is_refused(
    services: EmbeddedServices, tmp_path: Path
) -> None:
    """Before anything is asked of the data, as for sums."""
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"member": ["a"], "text": ["b"], "whole": [1.5], "number": ["1"]}), path)
    with own_client(services, {"t": path}) as client:
        for column in ("whole", "number"):
            with pytest.raises(EngineRefused, match=f"the column {column} of the table .+ holds"):
                client.sql(f"SELECT MEDIAN({column}) FROM t")  # noqa: S608
        assert client.remaining()[-1].spent.information == 0


def test_explain_and_the_catalogue_say_price_grid_and_rank_error(client: PrivateClient) -> None:
    """Before anything is paid; the numbers are those of the result, whose confidence is the same."""
    explained, result = client.explain(SQL), client.sql(SQL)
    assert explained.worst_case_cost == result.cost
    stated = " ".join(explained.sentences)
    assert "among 20 public cells from -5 to 14, equally wide" in stated
    assert "Each of them costs 3 information." in stated
    assert "within" in stated
    assert explained.parameters.quantiles == result.parameters.quantiles
    assert result.parameters.quantiles is not None
    assert result.rank_errors == tuple(each.rank_error for each in result.parameters.quantiles.shown)
    listed = client.catalog("t").tables[0].quantiles
    assert [(each.name, each.cells) for each in listed] == [("number", 12), ("whole", 20)]


def test_the_command_line_asks_for_quantiles(services: EmbeddedServices, file: Path, tmp_path: Path) -> None:
    """`gris ask --sql` shows what the library does."""
    options = ["--dp", services.dp_address, "--budget", services.budget_address, "--data", f"t={file}"]
    flags = ["--account", new_account(), "--releases", str(tmp_path / "releases.sqlite"), "--json"]
    sql = "SELECT text, MIN(whole), PERCENTILE(whole, 50), PERCENTILE(whole, 99.5) FROM t GROUP BY text"
    question = ["--sql", sql]
    outcome = CliRunner().invoke(app, ["ask", *options, *flags, *question])
    assert outcome.exit_code == 0, outcome.output
    stated = json.loads(outcome.output)
    assert [each["function"] for each in stated["parameters"]["quantiles"]["shown"]] == [
        "min",
        "quantile",
        "quantile",
    ]
    assert [row["element"] for row in stated["rows"]] == [["a"], ["b"], ["z"]]


@pytest.mark.usefixtures("starts_processes")
def test_deciles_of_the_example_data_are_within_their_rank_errors(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Under the policy that the documentation shows: four units, nine customers' values, and their ranks."""
    folder, root = tmp_path_factory.mktemp("retail"), EXAMPLES
    data = root / "online_retail" / "purchases.parquet"
    policy = (root / "quantiles" / "policy.yaml").read_text()
    deciles = "PERCENTILES(value, 10, 20, 30, 40, 50, 60, 70, 80, 90)"
    sql = per_member(parse_policy(policy).table("online_retail_purchases"), deciles, "SUM(quantity)")
    with (
        embedded(folder, policy) as running,
        own_client(running, {"online_retail_purchases": data}, confidence=NEARLY_SURE) as client,
    ):
        result = client.sql(sql)
    assert (result.cost.information, result.cost.calls) == (4, 0)
    rows = pq.read_table(data, columns=["member_id", "quantity"]).to_pandas()
    clamped = rows.assign(quantity=rows["quantity"].clip(-10_000, 10_000))
    totals = np.sort(clamped.groupby("member_id")["quantity"].sum().clip(1, 199_999).to_numpy())
    assert totals.size == 4372
    assert result.parameters.quantiles is not None
    ends = []
    for value in some(result.rows[0].values):
        assert isinstance(value, AggregateValue)
        low, high = map(float, value.interval)
        sides = np.searchsorted(totals, low), np.searchsorted(totals, high, side="right")
        ends.append(tuple(map(int, sides)))
    for tenth, shown in some(enumerate(result.parameters.quantiles.shown, start=1)):
        wanted, (before, until) = Fraction(tenth * totals.size, 10), ends[tenth - 1]
        beside = sum(cut.part * (ends[cut.position][1] - ends[cut.position][0]) for cut in shown.cuts)
        assert max(before - wanted, wanted - until, Fraction(0)) <= result.rank_errors[tenth - 1] + beside
