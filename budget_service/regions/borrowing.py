"""How a region borrows: one request at a time for each budget, none for a while after a "no", and what it warns of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.ledger.windows import DAY, SECOND, Microseconds
from budget_service.regions.counters import RegionCounters
from budget_service.regions.lease import (
    Lease,
    LeaseState,
    NotLent,
    RegionTerms,
    RegionTotal,
    clock_difference,
    clocks_agree,
)
from budget_service.regions.messages import Granted, Home, HomeRefusedError, HomeUnavailableError
from budget_service.regions.records import RegionRecords
from budget_service.stores.interface import Clock, StoreError

# How long a home that lends nothing is not asked again for the same account.
PAUSE: Microseconds = 2 * SECOND
# More pauses are looked through for those that are over.
KEPT_PAUSES = 10_000
LOGGED_EVERY: Microseconds = 60 * SECOND
# A home remembers what it has granted for 35 days after its end.
REMEMBERED: Microseconds = 30 * DAY

Budget: TypeAlias = tuple[Account, str]

log = logging.getLogger(__name__)


class Borrowing:
    """Asks the home for leases.

    Args:
        records: Where leases are written before they are asked for.
        home: The home ledger.
        clock: The clock of the region's ledger.
        terms: How far clocks may differ.
        draw: Makes ids that nobody can guess.
        counters: Where to count.
        granted: Called with each lease that may be granted from.
        set_back: Called with a root of which the home has forgotten what it lent.
        copied: Called when the home knows another start of the region's ledger that goes on.
    """

    def __init__(
        self,
        records: RegionRecords,
        home: Home,
        clock: Clock,
        *,
        terms: RegionTerms,
        draw: Callable[[], str],
        counters: RegionCounters,
        granted: Callable[[Lease], None],
        set_back: Callable[[str], None],
        copied: Callable[[], None],
    ) -> None:
        self._records, self._home, self._clock, self._terms = records, home, clock, terms
        self._draw, self._counters = draw, counters
        self._granted, self._set_back, self._copied = granted, set_back, copied
        self._asking: set[str] = set()
        # By lease that this process has asked for: the most that it has seen to be charged from it.
        self.charged: dict[str, Cost] = {}
        self._running: dict[Budget, asyncio.Task[Lease | None]] = {}
        self._not_before: dict[Budget, Microseconds] = {}
        self._last: dict[str, Lease] = {}
        self._logged: dict[str, Microseconds] = {}
        for each in records.leases.values():
            self._note_last(each)

    @property
    def home_time(self) -> Microseconds:
        """The latest time that the home has named: its clock shows no earlier one."""
        return max((each.granted_at for each in self._last.values()), default=0)

    def is_asking(self, lease: Lease) -> bool:
        """Return whether the home is being asked for a lease, so that it may still be granted."""
        return lease.lease_id in self._asking

    def begin(self, account: Account, unit_id: str, wanted: Cost) -> asyncio.Task[Lease | None] | None:
        """Begin to borrow, or return the request that is under way; None while the home is not to be asked."""
        budget = account, unit_id
        running = self._running.get(budget)
        if running is not None:
            return running
        if self._is_paused(budget):
            return None
        task = asyncio.get_running_loop().create_task(self._borrow(account, unit_id, wanted))
        self._running[budget] = task
        task.add_done_callback(lambda _: self._running.pop(budget, None))
        return task

    async def _borrow(self, account: Account, unit_id: str, wanted: Cost) -> Lease | None:
        asked = Lease(lease_id=self._draw(), account=account, unit_id=unit_id)
        self._asking.add(asked.lease_id)
        self.charged[asked.lease_id] = NOTHING
        try:
            return await self._ask(asked, wanted)
        except HomeRefusedError as error:
            self._pause(asked)
            if error.concerns_region and self._is_to_be_logged("lease.refused"):
                log.error(
                    "The home lends this region nothing.",
                    extra={"event": "lease.refused", "fields": {"reason": str(error)}},
                )
        except (HomeUnavailableError, StoreError):
            self._pause(asked)
        except Exception as error:
            log_internal_error(error)
        finally:
            self._asking.discard(asked.lease_id)
        return None

    async def _ask(self, asked: Lease, wanted: Cost) -> Lease | None:
        # What may have been granted has to be given back, even if this process ends before it is answered.
        await self._records.note(asked)
        own = self._records.own.get(asked.account, RegionTotal())
        sent = self._clock()
        self._counters.trips += 1
        found = await self._home.borrow(asked, wanted, own, self._last_of(asked.account.root))
        if isinstance(found, NotLent):
            if found is NotLent.SET_BACK:
                self._note_set_back(asked.account.root)
            if found is NotLent.COPIED:
                self._copied()
            self._pause(asked)
            await self._records.note(gone=(asked.lease_id,))
            return None
        lease = _as_granted(asked, found)
        self._counters.add("borrowed", lease.share)
        self._counters.clock_difference = clock_difference(sent, self._clock(), found.granted_at)
        if not clocks_agree(self._counters.clock_difference, self._terms):
            self._counters.wrong_clock += 1
            self._pause(asked)
            if self._is_to_be_logged("region.wrong_clock"):
                log.error(
                    "This clock and the home's differ by more than skew_seconds.",
                    extra={"event": "region.wrong_clock"},
                )
            lease = lease.retired()

        def with_share(own: RegionTotal) -> RegionTotal:
            return own.moved_to(lease.window_start, lease.window_end).plus(lease.share)

        await self._records.note(lease, own={asked.account: with_share})
        self._note_last(lease)
        if lease.state is LeaseState.RETIRING:
            return None
        self._granted(lease)
        return lease

    def _is_paused(self, budget: Budget) -> bool:
        until = self._not_before.get(budget, 0)
        # A clock that was set back must not lengthen the pause.
        if 0 < until - self._clock() <= PAUSE:
            return True
        self._not_before.pop(budget, None)
        return False

    def _pause(self, asked: Lease) -> None:
        """Ask for no more of a budget for a while."""
        self._not_before[asked.account, asked.unit_id] = self._clock() + PAUSE
        if len(self._not_before) > KEPT_PAUSES:
            self._not_before = {each: end for each, end in self._not_before.items() if end > self._clock()}

    def _note_last(self, lease: Lease) -> None:
        last = self._last.get(lease.account.root)
        if lease.granted_at and (last is None or last.granted_at <= lease.granted_at):
            self._last[lease.account.root] = lease

    def _last_of(self, root: str) -> str:
        """Return the lease by which a home ledger shows that it was not set back; empty if there is none."""
        last = self._last.get(root)
        return last.lease_id if last is not None and self._clock() - last.granted_at < REMEMBERED else ""

    def _note_set_back(self, root: str) -> None:
        self._counters.unknown += 1
        self._set_back(root)
        if self._is_to_be_logged("lease.unknown"):
            log.error(
                "The home does not know a lease that it has granted: it was set back.",
                extra={"event": "lease.unknown"},
            )

    def _is_to_be_logged(self, event: str) -> bool:
        """Return whether an event was not logged in the last minute."""
        now, last = self._clock(), self._logged.get(event)
        is_due = last is None or not 0 <= now - last < LOGGED_EVERY
        if is_due:
            self._logged[event] = now
        return is_due


def _as_granted(asked: Lease, found: Granted) -> Lease:
    return replace(
        asked,
        state=LeaseState.ACTIVE,
        share=found.share,
        rest=found.share,
        granted_at=found.granted_at,
        ends_at=found.ends_at,
        window_start=found.window_start,
        window_end=found.window_end,
        is_sole=found.is_sole,
        levels=found.levels,
    )
