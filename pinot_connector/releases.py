"""Verifies the releases that dp_service sends against their plans, and makes of them what a question shows."""

from __future__ import annotations

from collections.abc import Sequence

from gris_api.common.v1 import cost_pb2, histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ColumnType, Element, ExpectedColumn
from pinot_connector.errors import IntegrityError
from pinot_connector.histograms import element_columns
from pinot_connector.shown_values import numbers_of
from pinot_connector.views import view

_FIELDS = {
    ColumnType.STRING: "strings",
    ColumnType.INT64: "int64s",
    ColumnType.BOOL: "bools",
    ColumnType.DATE: "dates",
}
# With real counts, numerators are below 2^53.
_LARGEST_DENOMINATOR = 2**22


def verify(
    release: dp_pb2.Release, kept: dp_pb2.Kept, translation: dp_pb2.TranslateQueryResponse, confidence: float
) -> None:
    """Verifies a release against its plan: nothing else may be charged, shown or kept.

    Args:
        release: What dp_service sent; the elements that it shows are a part of `kept`.
        kept: All of it.
        translation: The question's.
        confidence: That of its intervals.

    Raises:
        IntegrityError: it is a release of another question or has another confidence, costs more than its worst case or
            something else than it says, or its parts do not belong together.
    """
    bill, shown = release.bill, release.shown
    if bill.query_id != translation.query_id or not bill.release_id:
        raise IntegrityError("dp_service answered another question")
    _require_covered(bill.cost, translation.worst_case_cost)
    if (shown.release_id, shown.query_id, shown.cost) != (bill.release_id, bill.query_id, bill.cost):
        raise IntegrityError("dp_service asks for another release than it shows")
    if shown.confidence != confidence:
        raise IntegrityError("dp_service shows another confidence than asked")
    if release.HasField("kept") and kept.bill != bill:
        raise IntegrityError("dp_service asks for another release than the one to keep")
    named = kept.bill.release_id, kept.bill.query_id, kept.bill.cost, kept.key_id
    of = bill.release_id, bill.query_id, bill.cost, shown.key_id
    if named != of or not kept.HasField("elements"):
        raise IntegrityError("dp_service shows another release than the one that is kept")
    _require_elements(kept, translation)
    _require_rows(release, kept.element_count)


def shown_of(
    release: dp_pb2.Release, kept: dp_pb2.Kept, translation: dp_pb2.TranslateQueryResponse
) -> tuple[dp_pb2.Shown, dp_pb2.ShownElements]:
    """Returns what a question shows of a verified release: what may leave the trusted side once it is paid for.

    Elements and counts are those that are kept, so a repeat cannot show others. What this version does not know is left
    out.

    Raises:
        IntegrityError: there are counts of the elements that are not those that are kept, or none of them.
    """
    shown, elements = dp_pb2.Shown(), dp_pb2.ShownElements()
    shown.CopyFrom(release.shown)
    del shown.columns[:]
    shown.columns.extend(translation.columns)
    shown.count_alias, shown.requested_k = translation.count_alias, translation.requested_k
    shown.selected[:] = translation.selected
    elements.CopyFrom(release.elements)
    for message in (shown, elements):
        message.DiscardUnknownFields()
    rows = list(release.rows) or range(shown.element_count)
    del elements.columns[:]
    for column, stated in zip(kept.elements.columns, translation.columns, strict=True):
        expected = view(ExpectedColumn, stated)
        values = column_values(expected, column)
        elements.columns.extend(element_columns((expected,), ([values[row] for row in rows],)))
    if counts_of(elements):
        raise IntegrityError("dp_service sent other counts than those that are kept")
    if shown.interval_kind != dp_pb2.INTERVAL_KIND_NONE and rows:
        _show_counts(elements, kept.elements, rows)
    return shown, elements


def _show_counts(elements: dp_pb2.ShownElements, kept: dp_pb2.KeptElements, rows: Sequence[int]) -> None:
    counts = counts_of(kept)
    if not counts:
        raise IntegrityError("dp_service shows counts that are not kept")
    shown = elements.noisy_numerators if kept.noisy_numerators else elements.noisy_counts
    shown.extend(counts[row] for row in rows)
    elements.noisy_denominator = kept.noisy_denominator


def element_tuples(columns: Sequence[ExpectedColumn], kept: dp_pb2.Kept) -> list[tuple[Element, ...]]:
    """Returns all elements of a release; that of a total, which has no columns, is the empty one.

    Raises:
        IntegrityError: it has other columns.
    """
    if len(kept.elements.columns) != len(columns):
        raise IntegrityError("dp_service answered with other columns than asked")
    values = [column_values(*each) for each in zip(columns, kept.elements.columns, strict=True)]
    return list(zip(*values, strict=True)) if columns else [()] * kept.element_count


