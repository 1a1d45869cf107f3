"""Assembles the releases that dp_service streams, and verifies them against their plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from gris_api.common.v1 import cost_pb2, histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ColumnType, Element, ExpectedColumn
from pinot_connector.errors import IntegrityError

_FIELDS = {
    ColumnType.STRING: "strings",
    ColumnType.INT64: "int64s",
    ColumnType.BOOL: "bools",
    ColumnType.DATE: "dates",
}


# Counts of combined looks have the largest ones; with real counts, numerators are below 2^53.
_LARGEST_DENOMINATOR = 2**22


@dataclass(frozen=True)
class NoisyHistogram:
    """Released elements, column by column, and the rest of the release.

    `noisy_counts`, `lower` and `upper` are as long as each column, or all empty where counts were omitted. Of a whole
    release, `noisy_counts` has all there are, and the intervals are those of the first `release.shown_count` elements,
    or of those in `release.shown_rows`.
    Noisy counts are multiples of 1 / `denominator`, and written without it. `sums` are the noisy centred sums of each
    column that the release sums, of all its elements, and `aggregates` the sums and averages of those that the question
    shows. `cells` are the cells that were chosen for each quantile that it has, and `quantiles` those that the question
    shows.
    """

    columns: tuple[list[Element], ...]
    noisy_counts: list[int]
    lower: list[int]
    upper: list[int]
    release: dp_pb2.Release
    denominator: int = 1
    sums: list[list[int]] = field(default_factory=list)
    aggregates: list[dp_pb2.AggregateValues] = field(default_factory=list)
    cells: list[list[int]] = field(default_factory=list)
    quantiles: list[dp_pb2.QuantileValues] = field(default_factory=list)

    @property
    def elements(self) -> list[tuple[Element, ...]]:
        """The elements as tuples; that of a total, which has no columns, is the empty one."""
        return list(zip(*self.columns, strict=True)) if self.columns else [()] * self.release.element_count


def merged(
    expected: Sequence[ExpectedColumn], chunks: Sequence[dp_pb2.ReleasedElements], release: dp_pb2.Release
) -> NoisyHistogram:
    """Assembles a release from its chunks.

    Raises:
        IntegrityError: a chunk has other columns, or their lengths do not belong together.
    """
    columns: tuple[list[Element], ...] = tuple([] for _ in expected)
    noisy = NoisyHistogram(columns, [], [], [], release, _denominator(chunks))
    for chunk in chunks:
        if len(chunk.columns) != len(expected):
            raise IntegrityError("dp_service answered with other columns than asked")
        for column, message, values in zip(expected, chunk.columns, columns, strict=True):
            values.extend(column_values(column, message))
        noisy.noisy_counts.extend(chunk.noisy_counts or chunk.noisy_numerators)
        noisy.lower.extend(chunk.interval_lower)
        noisy.upper.extend(chunk.interval_upper)
        _add_sums(noisy, chunk)
        _add_quantiles(noisy, chunk)
    _require_lengths(noisy)
    return noisy


def _add_sums(noisy: NoisyHistogram, chunk: dp_pb2.ReleasedElements) -> None:
    if not noisy.sums and not noisy.aggregates:
        noisy.sums.extend([] for _ in chunk.sums)
        noisy.aggregates.extend(dp_pb2.AggregateValues() for _ in chunk.aggregates)
    if (len(noisy.sums), len(noisy.aggregates)) != (len(chunk.sums), len(chunk.aggregates)):
        raise IntegrityError("dp_service answered with other sums than before")
    for sums, added in zip(noisy.sums, chunk.sums, strict=True):
        sums.extend(added.values)
    for values, more in zip(noisy.aggregates, chunk.aggregates, strict=True):
        values.MergeFrom(more)


def _add_quantiles(noisy: NoisyHistogram, chunk: dp_pb2.ReleasedElements) -> None:
    if not noisy.cells and not noisy.quantiles:
        noisy.cells.extend([] for _ in chunk.cells)
        noisy.quantiles.extend(dp_pb2.QuantileValues() for _ in chunk.quantiles)
    if (len(noisy.cells), len(noisy.quantiles)) != (len(chunk.cells), len(chunk.quantiles)):
        raise IntegrityError("dp_service answered with other quantiles than before")
    for cells, added in zip(noisy.cells, chunk.cells, strict=True):
        cells.extend(added.cells)
    for values, more in zip(noisy.quantiles, chunk.quantiles, strict=True):
        values.MergeFrom(more)


def part_shown(noisy: NoisyHistogram) -> NoisyHistogram:
    """Returns the part of a whole release that the question shows."""
    release = noisy.release
    if not release.HasField("shown_count"):
        return noisy
    count = release.shown_count
    rows = list(release.shown_rows) or range(count)
    part = dp_pb2.Release()
    part.CopyFrom(release)
    part.element_count = count
    del part.shown_rows[:]
    part.ClearField("kept_totals")
    part.ended_in_bottom = release.ended_in_bottom and count == release.element_count
    has_counts = release.interval_kind != dp_pb2.INTERVAL_KIND_NONE
    counts = [noisy.noisy_counts[row] for row in rows] if has_counts else []
    columns = tuple([column[row] for row in rows] for column in noisy.columns)
    return replace(noisy, columns=columns, noisy_counts=counts, release=part, sums=[], cells=[])


def write_counts(message: dp_pb2.ReleasedElements, counts: Iterable[int], denominator: int) -> None:
    """Writes noisy counts that are multiples of 1 / denominator. A reader who does not know it finds none."""
    if denominator == 1:
        message.noisy_counts.extend(counts)
    else:
        message.noisy_numerators.extend(counts)
        message.noisy_denominator = denominator


def _denominator(chunks: Sequence[dp_pb2.ReleasedElements]) -> int:
    """Returns what divides the noisy counts of all chunks.

    Raises:
        IntegrityError: it is too large, differs, or there are counts of both kinds.
    """
    named = {chunk.noisy_denominator or 1 for chunk in chunks}
    found = next(iter(named), 1)
    is_odd = any(bool(chunk.noisy_numerators) and not chunk.noisy_denominator for chunk in chunks)
    if len(named) > 1 or is_odd or not 1 <= found <= _LARGEST_DENOMINATOR:
        raise IntegrityError("dp_service sent noisy counts that do not belong together")
    if found > 1 and any(chunk.noisy_counts for chunk in chunks):
        raise IntegrityError("dp_service sent noisy counts of two kinds")
    return found


def verify(noisy: NoisyHistogram, translation: dp_pb2.TranslateQueryResponse) -> None:
    """Verifies a release against its plan: nothing else may be charged or shown.

    Raises:
        IntegrityError: it is a release of another question, or costs more than its worst case.
    """
    release = noisy.release
    if release.query_id != translation.query_id or not release.release_id:
        raise IntegrityError("dp_service answered another question")
    _require_lengths(noisy)
    if not _covers(translation.worst_case_cost, release.cost):
        raise IntegrityError("dp_service asks for more than the worst case")


def column_values(column: ExpectedColumn, message: histogram_pb2.ElementColumn) -> Sequence[Element]:
    """Returns the values of a column, days as their number since 1970-01-01.

    Raises:
        IntegrityError: it is another column, or of another type.
    """
    if message.name != column.name or message.WhichOneof("values") != _FIELDS.get(column.type, ""):
        raise IntegrityError("dp_service answered with other columns than asked")
    match column.type:
        case ColumnType.STRING:
            return message.strings.values
        case ColumnType.INT64:
            return message.int64s.values
        case ColumnType.BOOL:
            return message.bools.values
        case _:
            return message.dates.days


def _require_lengths(noisy: NoisyHistogram) -> None:
    release = noisy.release
    rows, counts, intervals = release.element_count, len(noisy.noisy_counts), len(noisy.lower)
    if any(len(column) != rows for column in noisy.columns):
        raise IntegrityError("dp_service sent another number of elements than it says")
    if not noisy.columns and rows > 1:
        raise IntegrityError("dp_service sent several totals")
    with_intervals = counts
    if release.HasField("shown_count"):
        with_intervals = 0 if release.interval_kind == dp_pb2.INTERVAL_KIND_NONE else release.shown_count
        if not max(with_intervals, release.shown_count) <= rows or (with_intervals and not counts):
            raise IntegrityError("dp_service shows more of a release than it has")
    _require_rows(release)
    if counts not in (0, rows) or {intervals, len(noisy.upper)} != {with_intervals}:
        raise IntegrityError("dp_service sent counts and intervals that do not belong together")
    if any(len(column) != rows for column in noisy.sums) or any(
        {len(each.values), len(each.lower), len(each.upper)} != {with_intervals} for each in noisy.aggregates
    ):
        raise IntegrityError("dp_service sent sums that do not belong together")
    shown = release.shown_count if release.HasField("shown_count") else rows
    if any(len(column) != rows for column in noisy.cells) or any(
        {len(each.values), len(each.lower), len(each.upper)} != {shown} for each in noisy.quantiles
    ):
        raise IntegrityError("dp_service sent quantiles that do not belong together")


def _require_rows(release: dp_pb2.Release) -> None:
    listed = release.shown_rows
    if not listed:
        return
    is_once = len(set(listed)) == len(listed) == release.shown_count
    if not is_once or not 0 <= min(listed) <= max(listed) < release.element_count:
        raise IntegrityError("dp_service shows other elements of a release than it has")


def _covers(worst: cost_pb2.Cost, cost: cost_pb2.Cost) -> bool:
    within = 0 <= cost.information <= worst.information and 0 <= cost.calls <= worst.calls
    return within and cost.unit_id == worst.unit_id
