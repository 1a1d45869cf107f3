"""Totals beside a list by two columns, through the real services and DuckDB: what they are, what is free, who says it.

In the first tables the noise is next to nothing, so an answer can be compared with what is added up here.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.noise.gaussian_price import DISCRETENESS
from gris_gateway.faces.mcp.results import answer_of
from pinot_connector import PrivateClient
from pinot_connector.dbapi.tables import described, kinds, row_count, tabulated, totals_described
from pinot_connector.dbapi.types import Kind
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import InvalidQuestion, RefusedByPolicy
from pinot_connector.parameters import Mechanism, TotalOf
from pinot_connector.results import PrivateResult
from tests.support.clients import own_client
from tests.support.embedded import embedded
from tests.support.paths import EXAMPLES
from tests.support.slight_noise import require_near as require_near_counts
from tests.support.some import some

_COLUMNS = """
    columns:
      member: {type: string}
      country: {type: string, group_by: true}
      article: {type: string, group_by: true}
      shop: {type: string, group_by: true}
    values:
      paid: {type: int64, lower: 0, upper: 20, row_lower: 0, row_upper: 9}
"""
_KNOWN = _COLUMNS.replace(
    "country: {type: string, group_by: true}", "country: {type: string, group_by: true, domain: [A, B, C, Z]}"
).replace(
    "article: {type: string, group_by: true}", "article: {type: string, group_by: true, domain: [p, q, r, s]}"
)
_TABLE = """
    member: member
    measures: {distinct_members: true, events: {tau: 3, tau_is: clipped}}
    contributions:
      {bound: in_query, typical: 100, units: UNITS, min_count: MIN, sums: {max_members: 1000, max_rows: 10000} TOTALS}
"""


def _table(columns: str, totals: str, *, units: int = 40_000, min_count: int = 1) -> str:
    return (
        _TABLE.replace("UNITS", str(units)).replace("MIN", str(min_count)).replace("TOTALS", totals) + columns
    )


POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  t: {_table(_COLUMNS, ", totals: {one_value: [shop]}")}
  rare: {_table(_COLUMNS, ", totals: {}", min_count=12)}
  known: {_table(_KNOWN, ", totals: {share: 1/2}, shift: true")}
  looks: {_table(_COLUMNS, ", totals: {}, names: {typical: 3, share: 1/2, max_names: 5}")}
  without: {_table(_COLUMNS, "")}
"""
TABLES = ("t", "rare", "known", "looks", "without")
SQL = (
    "SELECT country, article, COUNT(*) AS lines, SUM(paid) FROM t "
    "GROUP BY GROUPING SETS ((country, article), (country))"
)
Row = tuple[str, str, str, str, int]


def rows() -> list[Row]:
    """Return rows of members, each with one shop; few have article s."""
    chosen = random.Random(11)
    found = []
    for _ in range(500):
        member = chosen.randrange(60)
        article = chosen.choice("pqr" * 12 + "s")
        found.append(
            (f"m{member}", chosen.choice("AAAABBC"), article, f"shop{member % 3}", chosen.randrange(12))
        )
    return found


def counted(measure: str, over: str = "article") -> dict[tuple[str, str], tuple[int, int]]:
    """Return n and the sum of each country and article, or shop, as the policy counts them."""
    of_member: dict[tuple[str, str, str], list[int]] = {}
    for member, country, article, shop, paid in rows():
        other = article if over == "article" else shop
        of_member.setdefault((member, country, other), []).append(min(paid, 9))
    found: Counter[tuple[str, str]] = Counter()
    summed: Counter[tuple[str, str]] = Counter()
    for (_, country, other), each in of_member.items():
        total, n = sum(each), len(each)
        if measure == "events":
            clipped = min(n, 3)
            found[country, other] += clipped
            summed[country, other] += total if n <= 3 else (2 * total * 3 + n) // (2 * n)
        else:
            found[country, other] += 1
            summed[country, other] += min(total, 20)
    return {key: (found[key], summed[key]) for key in found}


