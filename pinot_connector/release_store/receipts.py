"""Receipts as results again: the elements come from the kept release, the rest from the receipt."""

from __future__ import annotations

from dataclasses import dataclass

from gris_api.app.v1 import app_pb2
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.release_store.interface import DAY, KeptRelease, Microseconds

MAX_PAGE_BYTES = 3 * 2**20
_FIELDS = {"strings": "values", "int64s": "values", "bools": "values", "dates": "days"}


@dataclass(frozen=True)
class ReceiptLimits:
    """How many receipts are kept. They are only a list of what was shown: no limit removes a release or a payment.

    Attributes:
        days: How long a receipt is listed.
        per_account: How many of one account.
        megabytes: How large all of them may become. When they are, the accounts that keep most lose their oldest; an
            account loses nothing if it keeps no more than its share.
    """

    days: int = 35
    per_account: int = 1000
    megabytes: int = 1024

    def oldest(self, now: Microseconds) -> Microseconds:
        """Returns how old a receipt may be that is still listed."""
        return now - self.days * DAY


def without_elements(shown: app_pb2.PastRelease) -> app_pb2.PastRelease:
    """Returns what a receipt keeps of a result whose release is kept: of the elements, only the intervals."""
    receipt = app_pb2.PastRelease()
    receipt.CopyFrom(shown)
    del receipt.elements.columns[:]
    del receipt.elements.noisy_counts[:]
    return receipt


def with_elements(receipt: app_pb2.PastRelease, kept: KeptRelease | None) -> app_pb2.PastRelease:
    """Returns the result that a receipt is for; without the kept release, its elements are omitted."""
    shown = app_pb2.PastRelease()
    shown.CopyFrom(receipt)
    if receipt.elements_omitted:
        return shown
    if kept is None:
        shown.ClearField("elements")
        shown.elements_omitted = True
        return shown
    count = receipt.result.element_count
    for column in kept.content.elements.columns:
        shown.elements.columns.append(_first(column, count))
    if receipt.result.interval_kind != dp_pb2.INTERVAL_KIND_NONE:
        shown.elements.noisy_counts.extend(kept.content.elements.noisy_counts[:count])
    return shown


def _first(column: histogram_pb2.ElementColumn, count: int) -> histogram_pb2.ElementColumn:
    kind = column.WhichOneof("values")
    first = histogram_pb2.ElementColumn(name=column.name)
    if kind is not None:
        values = getattr(first, kind)
        values.SetInParent()
        getattr(values, _FIELDS[kind]).extend(getattr(getattr(column, kind), _FIELDS[kind])[:count])
    return first
