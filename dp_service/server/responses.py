"""Releases and prices as messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.parameters import Cost
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.grids import in_text
from dp_service.releases.kinds.views import (
    Counts,
    ExpectedAccuracy,
    IntervalKind,
    ReleaseView,
    ShownCells,
    Total,
)
from dp_service.releases.plan import Plan
from dp_service.releases.release_ids import keyed_data_version
from dp_service.releases.releasing import Released
from dp_service.releases.saying import of_answer
from dp_service.releases.ticket import charge_ticket
from dp_service.server.messages import (
    aggregate_message,
    cost_message,
    element_columns,
    numbers,
    statement_message,
)
from dp_service.server.parameter_messages import parameters_message

CHUNK_BYTES = 2**20
# At most: a noisy count, its interval and the tags around them.
_ROW_OVERHEAD_BYTES = 40
# At most: a sum or an average with its interval, three quotients of numbers with up to 40 digits.
_AGGREGATE_BYTES = 256

_INTERVAL_KINDS = numbers(IntervalKind, dp_pb2.IntervalKind.DESCRIPTOR)


def accuracy_message(accuracy: ExpectedAccuracy) -> dp_pb2.ExpectedAccuracy:
    """Return how exact an answer can be expected to be."""
    # What is None stays unset.
    return dp_pb2.ExpectedAccuracy(**asdict(accuracy))


@dataclass(frozen=True)
class ReleaseMessages:
    """Releases of one plan as messages, with bills.

    Attributes:
        plan: The verified plan.
        confidence: Of each interval.
        key: The key that signed the plan.
    """

    plan: Plan
    confidence: float
    key: NoiseKey

    def whole(self, released: Released) -> dp_pb2.Release:
        """Return a release in one message."""
        message = self._release(released)
        message.elements.CopyFrom(_drawn_elements(self.plan, released, slice(0, released.shown.count)))
        if released.whole:
            message.kept.elements.CopyFrom(_kept_elements(self.plan, released, slice(None)))
        return message

    def stream(self, released: Released) -> Iterator[dp_pb2.AddNoiseResponse]:
        """Yield a release: its elements in messages of at most 1 MiB, or of one element, and then the rest."""
        row_bytes = _widest_row_bytes(released)
        for part in _chunks(released.shown.count, row_bytes):
            yield dp_pb2.AddNoiseResponse(shown=_drawn_elements(self.plan, released, part))
        for part in _chunks(len(released.elements), row_bytes) if released.whole else ():
            yield dp_pb2.AddNoiseResponse(kept=_kept_elements(self.plan, released, part))
        yield dp_pb2.AddNoiseResponse(end=self._release(released))

    def shown_again(
        self, kept: dp_pb2.Kept, counts: Counts, view: ReleaseView
    ) -> Iterator[dp_pb2.ShowReleaseResponse]:
        """Yield a kept release as a question shows it, with a bill for the plan's policy statement, as `stream` does.

        Args:
            kept: The release, without its elements.
            counts: The counts of all its elements; none if it has none.
            view: What the question shows of it.
        """
        shown = None if view.intervals is None else counts.at(view.places)
        for part in _chunks(view.count, _shown_row_bytes(view)):
            elements = _shown_elements(view, part)
            # What is small is one message: each takes about as long as all else.
            end = self._shown_end(kept, view, shown) if part.stop == view.count else None
            yield dp_pb2.ShowReleaseResponse(shown=elements, end=end)

    def _shown_end(self, kept: dp_pb2.Kept, view: ReleaseView, shown: Counts | None) -> dp_pb2.Release:
        cost = Cost(kept.bill.cost.information, kept.bill.cost.calls)
        bill = bill_of(self.plan, kept.bill.release_id, cost, self.key)
        bottom = kept.bottom if kept.HasField("bottom") else None
        return dp_pb2.Release(shown=self._shown(view, shown, bottom, bill), rows=view.rows or (), bill=bill)

    def _release(self, released: Released) -> dp_pb2.Release:
        """Return everything of a release except its elements."""
        bill = bill_of(self.plan, released.release_id, released.cost, self.key)
        shown = self._shown(released.shown, _shown_counts(released), released.bottom, bill)
        if not released.whole:
            return dp_pb2.Release(shown=shown, bill=bill)
        total = released.shown.total
        kept = dp_pb2.Kept(
            bill=bill,
            key_id=self.key.key_id,
            element_count=len(released.elements),
            ended_in_bottom=released.ended_in_bottom,
            bottom=released.bottom,
            total=None if total is None else total.noisy,
        )
        return dp_pb2.Release(shown=shown, rows=released.shown.rows or (), bill=bill, kept=kept)

    def _shown(
        self, view: ReleaseView, counts: Counts | None, bottom: int | None, bill: dp_pb2.Bill
    ) -> dp_pb2.Shown:
        if bottom is not None:
            # Counts are shown rounded: one just above the threshold may be shown as the whole number below it.
            bottom //= kind_of(self.plan.parameters).denominator
        return dp_pb2.Shown(
            element_count=view.count,
            ended_in_bottom=view.ended_in_bottom,
            bottom=bottom,
            parameters=parameters_message(self.plan.parameters),
            interval_kind=_INTERVAL_KINDS[view.interval_kind],
            confidence=self.confidence,
            cost=bill.cost,
            data_version=keyed_data_version(self.key, self.plan.table, self.plan.data_version),
            release_id=bill.release_id,
            query_id=bill.query_id,
            key_id=self.key.key_id,
            audience_rows=self.plan.forced.name,
            total=None if view.total is None else _total(view.total),
            statements=map(
                statement_message,
                of_answer(self.plan, counts, view, bottom=bottom, confidence=self.confidence),
            ),
        )


def bill_of(plan: Plan, release_id: str, cost: Cost, key: NoiseKey) -> dp_pb2.Bill:
    """Return what to charge for a release; with an empty release_id, for a question that ends without one."""
    ticket = charge_ticket(
        key,
        release_id=release_id,
        query_id=plan.query_id,
        cost=cost,
        unit_id=plan.paid_by.unit_id,
        blocks=plan.paid_by.blocks,
        policy_statement=plan.policy_statement,
    )
    return dp_pb2.Bill(
        cost=cost_message(cost, plan.paid_by),
        release_id=release_id,
        query_id=plan.query_id,
        policy_statement=plan.policy_statement,
        charge_ticket=ticket,
    )


def _total(total: Total) -> dp_pb2.NoisyTotal:
    lower, upper = total.interval
    return dp_pb2.NoisyTotal(count=total.noisy, noise_lower=lower, noise_upper=upper)


def _drawn_elements(plan: Plan, released: Released, rows: slice) -> dp_pb2.ShownElements:
    """Return some of the elements that the question shows; those of a whole release are named by their positions."""
    message = _shown_elements(released.shown, rows)
    if released.whole:
        return message
    # It is in the order of the question, and has nothing that it does not show.
    if released.intervals is not None and (counts := _counts(released)) is not None:
        _write_counts(message, counts, rows)
    message.columns.extend(element_columns(plan.columns, released.elements[rows]))
    return message


def _shown_elements(view: ReleaseView, rows: slice) -> dp_pb2.ShownElements:
    message = dp_pb2.ShownElements(
        aggregates=[aggregate_message(each, rows) for each in view.aggregates],
        quantiles=[_cells(each, rows) for each in view.quantiles],
    )
    if view.intervals is not None:
        message.noise_lower.extend(view.intervals.lower[rows].tolist())
        message.noise_upper.extend(view.intervals.upper[rows].tolist())
    return message


def _kept_elements(plan: Plan, released: Released, rows: slice) -> dp_pb2.KeptElements:
    message = dp_pb2.KeptElements(
        columns=element_columns(plan.columns, released.elements[rows]),
        sums=[histogram_pb2.CentredSums(values=column[rows].tolist()) for column in released.sums],
        cells=[dp_pb2.ChosenCells(cells=column[rows].tolist()) for column in released.cells],
    )
    if (counts := _counts(released)) is not None:
        _write_counts(message, counts, rows)
    return message


def _chunks(rows: int, row_bytes: int) -> Iterator[slice]:
    """Yield at least one part of so many rows, each of one row or of at most 1 MiB."""
    size = max(1, CHUNK_BYTES // row_bytes)
    for start in range(0, max(1, rows), size):
        yield slice(start, min(start + size, rows))


def _counts(released: Released) -> Counts | None:
    return None if released.noisy_counts is None else Counts(released.noisy_counts, released.denominator)


def _shown_counts(released: Released) -> Counts | None:
    counts = _counts(released)
    if counts is None or released.intervals is None:
        return None
    return counts.at(released.shown.places) if released.whole else counts


def _write_counts(message: dp_pb2.ShownElements | dp_pb2.KeptElements, counts: Counts, rows: slice) -> None:
    noisy = counts.noisy[rows].tolist()
    if counts.denominator == 1:
        message.noisy_counts.extend(noisy)
    else:
        message.noisy_numerators.extend(noisy)
        message.noisy_denominator = counts.denominator


def _cells(shown: ShownCells, rows: slice) -> dp_pb2.QuantileValues:
    """Return the cells of some elements, and the middle of each."""
    values, lower, upper = (
        [in_text(value, shown.scale) for value in column[rows]]
        for column in (shown.values, shown.lower, shown.upper)
    )
    return dp_pb2.QuantileValues(values=values, lower=lower, upper=upper, rank_error=str(shown.rank_error))


def _widest_row_bytes(released: Released) -> int:
    widths = (
        sum(len(value.encode()) if isinstance(value, str) else 10 for value in element)
        for element in released.elements
    )
    return _shown_row_bytes(released.shown) + _AGGREGATE_BYTES * len(released.sums) + max(widths, default=0)


def _shown_row_bytes(view: ReleaseView) -> int:
    return _ROW_OVERHEAD_BYTES + _AGGREGATE_BYTES * (len(view.aggregates) + len(view.quantiles))