def totals(numbers: dict[tuple[str, str], tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return what these numbers add up to by country."""
    return {
        country: (
            sum(n for (each, _), (n, _) in numbers.items() if each == country),
            sum(paid for (each, _), (_, paid) in numbers.items() if each == country),
        )
        for country in {each for each, _ in numbers}
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the rows as a Parquet file."""
    path = tmp_path_factory.mktemp("totals") / "t.parquet"
    names = ("member", "country", "article", "shop", "paid")
    pq.write_table(
        pa.table({name: list(each) for name, each in zip(names, zip(*rows(), strict=True), strict=True)}),
        path,
    )
    return path


@pytest.fixture
def client(services: EmbeddedServices, file: Path) -> Iterator[PrivateClient]:
    """A client with an account of its own."""
    # Some noise is 1 now and then, and intervals reach as far.
    with own_client(services, dict.fromkeys(TABLES, file), confidence=1 - 1e-9) as client:
        yield client


def shown_totals(result: PrivateResult) -> dict[str, tuple[int, Fraction]]:
    """Return count and sum of each total."""
    assert result.totals is not None
    return {str(each.value): (each.noisy_count, each.sums[0].value) for each in result.totals}


def require_near(
    result: PrivateResult, true: dict[str, tuple[int, int]], over: dict[str, tuple[int, int]]
) -> None:
    """Assert that totals and what is left of them are the true ones, within their intervals."""
    assert result.totals is not None
    for total in result.totals:
        (n, paid), (shown_n, shown_paid) = true[str(total.value)], over.get(str(total.value), (0, 0))
        _require_covered(Fraction(total.noisy_count), total.interval, n)
        _require_covered(Fraction(total.other_count), total.other_interval, n - shown_n)
        _require_covered(total.sums[0].value, total.sums[0].interval, paid)
        _require_covered(total.other_sums[0].value, total.other_sums[0].interval, paid - shown_paid)


def _require_covered(
    found: Fraction, interval: tuple[Fraction | int, Fraction | int], true: int, *, width: int = 400
) -> None:
    lower, upper = map(Fraction, interval)
    assert lower <= true <= upper
    assert abs(found - true) <= upper - lower <= width


@pytest.mark.parametrize(
    ("measure", "counts"),
    [("distinct_members", TotalOf.CONTRIBUTIONS), ("events", TotalOf.ROWS)],
)
def test_totals_and_what_the_rows_leave_of_them_are_those_of_the_data(
    client: PrivateClient, measure: str, counts: TotalOf
) -> None:
    """Of counts and of sums, over all rows, with intervals that have them; in one release at the price of the list."""
    result = client.top_k("t", ["country", "article"], 4, measure=measure, sums=["paid"], totals_by="country")
    numbers = counted(measure)
    over = {str(row.element[0]): (0, 0) for row in result.rows}
    for row in result.rows:
        n, paid = numbers[str(row.element[0]), str(row.element[1])]
        over[str(row.element[0])] = (over[str(row.element[0])][0] + n, over[str(row.element[0])][1] + paid)
    assert list(shown_totals(result)) == sorted(over)
    require_near(result, totals(numbers), over)
    assert (result.cost.information, result.cost.calls) == (40_000, 1)
    assert result.parameters.totals is not None
    assert (result.parameters.totals.column, result.parameters.totals.counted) == ("country", counts)
    whole = client.histogram("t", ["country", "article"], measure=measure, sums=["paid"], totals_by="country")
    assert (whole.release_id, whole.charged.information) == (result.release_id, 0)
    assert set(shown_totals(whole)) == {"A", "B", "C"}
    assert {value: shown_totals(whole)[value] for value in shown_totals(result)} == shown_totals(result)
    require_near(whole, totals(numbers), totals(numbers))


def test_totals_have_all_rows_also_those_below_the_smallest_count(client: PrivateClient) -> None:
    """A query that left them out would let one member move a total by a whole count of others."""
    result = client.histogram(
        "rare", ["country", "article"], measure="events", sums=["paid"], totals_by="country"
    )
    numbers = counted("events")
    hidden = {key for key, (n, _) in numbers.items() if n < 12}
    assert hidden & {("A", "s"), ("B", "s")}
    shown = {row.element for row in result.rows}
    assert not hidden & shown
    require_near(
        result, totals(numbers), totals({key: each for key, each in numbers.items() if key in shown})
    )


def test_totals_count_members_where_each_has_one_value_of_the_other_column(client: PrivateClient) -> None:
    """Then they cost less noise, as the policy says so; the other column's totals do not."""
    result = client.histogram("t", ["country", "shop"], sums=["paid"], totals_by="country")
    assert result.parameters.totals is not None
    assert result.parameters.totals.counted is TotalOf.MEMBERS
    of_country = {value: {row[0] for row in rows() if row[1] == value} for value in "ABC"}
    require_near_counts(
        {value: n for value, (n, _) in shown_totals(result).items()},
        {value: len(found) for value, found in of_country.items()},
    )
    others = client.histogram("t", ["shop", "country"], sums=["paid"], totals_by="shop").parameters.totals
    assert others is not None
    assert others.counted is TotalOf.CONTRIBUTIONS
    variances = [each.noise_variance - DISCRETENESS for each in (others, result.parameters.totals)]
    assert variances[0] == variances[1] * 100


def test_over_a_known_domain_all_totals_are_shown(client: PrivateClient) -> None:
    """Also of what nobody has, and of what the list leaves out altogether."""
    result = client.top_k(
        "known", ["article", "country"], 2, measure="events", sums=["paid"], totals_by="country"
    )
    assert list(shown_totals(result)) == ["A", "B", "C", "Z"]
    for each in some(result.totals or ()):
        is_whole = each.value not in [row.element[1] for row in result.rows]
        assert is_whole is (each.interval == each.other_interval)
    numbers = counted("events")
    over = {
        str(country): numbers[str(country), str(article)]
        for article, country in [row.element for row in result.rows]
    }
    if len(over) == len(result.rows):
        require_near(result, {"Z": (0, 0), **totals(numbers)}, over)
    assert result.cost.calls == 0
    assert result.parameters.totals is not None


def test_counts_alone_have_totals_as_well(client: PrivateClient) -> None:
    """They are of bounded Gaussian counts, and no query is shared with a question without totals."""
    result = client.histogram("t", ["country", "article"], measure="events", totals_by="country")
    assert result.totals is not None
    assert result.mechanism is Mechanism.BOUND_GAUSS
    expected = {value: n for value, (n, _) in totals(counted("events")).items()}
    for total in result.totals:
        assert total.interval[0] <= expected[str(total.value)] <= total.interval[1]
        assert total.sums == total.other_sums == ()
    plain = client.histogram("t", ["country", "article"], measure="events")
    assert (plain.totals, plain.release_id == result.release_id) == (None, False)


def test_sql_asks_the_same_by_grouping_sets(client: PrivateClient) -> None:
    """The release is that of the structured question, and rows of totals have NULL as SQL says."""
    asked = client.sql(SQL)
    same = client.histogram("t", ["country", "article"], measure="events", sums=["paid"], totals_by="country")
    assert (same.release_id, same.charged.information, same.totals) == (asked.release_id, 0, asked.totals)
    found = list(tabulated(asked, intervals=False))
    assert row_count(asked) == len(found) == len(asked.rows) + 3
    assert [each[6] for each in described(asked, intervals=False)] == [False, True, False, False]
    of_columns = [Kind.TEXT, Kind.TEXT, Kind.WHOLE, Kind.REAL]
    assert [kind for _, kind in kinds(replace(asked, rows=()), intervals=False)] == of_columns
    assert asked.totals is not None
    assert [(row[:3], row[3]) for row in found[-3:]] == [
        ((each.value, None, each.noisy_count), float(each.sums[0].value)) for each in asked.totals
    ]
    assert [each[0] for each in totals_described(asked, intervals=False)] == [
        "country",
        "lines",
        "sum_paid_of_rows",
        "other_lines",
        "other_sum_paid_of_rows",
    ]


def test_totals_are_said_before_and_an_agent_may_be_shown_fewer(client: PrivateClient) -> None:
    """By what explains a question, and by the catalogue."""
    explained = "\n".join(client.explain(SQL).sentences)
    assert "totals by country, of the values that an element of the list has" in explained
    result = client.sql(SQL)
    assert result.totals is not None
    answer = answer_of(result)
    assert (answer.totals_by, answer.totals_count) == ("country", "rows")
    assert [len(result.totals) - most for most in (1, 2)] == [
        answer_of(result, most).totals_left_out for most in (1, 2)
    ]
    entry = next(table for table in client.catalog().tables if table.name == "t")
    assert entry.contributions is not None
    assert (entry.contributions.totals_share, entry.contributions.one_value) == (Fraction(1, 4), ("shop",))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"by": ["country", "article", "shop"], "totals_by": "country"}, "exactly two columns"),
        ({"by": ["country"], "totals_by": "country"}, "exactly two columns"),
        ({"totals_by": "shop"}, "exactly two columns"),
        ({"totals_by": ""}, "name of a column"),
        ({"averages": ["paid"]}, "averages"),
        ({"sums": ["paid"], "order_by": "sum:paid"}, "order of its counts"),
        ({"having": "count >= 3"}, "HAVING"),
        ({"counts": False}, "counts that are shown"),
    ],
)
def test_what_has_no_totals_is_refused_by_name(
    client: PrivateClient, arguments: dict[str, object], expected: str
) -> None:
    """Before anything is paid, and naming the field."""
    asked: dict[str, object] = {"by": ["country", "article"], "totals_by": "country", **arguments}
    with pytest.raises(InvalidQuestion, match=expected) as refused:
        client.histogram("t", **asked)  # type: ignore[arg-type]  # wrong ones are meant
    assert refused.value.field == "totals_by"


