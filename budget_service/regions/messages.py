"""What a region and its home say to each other, and how the region reaches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.outcomes import LevelStatus, Refused
from budget_service.ledger.values import Cost
from budget_service.ledger.windows import Microseconds
from budget_service.regions.lease import Lease, NotLent, RegionTotal


class HomeUnavailableError(Exception):
    """The home did not answer; what was sent may have arrived."""


class HomeRefusedError(Exception):
    """The home refused, and will again: the text is its reason.

    It `concerns_region` if the home refuses whatever this region asks, for any account.
    """

    def __init__(self, reason: str, *, concerns_region: bool = False) -> None:
        super().__init__(reason)
        self.concerns_region = concerns_region


class LeaseRefusedError(Exception):
    """The home ledger takes no report of a lease, or does not take it back: it is another region's."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.reason.value)
        self.refusal = refusal


class Granted(Struct, frozen=True, kw_only=True):
    """A lease as the home has granted it; the times are the home's."""

    share: Cost
    granted_at: Microseconds
    ends_at: Microseconds
    window_start: Microseconds
    window_end: Microseconds | None
    is_sole: bool
    levels: tuple[LevelStatus, ...]


class Reported(Struct, frozen=True):
    """A charge that the home has recorded, for `charged`; `is_known`: it came out of its lease, or counted already.

    `is_copied`: the home knows another start of the region's ledger that goes on.
    """

    charged: Cost
    is_known: bool
    is_copied: bool = False


class Home(Protocol):
    """The home ledger as a region asks it. Every method raises HomeUnavailableError and HomeRefusedError."""

    async def borrow(self, lease: Lease, wanted: Cost, own: RegionTotal, last: str = "") -> Granted | NotLent:
        """Ask for a lease from which `wanted` can be granted; `last` is the one that was granted last in its root."""

    async def report(self, charges: Sequence[ReportCharge]) -> Sequence[Reported]:
        """Have charges recorded, those of a lease in their order. A charge that is sent again counts once."""

    async def give_back(self, lease: Lease, charged: Cost | None) -> Cost | None:
        """Give back what is left of a lease after its reported charges; None if it is over, or never was.

        `charged` is all that was charged from it, if that is certain: then what has lapsed is given back too.
        """
