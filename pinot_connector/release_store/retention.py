"""How long releases are kept. Only the ledger's time decides: the start of the latest window that it has reported.

That time is never ahead of the ledger's clock, so a machine whose clock jumps removes nothing too early.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from pinot_connector.budgets import Level
from pinot_connector.release_store.interface import DAY, KEPT_AFTER_WINDOW, Microseconds, Payment

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
# No window that slides is longer than 400 days. Within such a time the ledger may still name the release as paid.
UNPAID_KEPT: Microseconds = 400 * DAY + KEPT_AFTER_WINDOW


def is_removable(
    ledger_time: Microseconds,
    written_at: Microseconds,
    payments: Iterable[Payment],
    *,
    can_be_asked_about: bool,
) -> bool:
    """Returns whether a release may be removed.

    Args:
        ledger_time: The start of the latest window that the ledger has reported.
        written_at: The same when the release was written; 0: it had reported none by then.
        payments: The payments for it.
        can_be_asked_about: Whether the policy fixes its version of the data, and its noise key is in use. Another
            version is asked about only while the engine reports it; the rows that lead to it are the same then, so
            that the release is drawn again as it was.
    """
    if can_be_asked_about:
        return False
    ends = [payment.window_end for payment in payments]
    if any(end is None for end in ends):
        return False
    lasts = [end for end in ends if end is not None]
    if not lasts:
        return written_at > 0 and ledger_time >= written_at + UNPAID_KEPT
    return ledger_time >= max(lasts) + KEPT_AFTER_WINDOW


def later(known: Payment | None, payment: Payment) -> Payment:
    """Returns the payment whose window lasts longer."""
    if known is None or payment.window_end is None:
        return payment
    return known if known.window_end is None or known.window_end > payment.window_end else payment


def payment_of(levels: Sequence[Level]) -> Payment | None:
    """Returns the window that a charge was made in: that of the level closest to the account.

    Of a sliding window the ledger reports the end at which its oldest charge leaves, which is not later than that of
    this one.
    """
    if not levels or levels[-1].window_start is None:
        return None
    end = levels[-1].window_end
    return Payment(_microseconds(levels[-1].window_start), None if end is None else _microseconds(end))


def _microseconds(timestamp: datetime.datetime) -> Microseconds:
    return (timestamp - _EPOCH) // _MICROSECOND
