"""Receipts as results again: the elements come from the kept release, the rest from the receipt."""

from __future__ import annotations

from dataclasses import dataclass

from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.element_messages import rows_of
from pinot_connector.release_store.interface import DAY, KeptRelease, Microseconds

MAX_PAGE_BYTES = 3 * 2**20


@dataclass(frozen=True)
class ReceiptLimits:
    """How many receipts are kept. They are only a list of what was shown: no limit removes a release or a payment.

    Attributes:
        days: How long a receipt is kept, by this machine's clock.
        per_account: How many of one account.
        megabytes: How large all of them may become. When they are, the accounts that keep most lose their oldest; an
            account loses nothing if it keeps no more than its share.
    """

    days: int = 35
    per_account: int = 1000
    megabytes: int = 1024

    def oldest(self, now: Microseconds) -> Microseconds:
        """Returns when the oldest receipt may be from that is still kept."""
        return now - self.days * DAY


def without_elements(shown: app_pb2.PastRelease) -> app_pb2.PastRelease:
    """Returns what a receipt keeps of a result whose release is kept: of the elements, only the intervals.

    A list in the order of a sum, an average, a quantile or its elements keeps its elements, and so does one that begins
    with the smallest number, one with conditions on what was released, and one of combined looks: they are not the
    first ones of the release.
    """
    receipt = app_pb2.PastRelease()
    receipt.CopyFrom(shown)
    if _has_own_elements(shown):
        return receipt
    del receipt.elements.columns[:]
    del receipt.elements.noisy_counts[:]
    del receipt.elements.noisy_numerators[:]
    return receipt


def with_elements(receipt: app_pb2.PastRelease, kept: KeptRelease | None) -> app_pb2.PastRelease:
    """Returns the result that a receipt is for; without the kept release, its elements are omitted."""
    shown = app_pb2.PastRelease()
    shown.CopyFrom(receipt)
    if receipt.elements_omitted or _has_own_elements(receipt):
        return shown
    if kept is None:
        shown.ClearField("elements")
        shown.elements_omitted = True
        return shown
    first = slice(receipt.result.shown.element_count)
    shown.elements.columns.extend(rows_of(column, first) for column in kept.content.elements.columns)
    if receipt.result.shown.interval_kind != dp_pb2.INTERVAL_KIND_NONE:
        shown.elements.noisy_counts.extend(kept.content.elements.noisy_counts[first])
        shown.elements.noisy_numerators.extend(kept.content.elements.noisy_numerators[first])
    return shown


def _has_own_elements(shown: app_pb2.PastRelease) -> bool:
    parameters = shown.result.shown.parameters
    return (
        parameters.bounded.sums.HasField("ordered_by")
        or parameters.quantiles.HasField("ordered_by")
        or parameters.in_element_order
        or parameters.smallest_first
        or bool(parameters.having)
    )