@pytest.mark.parametrize(
    ("table", "expected"), [("without", "offers no totals"), ("looks", "lists of one look")]
)
def test_tables_without_totals_are_refused(client: PrivateClient, table: str, expected: str) -> None:
    """A policy has to offer them, and two looks have none."""
    with pytest.raises(RefusedByPolicy, match=expected):
        client.histogram(table, ["country", "article"], totals_by="country")


@pytest.mark.parametrize(
    ("grouped", "expected"),
    [
        ("ROLLUP (country, article)", "total of everything"),
        ("CUBE (country, article)", "total of everything"),
        ("GROUPING SETS ((country, article), ())", "GROUPING SETS"),
        ("GROUPING SETS ((country, article))", "expected GROUPING SETS"),
        ("GROUPING SETS ((country, article), (country), (article))", "expected GROUPING SETS"),
        ("GROUPING SETS ((country, article), (shop))", "expected GROUPING SETS"),
        ("country, GROUPING SETS ((country, article), (country))", "is not accepted|expected GROUPING SETS"),
        ("GROUPING SETS ((country, article), (country)) ORDER BY COUNT(*) DESC", "ORDER BY is not accepted"),
        ("GROUPING SETS ((country, article), (country)) LIMIT 3", "LIMIT is not accepted"),
        ("GROUPING SETS ((country, article), (country)) HAVING COUNT(*) > 3", "HAVING is not accepted"),
    ],
)
def test_other_groups_of_sql_are_refused_by_name(client: PrivateClient, grouped: str, expected: str) -> None:
    """What they would mean is another question."""
    with pytest.raises(InvalidQuestion, match=expected):
        client.sql(" ".join(["SELECT country, article, COUNT(*) FROM t GROUP BY", grouped]))