def column_values(column: ExpectedColumn, message: histogram_pb2.ElementColumn) -> Sequence[Element]:
    """Returns the values of a column, days as their number since 1970-01-01.

    Raises:
        IntegrityError: it is another column, or of another type.
    """
    if message.name != column.name or message.WhichOneof("values") != _FIELDS.get(column.type, ""):
        raise IntegrityError("dp_service answered with other columns than asked")
    return _values(message)


def _values(message: histogram_pb2.ElementColumn) -> Sequence[Element]:
    match message.WhichOneof("values"):
        case "strings":
            return message.strings.values
        case "int64s":
            return message.int64s.values
        case "bools":
            return message.bools.values
        case "dates":
            return message.dates.days
        case _:
            return ()


def counts_of(message: dp_pb2.ShownElements | dp_pb2.KeptElements) -> Sequence[int]:
    """Returns noisy counts, as multiples of 1 / noisy_denominator if there is one.

    Raises:
        IntegrityError: there are counts of both kinds, or they are divided by nothing.
    """
    denominator = message.noisy_denominator
    if message.noisy_numerators and not 2 <= denominator <= _LARGEST_DENOMINATOR:
        raise IntegrityError("dp_service sent noisy counts that do not belong together")
    if message.noisy_counts and (message.noisy_numerators or denominator):
        raise IntegrityError("dp_service sent noisy counts of two kinds")
    return message.noisy_counts or message.noisy_numerators


def require_shown(shown: dp_pb2.Shown, elements: dp_pb2.ShownElements) -> None:
    """Raises IntegrityError unless there are as many elements and numbers of each as the message says."""
    rows = shown.element_count
    counted = 0 if shown.interval_kind == dp_pb2.INTERVAL_KIND_NONE else rows
    if any(len(_values(column)) != rows for column in elements.columns):
        raise IntegrityError("dp_service sent another number of elements than it says")
    if not elements.columns and rows > 1:
        raise IntegrityError("dp_service sent several totals")
    if {len(counts_of(elements)), len(elements.noise_lower), len(elements.noise_upper)} != {counted}:
        raise IntegrityError("dp_service sent counts and intervals that do not belong together")
    for numbers, size in ((map(numbers_of, elements.aggregates), counted), (elements.quantiles, rows)):
        if any({len(each.values), len(each.lower), len(each.upper)} != {size} for each in numbers):
            raise IntegrityError("dp_service sent sums or quantiles that do not belong together")


def _require_elements(kept: dp_pb2.Kept, translation: dp_pb2.TranslateQueryResponse) -> None:
    elements, rows, parameters = kept.elements, kept.element_count, translation.parameters
    if len(elements.columns) != len(translation.columns):
        raise IntegrityError("dp_service answered with other columns than asked")
    for stated, column in zip(translation.columns, elements.columns, strict=True):
        if len(column_values(view(ExpectedColumn, stated), column)) != rows:
            raise IntegrityError("dp_service sent another number of elements than it says")
    if not elements.columns and rows > 1:
        raise IntegrityError("dp_service sent several totals")
    if len(counts_of(elements)) not in (0, rows):
        raise IntegrityError("dp_service sent counts that do not belong together")
    columns = parameters.bounded.sums.columns
    are_few = len(elements.sums) != len(columns) + sum(column.HasField("own_count") for column in columns)
    if are_few or any(len(column.values) != rows for column in elements.sums):
        raise IntegrityError("dp_service sent sums that do not belong together")
    has_cells = len(elements.cells) > 0
    if has_cells != parameters.HasField("quantiles") or any(
        len(column.cells) != rows for column in elements.cells
    ):
        raise IntegrityError("dp_service sent quantiles that do not belong together")


def _require_rows(release: dp_pb2.Release, elements: int) -> None:
    listed, shown = release.rows, release.shown.element_count
    if listed:
        is_part = len(set(listed)) == len(listed) == shown and 0 <= min(listed) <= max(listed) < elements
    else:
        is_part = 0 <= shown <= elements
    if not is_part:
        raise IntegrityError("dp_service shows other elements of a release than it has")


def _require_covered(cost: cost_pb2.Cost, worst: cost_pb2.Cost) -> None:
    if not (0 <= cost.information <= worst.information and 0 <= cost.calls <= worst.calls):
        raise IntegrityError("dp_service asks for more than the worst case")
    for name, own, expected in (
        ("unit_id", [cost.unit_id], [worst.unit_id]),
        ("blocks", cost.blocks, worst.blocks),
    ):
        if own != expected:
            of_plan, got = (" ".join(each) or "none" for each in (expected, own))
            raise IntegrityError(f"dp_service asks for another cost.{name}: expected {of_plan}, got {got}")
