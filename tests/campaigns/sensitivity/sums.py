"""What one member moves counts and sums by, through the real SQL and a real DuckDB, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.queries.policy import Policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.moments import Moments
from dp_service.terms import GRID
from dp_service.values.bounds import Clamp
from tests.support.queries.sums import NOW, Row

Translate = Callable[[Resolution], Resolution]
WIDE = Clamp(-(2**50), 2**50)
CHARGED = "a member's change is worth more than is charged"
NOT_COUNTED = "a member changes a sum and not the count, by 1 or over rows by at most tau"


SCHEMA = pa.schema(
    [("member", pa.string()), ("text", pa.string()), ("whole", pa.int64()), ("number", pa.float64())]
)


@dataclass(frozen=True)
class Asked:
    """A database whose table is a Parquet file, as those of analysts are: what DuckDB knows of it changes its plans."""

    connection: duckdb.DuckDBPyConnection
    path: Path

    def write(self, rows: Sequence[Row]) -> None:
        """Replace the rows of the table."""
        columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
        arrays = [pa.array(each, kind.type) for each, kind in zip(columns, SCHEMA, strict=True)]
        pq.write_table(pa.table(arrays, SCHEMA), self.path)
        self.connection.read_parquet(str(self.path)).create_view("t")


def uncut(resolution: Resolution) -> Resolution:
    """Return the question whose answer has all elements, also those below the smallest count that is considered."""
    parameters = resolution.parameters
    assert parameters.contributions is not None
    least = None if parameters.contributions.min_count is None else 1
    contributions = replace(parameters.contributions, min_count=least)
    return replace(resolution, parameters=replace(parameters, contributions=contributions))


def met(asked_of: Asked, resolution: Resolution, rows: Sequence[Row]) -> TypedHistogram:
    """Return what the mechanism meets; what a member may add to a sum is checked here, and not there."""
    asked_of.write(rows)
    # Below a count of 1 elements of an unknown domain are left out, for which the threshold makes up.
    sql = render(resolution, "duckdb").replace(f'HAVING CAST(SUM("gris_weighted") AS BIGINT) >= {GRID}', "")
    answer = asked_of.connection.execute(sql).fetchall()
    keys, columns = len(resolution.columns), list(zip(*answer, strict=True))
    summed = (*resolution.query.values, *resolution.query.own_counts)
    numbers = [list(map(int, column)) for column in columns[keys:]] or [[] for _ in (0, *summed)]
    types = tuple(kind for _, kind in resolution.columns)
    elements = [list(column) for column in columns[:keys]] or [[] for _ in types]
    # Own counts are looked at here, too: they stand behind the sums, and pass for some. Every number of such a clamp is
    # even.
    clamps = [WIDE for _ in summed]
    doubled = [[2 * each for each in column] for column in numbers[1:]]
    found = checked_histogram(types, elements, numbers[0], doubled, row_limit=20_000, clamps=clamps)
    return replace(found, sums=tuple(column // 2 for column in found.sums))


def faults(
    asked_of: Asked,
    query: HistogramQuery,
    under: Policy,
    rows: Sequence[Row],
    *,
    translate: Translate = lambda resolution: resolution,
) -> list[str]:
    """Return what some member changes beyond what is charged; empty: the promise holds."""
    resolution = uncut(resolve(query, under, now=NOW))
    whole = met(asked_of, translate(resolution), rows)
    found: list[str] = []
    for member in sorted({row.member for row in rows if row.member is not None}):
        without = met(asked_of, translate(resolution), [row for row in rows if row.member != member])
        found += _changes(resolution, whole, without)
    return found


def _changes(resolution: Resolution, whole: TypedHistogram, without: TypedHistogram) -> Iterator[str]:
    kind, contributions = kind_of(resolution.parameters), resolution.parameters.contributions
    assert isinstance(kind, Moments)
    mechanism = kind.moments
    assert contributions is not None
    after, before = _numbers(whole), _numbers(without)
    sums, owned = len(mechanism.columns), resolution.query.own_counts
    nothing = (0,) * (1 + sums + len(owned))
    moved = [
        tuple(a - b for a, b in zip(after.get(each, nothing), before.get(each, nothing), strict=True))
        for each in after.keys() | before.keys()
    ]
    moved = [change for change in moved if any(change)]
    grid, tau = contributions.grid, mechanism.bound.tau
    if grid == 1 and len(moved) > contributions.typical:
        yield "a member changes more elements than Delta"
    if any(not 1 <= change[0] <= tau * grid for change in moved):
        yield NOT_COUNTED
    counted_in = {place: 1 + sums + number for number, place in enumerate(owned)}
    rows = [column.rows or tau for column in mechanism.columns]
    if any(
        not 0 <= change[owner] <= rows[place] * grid
        for change in moved
        for place, owner in counted_in.items()
    ):
        yield "a member changes an own count by more than its rows"
    for place, column in enumerate(mechanism.columns):
        most = Fraction(column.clamp.width * column.grid, grid)
        counts = [change[counted_in.get(place, 0)] if column.clamp.is_centred else grid for change in moved]
        if any(abs(change[1 + place]) > most * count for change, count in zip(moved, counts, strict=True)):
            yield "a member changes a sum by more than its width"
    shares = [
        (mechanism.count_variance, mechanism.share),
        *((mechanism.sum_variance(place), each.share) for place, each in enumerate(mechanism.columns)),
        *((mechanism.own_count_variance(place), mechanism.columns[place].count_share) for place in owned),
    ]
    assert len(shares) == len(nothing)
    if sum(change[0] ** 2 for change in moved) > mechanism.bound.squared_distance:
        yield CHARGED
    for place, (variance, share) in enumerate(shares):
        assert variance is not None
        assert share is not None
        lost = sum(Fraction(change[place] ** 2) for change in moved) / (2 * (variance - DISCRETENESS))
        if lost > mechanism.rho * share:
            yield CHARGED


def _numbers(histogram: TypedHistogram) -> dict[object, tuple[int, ...]]:
    columns = [histogram.counts.tolist(), *(column.tolist() for column in histogram.sums)]
    return dict(zip(histogram.elements, zip(*columns, strict=True), strict=True))
