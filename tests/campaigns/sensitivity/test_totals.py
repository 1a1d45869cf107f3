"""A member moves totals by no more than was priced, through the real SQL and a real DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure, sum_of
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import member_bounds, render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.values.bounds import Clamp
from tests.campaigns.sensitivity.totals import relative_loss, true_totals
from tests.support.examples import examples
from tests.support.queries.duckdb_rows import store

Row = tuple[str, str, str, int | None]
POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions:
      {{bound: in_query, delta_0: {delta_0}, units: 10, min_count: {min_count},
        sums: {{max_members: 1000, max_rows: 100000}}, totals: {{share: {share}{one_value}}}}}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    columns:
      member: {{type: string}}
      a: {{type: string, group_by: true{known}}}
      b: {{type: string, group_by: true{known}}}
    values:
      paid: {{type: int64, lower: -2, upper: 5, row_lower: -3, row_upper: 4{nulls}}}
"""
KNOWN = ", domain: [u, v, w, x]"
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bob", "cy"]),
        st.sampled_from("uvy"),
        st.sampled_from("uvw"),
        st.sampled_from([None, -(2**63), -3, 0, 2, 4, 2**63 - 1]),
    ),
    max_size=14,
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with an empty table."""
    with duckdb.connect() as found:
        found.execute("CREATE TABLE t (member VARCHAR, a VARCHAR, b VARCHAR, paid BIGINT)")
        yield found


def asked(
    *, totals_by: str = "a", measure: Measure = Measure.EVENTS, summed: bool = True, **stated: object
) -> Resolution:
    """Return a question for totals under a policy."""
    text = POLICY.format(
        **{"delta_0": 2, "min_count": 1, "share": "1/4", "one_value": "", "known": "", "nulls": "", **stated}
    )
    sums = (sum_of("paid"),) if summed else ()
    query = HistogramQuery("t", ("a", "b"), measure, aggregates=sums, totals_by=totals_by)
    return resolve(query, parse_policy(text), now=1_700_000_000)


def answered(
    connection: duckdb.DuckDBPyConnection, resolution: Resolution, rows: Sequence[Row]
) -> TypedHistogram:
    """Return what the engine answers."""
    store(connection, "t", rows)
    found = connection.execute(render(resolution, "duckdb")).fetchall()
    columns = list(zip(*found, strict=True))
    stated = resolution.parameters.sums
    summed = () if stated is None else (*stated.columns, *stated.own_counts)
    numbers = [list(map(int, each)) for each in columns[2:]] or [[] for _ in (0, *summed)]
    return checked_histogram(
        tuple(kind for _, kind in resolution.columns),
        [list(each) for each in columns[:2]] or [[], []],
        numbers[0],
        numbers[1:],
        row_limit=resolution.row_limit,
        clamps=[] if stated is None else [Clamp(each.low, each.high) for each in stated.columns],
        own_counts=() if stated is None else stated.own_counts,
    )


def worst(connection: duckdb.DuckDBPyConnection, resolution: Resolution, rows: Sequence[Row]) -> float:
    """Return the most that a member's change is worth, relative to what is charged."""
    whole = true_totals(resolution, answered(connection, resolution, rows))
    return max(
        (
            float(
                relative_loss(
                    resolution,
                    whole,
                    true_totals(
                        resolution,
                        answered(connection, resolution, [row for row in rows if row[0] != member]),
                    ),
                )
            )
            for member in {row[0] for row in rows}
        ),
        default=0.0,
    )


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(
    rows=ROWS,
    totals_by=st.sampled_from("ab"),
    measure=st.sampled_from(Measure),
    summed=st.booleans(),
    delta_0=st.integers(1, 4),
    min_count=st.integers(1, 4),
    share=st.sampled_from(["1/4", "1/2", "0.9"]),
    known=st.sampled_from(["", KNOWN]),
    nulls=st.sampled_from(["", ", nulls: own_count"]),
    has_one=st.booleans(),
)
def test_a_member_moves_totals_within_the_price(
    connection: duckdb.DuckDBPyConnection,
    *,
    rows: Sequence[Row],
    totals_by: str,
    measure: Measure,
    summed: bool,
    has_one: bool,
    **stated: object,
) -> None:
    """Whatever counts are considered, and also where the policy says that a member has one value, and it has."""
    over = "b" if totals_by == "a" else "a"
    if has_one:
        first = {row[0]: row["_ab".index(over)] for row in reversed(rows)}
        moved: list[Row] = [
            (member, a if over == "b" else str(first[member]), b if over == "a" else str(first[member]), paid)
            for member, a, b, paid in rows
        ]
        rows = moved
    one_value = f", one_value: [{over}]" if has_one else ""
    resolution = asked(totals_by=totals_by, measure=measure, summed=summed, one_value=one_value, **stated)
    assert worst(connection, resolution, rows) <= 1


# Ada is in two elements of one total, and brings both over the smallest count that is considered.
CROWD: list[Row] = [(f"m{i}", "u", b, 4) for i in range(3) for b in "vw"]
ADA: list[Row] = [("ada", "u", "v", 4), ("ada", "u", "v", 4), ("ada", "u", "w", 4), ("ada", "u", "w", 4)]


def test_the_price_is_what_the_worst_member_moves(connection: duckdb.DuckDBPyConnection) -> None:
    """All its contributions in one total: the price is met, and not more than met."""
    assert worst(connection, asked(summed=False, min_count=4), [*CROWD, *ADA]) == 1


def test_totals_of_what_passes_a_threshold_are_found(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With HAVING in the query, ada moves the total by the counts of the crowd as well."""
    resolution = asked(summed=False, min_count=4)
    monkeypatch.setattr(member_bounds, "min_count_of", lambda _: 4)
    assert worst(connection, resolution, [*CROWD, *ADA]) > 1


def test_totals_that_are_priced_as_rows_are_found(connection: duckdb.DuckDBPyConnection) -> None:
    """Ada has two values of the other column, where the policy says that nobody has."""
    resolution = asked(summed=False)
    stated = resolution.parameters.totals
    assert stated is not None
    cheap = replace(resolution.parameters, totals=replace(stated, one_value=True))
    assert worst(connection, replace(resolution, parameters=cheap), [*CROWD, *ADA]) == 2
