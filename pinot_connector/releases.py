"""Assembles the releases that dp_service streams, and verifies them against their plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Noisy:
    """Released elements, column by column, and the rest of the release.

    `noisy_counts`, `lower` and `upper` are as long as each column, or all empty where counts were omitted.
    """

    columns: tuple[list[Element], ...]
    noisy_counts: list[int]
    lower: list[int]
    upper: list[int]
    release: dp_pb2.Release


def merged(
    expected: Sequence[ExpectedColumn], chunks: Sequence[dp_pb2.ReleasedElements], release: dp_pb2.Release
) -> Noisy:
    """Assembles a release from its chunks.

    Raises:
        IntegrityError: a chunk has other columns, or their lengths do not belong together.
    """
    columns: tuple[list[Element], ...] = tuple([] for _ in expected)
    noisy = Noisy(columns, [], [], [], release)
    for chunk in chunks:
        if len(chunk.columns) != len(expected):
            raise IntegrityError("dp_service answered with other columns than asked")
        for column, message, values in zip(expected, chunk.columns, columns, strict=True):
            values.extend(column_values(column, message))
        noisy.noisy_counts.extend(chunk.noisy_counts)
        noisy.lower.extend(chunk.interval_lower)
        noisy.upper.extend(chunk.interval_upper)
    _require_lengths(noisy)
    return noisy


def verify(noisy: Noisy, translation: dp_pb2.TranslateQueryResponse) -> None:
    """Verifies a release against its plan: nothing else may be charged or shown.

    Raises:
        IntegrityError: it is a release of another question, or costs more than its worst case.
    """
    release = noisy.release
    if release.query_id != translation.query_id or not release.release_id:
        raise IntegrityError("dp_service answered another question")
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


def _require_lengths(noisy: Noisy) -> None:
    rows = noisy.release.element_count
    if any(len(column) != rows for column in noisy.columns):
        raise IntegrityError("dp_service sent another number of elements than it says")
    if {len(noisy.noisy_counts), len(noisy.lower), len(noisy.upper)} not in ({rows}, {0}):
        raise IntegrityError("dp_service sent counts and intervals that do not belong together")


def _covers(worst: cost_pb2.Cost, cost: cost_pb2.Cost) -> bool:
    within = 0 <= cost.information <= worst.information and 0 <= cost.calls <= worst.calls
    return within and cost.unit_id == worst.unit_id
