"""Which ledgers this process has started itself, and how long it waits for them.

On a machine that does other things, such a ledger may not answer for a second, and there is no other one to ask.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_connector.channels import Timeouts
from pinot_connector.endpoints import Address

DEFAULT_TIMEOUTS = Timeouts()
SILENCE_SECONDS = 5.0

_ledgers: set[Address] = set()


def remember(ledger: str) -> None:
    """Keeps the address of a ledger that was started."""
    _ledgers.add(ledger)


def forget(ledger: str) -> None:
    """Forgets one that has ended: another program may have its address next."""
    _ledgers.discard(ledger)


def default_timeouts(ledger: Address) -> Timeouts:
    """Returns the time-outs of a client that is given none."""
    if ledger not in _ledgers:
        return DEFAULT_TIMEOUTS
    return replace(DEFAULT_TIMEOUTS, budget_silence=max(SILENCE_SECONDS, DEFAULT_TIMEOUTS.budget_silence))
