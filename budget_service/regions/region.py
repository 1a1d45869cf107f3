"""A region: grants from what it has borrowed, and asks the home for everything else.

It decides nothing by itself: `lease` has the rules of leases, and the region's ledger decides each request by the rules
of every ledger, with the lease as the account and its share as the limit.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.limits import NO_VERSION, AppliedLimits, LeaseBounds, LimitsChangedError
from budget_service.ledger.outcomes import Answer, Charged, LevelStatus, Reason, Refused
from budget_service.ledger.values import NOTHING, Account, Cost
from budget_service.ledger.windows import Microseconds
from budget_service.regions.borrowing import Borrowing, Budget
from budget_service.regions.counters import RegionCounters
from budget_service.regions.lease import (
    REPLAYS,
    Lease,
    LeaseState,
    RegionTerms,
    RegionTotal,
    applied,
    local_account,
    parse_reservation_name,
    payer,
    public_name,
    reservation_name,
)
from budget_service.regions.messages import Home
from budget_service.regions.records import PaidAtHome, RegionRecords
from budget_service.stores.interface import Clock, Store

# Of how many accounts the last known levels are kept, for answers that have none.
KEPT_LEVELS = 10_000
# How many leases that are gone are known by name: what is reserved under them holds nothing, but may be settled.
KEPT_NAMES = 10_000

Spending: TypeAlias = Reserve | Charge
Request: TypeAlias = Spending | CancelReservation

log = logging.getLogger(__name__)


@dataclass
class Region:
    """The leases of one region.

    Args:
        name: The region's name.
        store: The region's ledger.
        records: What it must not forget.
        home: The home ledger.
        clock: The clock of the region's ledger.
        terms: How it uses what it has borrowed.
        draw: Makes ids that nobody can guess.
    """

    name: str
    store: Store
    records: RegionRecords
    home: Home
    clock: Clock
    terms: RegionTerms = RegionTerms()  # noqa: RUF009 - it is frozen
    draw: Callable[[], str] = lambda: secrets.token_hex(16)
    counters: RegionCounters = field(default_factory=RegionCounters)
    using: Counter[str] = field(default_factory=Counter)
    last_used: dict[str, Microseconds] = field(default_factory=dict)
    unreported: set[str] = field(default_factory=set)
    copied: asyncio.Event = field(default_factory=asyncio.Event)
    _active: dict[Budget, str] = field(default_factory=dict)
    _borrowing: Borrowing = field(init=False)
    _levels: OrderedDict[Account, tuple[LevelStatus, ...]] = field(default_factory=OrderedDict)
    _named: dict[str, Lease] = field(default_factory=dict)
    _newest: dict[Account, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Go on with the recorded leases; whatever was charged before may not be reported yet."""
        self._borrowing = Borrowing(
            self.records,
            self.home,
            self.clock,
            terms=self.terms,
            draw=self.draw,
            counters=self.counters,
            granted=self._take,
            set_back=self._retire_all,
            copied=self.note_copied,
        )
        # The newest of an account is granted from, as before.
        for each in sorted(self.records.leases.values(), key=lambda each: each.granted_at):
            self.unreported.add(each.local.root)
            self._note_name(each)
            self._newest[each.account] = each.lease_id
            if each.state is LeaseState.ACTIVE:
                self._active[each.account, each.unit_id] = each.lease_id

    async def grant(self, request: Spending) -> Answer | None:
        """Answer a request that names no reservation if this region can; None: the home has to be asked."""
        answer = await self._granted(request, sole_only=True)
        if answer is None:
            answer = await self._replayed(request)
        if answer is None and not self._is_paid_at_home(request) and await self._borrowed(request):
            answer = await self._granted(request, sole_only=True)
        return answer

    async def spend_held(self, request: Spending) -> Answer | None:
        """Grant a new request from what is held though the home cannot be asked whether it was paid for elsewhere."""
        return await self._granted(request, sole_only=False)

    async def earlier_answer(self, charge: Charge) -> Answer | None:
        """Return the earlier answer of this region to the same charge, None if it has none."""
        parsed = parse_reservation_name(self.name, charge.reservation_id)
        return await self._earlier_answer(charge, charge.unit_id if parsed is None else parsed[0])

    async def _earlier_answer(self, request: Charge | CancelReservation, unit_id: str) -> Answer | None:
        # Answers are kept by root and currency, whatever lease they came from.
        local = local_account(request.account, unit_id, REPLAYS)
        limits = replace(self._replay_limits(local, request.account), version=NO_VERSION)
        try:
            return await self._decided(request, local, limits, None)
        except LimitsChangedError:
            return None

    def retire(self, account: Account) -> None:
        """Have the account's lease given back soon: its rest is wanted at the home."""
        for (found, _), lease_id in list(self._active.items()):
            if found == account:
                self.stop_granting(self.records.leases[lease_id])

    def note_copied(self) -> None:
        """Grant nothing more from any lease: another ledger has the same ones."""
        for lease_id in list(self._active.values()):
            self.stop_granting(self.records.leases[lease_id])
        if not self.copied.is_set():
            self.copied.set()
            log.error(
                "Another copy of this region's ledger goes on, so this one grants nothing more.",
                extra={"event": "region.copied"},
            )

    def stop_granting(self, lease: Lease) -> None:
        """Grant nothing from a lease from now on."""
        budget = lease.account, lease.unit_id
        if self._active.get(budget) == lease.lease_id:
            del self._active[budget]
        self.records.leases[lease.lease_id] = lease.retired()

    async def note_forwarded(self, charge: Charge, charged: Cost | None) -> None:
        """Remember what was paid for at the home, so that it is asked again for the same question."""
        self.counters.forwarded += 1
        own = self.records.own.get(charge.account)
        if charged is None or own is None:
            return
        names = [self._paid_name(charge.account, own, each) for each in _named(charge)]
        paid = PaidAtHome(own.window_start, own.window_end)
        await self.records.note(
            own={charge.account: lambda last: last.plus(charged)}, paid=dict.fromkeys(names, paid)
        )

    def is_idle(self, lease: Lease) -> bool:
        """Return whether nothing was granted from a lease for a while."""
        used = self.last_used.get(lease.lease_id, lease.granted_at)
        return 2 * (self.clock() - used) >= self.terms.idle

    def certainly_charged(self, lease: Lease, spent: Cost) -> Cost | None:
        """Return all that was charged from a lease from which nothing is granted any more, if that is certain.

        It is what the ledger says, to the process that has asked for the lease: a ledger or lease file that was
        restored, or copied, may lack charges, and only another process can have begun with it. What this one has seen
        is kept apart from the ledger, and must be there.
        """
        seen = self._borrowing.charged.get(lease.lease_id)
        return spent if seen is not None and seen.within(spent) else None

    def forget(self, lease: Lease) -> None:
        """Forget what is known of a lease that is gone."""
        for known in (self.last_used, self.using, self._borrowing.charged):
            known.pop(lease.lease_id, None)
        if self._newest.get(lease.account) == lease.lease_id:
            del self._newest[lease.account]

    def is_lent(self, account: Account) -> bool:
        """Return whether the home has lent this region a share of an account that is granted from."""
        lease = self.records.leases.get(self._newest.get(account, ""))
        return lease is not None and lease.is_usable(self.clock(), self.terms)

    def is_borrowing(self, lease: Lease) -> bool:
        """Return whether the home is being asked for a lease, so that it may still be granted."""
        return self._borrowing.is_asking(lease)

    @property
    def home_time(self) -> Microseconds:
        """The latest time that the home has named: its clock shows no earlier one."""
        return self._borrowing.home_time

    def reservation_id(self, lease_id: str, unit_id: str) -> str:
        """Draw the id of a reservation in this region's ledger."""
        return reservation_name(self.name, unit_id, lease_id, self.draw()[:16])

    async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
        """Return the question of a reservation that this region has given and that is open, else None."""
        local = self._reserved_under(account, reservation_id)
        return None if local is None else await self.store.query_id_of(local, reservation_id)

    def _reserved_under(self, account: Account, reservation_id: str) -> Account | None:
        """Return the account in the region's ledger that a reservation of an account can be of."""
        parsed = parse_reservation_name(self.name, reservation_id)
        if parsed is None:
            return None
        unit_id, name = parsed
        if name == REPLAYS:
            return local_account(account, unit_id, REPLAYS)
        lease = self._named.get(name)
        is_own = lease is not None and (lease.account, lease.unit_id) == (account, unit_id)
        return lease.local if lease is not None and is_own else None

    async def settle(self, request: Charge | CancelReservation) -> Answer | None:
        """Answer a request that names a reservation, None if only the home knows it."""
        parsed = parse_reservation_name(self.name, request.reservation_id)
        if parsed is None:
            return None
        local = self._reserved_under(request.account, request.reservation_id)
        lease = None if local is None else self.records.leases.get(local.path[1])
        if local is not None and lease is not None:
            return await self._decided(request, local, lease.applied(self.terms), lease)
        if local is None or await self.store.query_id_of(local, request.reservation_id) is None:
            # Whatever the id names, nothing is written under it.
            over = Answer(Refused(Reason.RESERVATION_OVER), replayed=False)
            return await self._earlier_answer(request, parsed[0]) or over
        return await self._decided(request, local, self._replay_limits(local, request.account), None)

    def _note_name(self, lease: Lease) -> None:
        self._named[public_name(lease.lease_id)] = lease
        if len(self._named) > 2 * len(self.records.leases) + KEPT_NAMES:
            self._named = {public_name(each.lease_id): each for each in self.records.leases.values()}

    async def _granted(self, request: Spending, *, sole_only: bool) -> Answer | None:
        lease = self._usable(request.account, request.unit_id)
        if lease is None or (sole_only and not lease.is_sole and _named(request)):
            return None
        if sole_only and self._is_paid_at_home(request):
            return None
        name = self.reservation_id(lease.lease_id, lease.unit_id)
        answer = await self._decided(request, lease.local, lease.applied(self.terms), lease, name)
        if answer is None:
            return None
        self.counters.granted += 1
        self.last_used[lease.lease_id] = self.clock()
        self._renew_in_time(lease, answer)
        return answer

    async def _replayed(self, request: Spending) -> Answer | None:
        """Answer what was answered before, or paid for here; nothing is granted."""
        local = local_account(request.account, request.unit_id, REPLAYS)
        name = self.reservation_id(REPLAYS, request.unit_id)
        return await self._decided(request, local, self._replay_limits(local, request.account), None, name)

    def _replay_limits(self, local: Account, account: Account) -> AppliedLimits:
        own = self.records.own.get(account, RegionTotal(window_end=0))
        end = own.window_end
        is_over = end is not None and self.clock() >= end - self.terms.skew
        # What was paid for in another window counts no more.
        paid_as = "" if is_over else payer(account, own.window_start)
        return applied(local, NOTHING, paid_as, LeaseBounds(0, end))

    async def _decided(
        self, request: Request, local: Account, limits: AppliedLimits, lease: Lease | None, new_name: str = ""
    ) -> Answer | None:
        """Have the region's ledger decide; None if the share does not hold it. A new reservation has this name."""
        asked = request.in_region(local, new_name)
        if lease is not None:
            self.using[lease.lease_id] += 1
        # A caller may leave while its charge is being committed: the lease is in use until the ledger has answered.
        task = asyncio.get_running_loop().create_task(self.store.apply(asked, limits))
        task.add_done_callback(lambda done: self._has_decided(done, lease, local.root))
        answer = await asyncio.shield(task)
        if answer.outcome == Refused(Reason.LEASE_SPENT):
            return None
        return self._shown(answer, lease, request.account)

    def _has_decided(self, done: asyncio.Task[Answer], lease: Lease | None, root: str) -> None:
        if lease is not None:
            self.using[lease.lease_id] -= 1
        self.unreported.add(root)
        if not done.cancelled():
            # Of a caller that has left, nobody else takes the error.
            done.exception()

    def _shown(self, answer: Answer, lease: Lease | None, account: Account) -> Answer:
        """Return an answer with the levels of the account instead of those of the lease."""
        outcome = answer.outcome
        if not isinstance(outcome, Charged):
            return answer
        if lease is None:
            return replace(answer, outcome=replace(outcome, levels=self._levels.get(account, ())))
        own = outcome.levels[-1]
        seen = self._borrowing.charged.get(lease.lease_id)
        if seen is not None and seen.within(own.spent):
            self._borrowing.charged[lease.lease_id] = own.spent
        levels = lease.shown(own.spent, own.reserved)
        self._keep_levels(account, levels)
        return replace(answer, outcome=replace(outcome, levels=levels))

    def _keep_levels(self, account: Account, levels: tuple[LevelStatus, ...]) -> None:
        self._levels[account] = levels
        self._levels.move_to_end(account)
        if len(self._levels) > KEPT_LEVELS:
            self._levels.popitem(last=False)

    def _usable(self, account: Account, unit_id: str) -> Lease | None:
        lease = self.records.leases.get(self._active.get((account, unit_id), ""))
        return lease if lease is not None and lease.is_usable(self.clock(), self.terms) else None

    def _renew_in_time(self, lease: Lease, answer: Answer) -> None:
        used = NOTHING
        if isinstance(answer.outcome, Charged) and lease.levels:
            used = answer.outcome.levels[-1].spent.less(lease.levels[-1].spent)
        if lease.needs_renewal(used, self.clock()):
            self._borrowing.begin(lease.account, lease.unit_id, NOTHING)

    async def _borrowed(self, request: Spending) -> bool:
        task = self._borrowing.begin(request.account, request.unit_id, request.wanted)
        if task is None:
            return False
        # One caller that leaves must not end what others wait for.
        lease = await asyncio.shield(task)
        return lease is not None and request.wanted.within(lease.share)

    def _take(self, lease: Lease) -> None:
        """Grant from a new lease in the place of the last one."""
        self._note_name(lease)
        budget = lease.account, lease.unit_id
        last = self.records.leases.get(self._active.get(budget, ""))
        self._active[budget] = self._newest[lease.account] = lease.lease_id
        self.last_used[lease.lease_id] = self.clock()
        if last is not None:
            self.counters.renewed += 1
            self.records.leases[last.lease_id] = last.retired()

    def _retire_all(self, root: str) -> None:
        """Grant nothing more of what the home has forgotten that it lent."""
        for each in list(self.records.leases.values()):
            if each.account.root == root and each.state is LeaseState.ACTIVE:
                self.stop_granting(each)

    def _is_paid_at_home(self, request: Spending) -> bool:
        own = self.records.own.get(request.account)
        if own is None:
            return False
        return any(
            self._paid_name(request.account, own, each) in self.records.paid for each in _named(request)
        )

    @staticmethod
    def _paid_name(account: Account, own: RegionTotal, named: str) -> str:
        return f"{payer(account, own.window_start)}//{named}"


def _named(request: Spending) -> list[str]:
    """Return the question and the release of a request, as far as it names them."""
    needs = request.needs()
    kinds = (("query", needs.questions), ("release", needs.releases))
    return [f"{kind}:{id_}" for kind, ids in kinds for id_ in ids if id_]
