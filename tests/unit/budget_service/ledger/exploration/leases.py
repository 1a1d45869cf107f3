"""Two regions that borrow from one home: answers are lost, leases lapse, and processes are started anew.

The home lends and takes back as `Lending` does, and both kinds of ledgers decide by the real rules. What a region does
with a lease, and when, is any order that `Region` and `LeaseMaintenance` may have. A region asks once, so that what its
own ledger has follows from what was charged, and is in no key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import structs

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.give_back import ReturnLease
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.outcomes import Answer, Charged
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit
from budget_service.ledger.windows import DAY, Microseconds, Period
from budget_service.regions.lease import Lease, LeaseState, LendingTerms, RegionTerms, RegionTotal
from budget_service.regions.lending import Lending
from budget_service.regions.messages import Granted
from budget_service.server.limit_cache import PLACEHOLDER_LIMIT
from tests.support.budget_samples import ANALYST, UNIT, limit
from tests.unit.budget_service.ledger.exploration.checks import differences
from tests.unit.budget_service.ledger.exploration.states import Answered, State, at_once, digest_of
from tests.unit.budget_service.ledger.exploration.worlds import BLOCKS, START, TICK, TTL, World

LENDING = LendingTerms(share_percent=50, outstanding_percent=100, length=TTL)
TERMS = RegionTerms()
MOST = 6
LEASED = World("leases", (), (LevelLimit(ANALYST, limit(MOST, MOST, period=Period.DAY)),))
# What a region charges, one after the other. The home charges the first.
CHARGES = (Cost(2, 1), Cost(1, 1))


@dataclass(frozen=True)
class Region:
    """What is on a region's disk, and whether the process that has borrowed still runs.

    Once its lease `is_over`, it knows that the home has taken back what was left.
    """

    name: str
    lease: Lease | None = None
    charged: tuple[Cost, ...] = ()
    runs_on: bool = True
    is_over: bool = False

    @property
    def total(self) -> Cost:
        """All that was charged from the lease."""
        return sum(self.charged, NOTHING)


@dataclass(frozen=True)
class Ledger:
    """The home ledger as `Lending` needs it."""

    home: State

    async def apply(self, request: Act) -> Answer:
        """Apply a request."""
        return self.home.ask(request)

    async def apply_anyway(self, request: Act) -> Answer:
        """Apply a request that grants nothing, also where there is no limit."""
        limits = self.home.limits(request.account)
        levels = limits.levels or (LevelLimit(request.account, PLACEHOLDER_LIMIT),)
        return self.home.ask(request, structs.replace(limits, levels=levels))

    async def has_answered(self, request: Reserve) -> bool:
        """Return whether there is an answer."""
        return (request.account.root, request.request_id) in self.home.store.remembered

    async def read(self, account: Account) -> AccountStatement:
        """Return the state of an account."""
        return await self.home.store.read(account, self.home.limits(account).levels)

    async def applied_to(self, account: Account) -> AppliedLimits:
        """Return the limits of an account."""
        return self.home.limits(account)


@dataclass
class Leases:
    """A home and its regions; `problem` is what was answered wrongly."""

    home: State = field(default_factory=lambda: State(LEASED))
    regions: dict[str, Region] = field(default_factory=lambda: {name: Region(name) for name in BLOCKS})
    ledgers: dict[str, State] = field(default_factory=lambda: {name: State(LEASED) for name in BLOCKS})
    problem: str = ""

    @property
    def trail(self) -> tuple[Any, ...]:
        """How this state was reached."""
        return self.home.trail

    def key(self) -> bytes:
        """Return what tells the state from others; the regions are alike."""
        remembered = [(id_, each.outcome) for (_, id_), each in self.home.store.remembered.items()]
        return digest_of(
            [*self.home.parts(), *map(msgspec.json.encode, [*remembered, *self.regions.values()])], alike=True
        )

    def following(self) -> Iterator[Leases]:
        """Return every state that one act leads to."""
        if self.home.now < START + TICK * LEASED.ticks:
            yield self._copied("tick", TICK)
        if "home" not in self.home.answers:
            yield self._charged_at_home("home")
        for region in self.regions.values():
            if not region.is_over:
                yield from self._following(region)

    def problems(self) -> Iterator[str]:
        """Say what is wrong: on no day is more charged, or counted, than the limit, or less counted than charged."""
        if self.problem:
            yield self.problem
        charged = Counter[tuple[Microseconds, int]]()
        for region in self.regions.values():
            if region.lease is not None:
                _add(charged, region.lease.granted_at, region.total)
        for each in self.home.answers.values():
            _add(charged, each.time, CHARGES[0])
        sums = self.home.journaled()
        for held in self.home.store.reservations.values():
            self.home.add(sums, held.account, held.holds, own=held.held, above=held.held)
        counted = {(day, unit): amount for (level, day, unit), amount in sums.items() if level == ANALYST}
        if max((*charged.values(), *counted.values()), default=0) > MOST:
            yield f"{charged} is charged and {counted} counts, above {MOST}"
        if any(amount > counted.get(key, 0) for key, amount in charged.items()):
            yield f"{charged} is charged, and {counted} counts"
        yield from map(str, differences(self.home.store))

    def _copied(self, act: str, later: Microseconds = 0) -> Leases:
        ledgers = {name: each.copied("", later) for name, each in self.ledgers.items()}
        return Leases(self.home.copied(act, later), {**self.regions}, ledgers)

    def _with(self, act: str, region: Region) -> Leases:
        after = self._copied(f"{region.name} {act}")
        after.regions[region.name] = region
        return after

    def _charged_at_home(self, name: str) -> Leases:
        after = self._copied(name)
        request = _charge(ANALYST, name, CHARGES[0])
        outcome = after.home.ask(request).outcome
        if isinstance(outcome, Charged):
            after.home.answers[name] = Answered(request, outcome, self.home.now)
        else:
            after.home.store.remembered.pop((ANALYST.root, name), None)
        return after

    def _following(self, region: Region) -> Iterator[Leases]:
        lease, now = region.lease, self.home.now
        if lease is None:
            yield from self._asking(region)
            return
        if region.runs_on:
            yield self._with("restarts", replace(region, runs_on=False))
        if lease.is_usable(now, TERMS) and len(region.charged) < len(CHARGES):
            yield self._charging(region, lease)
        if len(region.charged) > lease.reported:
            yield from self._reporting(region, lease)
        else:
            yield from self._returning(region, lease)

    def _asking(self, region: Region) -> Iterator[Leases]:
        asked = Lease(lease_id=f"of {region.name}", account=ANALYST, unit_id=UNIT)
        lost = self._with("asks, and hears nothing", replace(region, lease=asked))
        lending = Lending(Ledger(lost.home))
        found = at_once(lending.lend(asked, region.name, NOTHING, RegionTotal(), LENDING))
        yield lost
        heard = lost._copied("")
        heard.home.trail = (f"{region.name} asks", self.trail)
        heard.regions[region.name] = replace(region, is_over=True)
        if isinstance(found, Granted):
            lease = msgspec.structs.replace(
                asked,
                state=LeaseState.ACTIVE,
                share=found.share,
                rest=found.share,
                granted_at=found.granted_at,
                ends_at=found.ends_at,
                window_start=found.window_start,
                window_end=found.window_end,
            )
            heard.regions[region.name] = replace(region, lease=lease)
        yield heard

    def _charging(self, region: Region, lease: Lease) -> Leases:
        number = len(region.charged)
        after = self._with("charges", region)
        request = _charge(lease.local, f"{region.name} {number}", CHARGES[number])
        outcome = after.ledgers[region.name].ask(request, lease.applied(TERMS)).outcome
        if isinstance(outcome, Charged):
            after.regions[region.name] = replace(region, charged=(*region.charged, outcome.charged))
        return after

    def _reporting(self, region: Region, lease: Lease) -> Iterator[Leases]:
        number, name = lease.reported, f"{region.name} {lease.reported}"
        report = ReportCharge(
            account=ANALYST,
            lease_id=lease.lease_id,
            number=number + 1,
            cost=region.charged[number],
            unit_id=UNIT,
            release_id=f"rel {name}",
            query_id=name,
            region=region.name,
            made_as=name,
        )
        lost = self._with("reports, and hears nothing", region)
        outcome = lost.home.ask(report).outcome
        if not isinstance(outcome, Charged):
            lost.problem = "a report is refused"
            yield lost
            return
        yield lost
        reported = lease.after_report(outcome.charged, is_known=bool(outcome.levels))
        heard = self._with("reports", replace(region, lease=reported))
        heard.home.ask(report)
        yield heard

    def _returning(self, region: Region, lease: Lease) -> Iterator[Leases]:
        request = ReturnLease(
            account=ANALYST,
            lease_id=lease.lease_id,
            number=lease.reported,
            region=region.name,
            unit_id=UNIT,
            charged=region.total if region.runs_on else None,
        )
        for act, is_over in (("gives back, and hears nothing", False), ("gives back", True)):
            after = self._with(act, replace(region, lease=lease.retired(), is_over=is_over))
            was_granted = lease.state is not LeaseState.ASKED
            at_once(Lending(Ledger(after.home)).take_back(request, was_granted=was_granted))
            yield after


def _charge(account: Account, name: str, cost: Cost) -> Charge:
    return Charge(
        account=account,
        request_id=name,
        cost=cost,
        unit_id=UNIT,
        reservation_id="",
        release_id=f"rel {name}",
        query_id=name,
    )


def _add(charged: Counter[tuple[Microseconds, int]], time: Microseconds, cost: Cost) -> None:
    for unit, amount in enumerate((cost.information, cost.calls)):
        charged[time - time % DAY, unit] += amount