RETAIL = """
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  purchases:
    member: member_id
    measures: {distinct_members: true, events: {tau: 50, tau_is: clipped}}
    contributions: {bound: in_query, typical: 4000, units: 40000, min_count: 5, totals: {}}
    columns:
      member_id: {type: string}
      country: {type: string, group_by: true}
      stock_code: {type: string, group_by: true}
"""


@pytest.mark.usefixtures("starts_processes")
def test_totals_of_the_example_data_are_those_of_its_countries(tmp_path: Path) -> None:
    """Of 19,000 pairs, most of them below the smallest count, fifty are shown, and of each country all are added up."""
    data = EXAMPLES / "online_retail" / "purchases.parquet"
    with (
        embedded(tmp_path, RETAIL) as running,
        own_client(running, {"purchases": data}, confidence=1 - 1e-9) as client,
    ):
        result = client.top_k(
            "purchases", ["country", "stock_code"], 50, measure="events", totals_by="country"
        )
    lines = pq.read_table(data, columns=["member_id", "country", "stock_code"]).to_pandas()
    of_member = lines.groupby(["member_id", "country", "stock_code"]).size().clip(upper=50)
    true = of_member.groupby(["country", "stock_code"]).sum()
    assert (true < 5).sum() > 1000
    assert result.totals is not None
    assert {str(each.value) for each in result.totals} == {str(row.element[0]) for row in result.rows}
    for total in result.totals:
        whole = int(true.loc[total.value].sum())
        shown = sum(int(true.loc[row.element]) for row in result.rows if row.element[0] == total.value)
        _require_covered(Fraction(total.noisy_count), total.interval, whole, width=10_000)
        _require_covered(Fraction(total.other_count), total.other_interval, whole - shown, width=10_000)
