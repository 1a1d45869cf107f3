"""A state of a small world: a ledger in dictionaries, the time, and what was answered.

States that no rule and no check tells apart have one key. Of an answer nothing is read but its kind and its amounts, so
the statuses of levels are left out; of the journal only what it adds up to, its newest time and the last charge of each
release. The version of the limits is compared with none but the present one, so that it only matters whether there is
one. Of what a level knows of its blocks there is only what it says: when they are read again changes no answer. What is
remembered is left out too: a retry is sent where an answer is given, at the end of the world. Where X and Y are alike,
exchanging them everywhere in a history gives a history, since the rules compare names only to order reservations that
lapse together, and the order changes no sum. Then both have one key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from msgspec.json import encode
from msgspec.structs import replace

from budget_service.ledger.act import Act
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Answer, Cancelled, Charged, LimitsSet, Outcome, Reserved
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account, Cost, Hold
from budget_service.ledger.windows import DAY, Microseconds
from budget_service.server.refunds import with_charge
from tests.support.budget_samples import COMPANY, SteppedClock
from tests.unit.budget_service.ledger.exploration.worlds import START, World
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.root_acts import RootAct

T = TypeVar("T")
GRANTED = Reserved | Charged | Cancelled | LimitsSet
# What was charged or held, by level, start of the day and unit.
Sums = Counter[tuple[Account, Microseconds, int]]
_EXCHANGED = bytes.maketrans(b"XY", b"YX")


class Answered(NamedTuple):
    """A request as it was sent, what was answered, and when."""

    request: Act
    outcome: Outcome
    time: Microseconds


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run what waits for nobody."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # it is what the coroutine returns


@dataclass(slots=True)
class State:
    """`answers` are by request id; refusals are none. `trail` is how the state was reached, last act first."""

    world: World
    store: MemoryStore = field(default_factory=lambda: MemoryStore(SteppedClock(START)))
    answers: dict[str, Answered] = field(default_factory=dict)
    trail: tuple[Any, ...] = ()

    @property
    def now(self) -> Microseconds:
        """The time."""
        return self.store.clock()

    def copied(self, act: str, later: Microseconds = 0) -> State:
        """Return a state to go on from: every value in the dictionaries is frozen."""
        old = self.store
        store = MemoryStore(
            SteppedClock(self.now + later) if later else old.clock,
            entries=[*old.entries],
            records={**old.records},
            kept={**old.kept},
            past={level: {**days} for level, days in old.past.items()},
            reservations={**old.reservations},
            remembered={**old.remembered},
            paid_queries={**old.paid_queries},
            paid_releases={**old.paid_releases},
            stored={**old.stored},
            closed={*old.closed},
            rows={**old.rows},
        )
        return State(self.world, store, {**self.answers}, (act, self.trail))

    def limits(self, account: Account) -> AppliedLimits:
        """Look up the limits that requests of an account are decided by."""
        stored = at_once(self.store.limits(account))
        return stored.applied_to(account, self.world.levels(account, stored.limits))

    def ask(self, request: Act, limits: AppliedLimits | None = None) -> Answer:
        """Send a request to the ledger, by its present limits."""
        if isinstance(request, RootAct):
            return at_once(self.store.apply(request, NO_LIMITS))
        return at_once(self.store.apply(request, limits or self.limits(request.account)))

    def following(self, request: Act) -> tuple[State, Answered]:
        """Return the state after a request that nothing was granted to, and what is answered."""
        if isinstance(request, Refund):
            request = at_once(with_charge(self.store, request))
        after = self.copied(request.request_id)
        answered = Answered(request, after.ask(request).outcome, self.now)
        if isinstance(answered.outcome, GRANTED):
            after.answers[request.request_id] = answered
        return after, answered

    def journaled(self) -> Sums:
        """Add up the journal."""
        sums: Sums = Counter()
        for entry in self.store.entries:
            sign = -1 if entry.kind is EntryKind.REFUNDED else entry.kind.is_charge
            if sign:
                above = entry.cost_at(entry.account.depth - 1)
                self.add(sums, entry.account, entry.holds, own=entry.cost, above=above, sign=sign)
        return sums

    def add(
        self, sums: Sums, account: Account, holds: tuple[Hold, ...], *, own: Cost, above: Cost, sign: int = 1
    ) -> None:
        """Add to sums what counts on some days."""
        for hold in holds:
            level, cost = hold.level_of(account), own if hold.depth == account.depth else above
            sums[level, hold.window_start, 0] += sign * cost.information
            sums[level, hold.window_start, 1] += sign * cost.calls

    def key(self) -> bytes:
        """Return what tells the state from others."""
        return digest_of(self.parts(), alike=self.world.alike)

    def parts(self) -> list[bytes]:
        """Return what tells the state from others, in any order."""
        store = self.store
        root, newest = store.records.get(COMPANY.root), max([each.time for each in store.entries], default=0)
        charges = [each for each in store.entries if each.kind.is_charge and each.release_id]
        last = {each.release_id: each.request_id for each in charges}
        return [
            encode((self.now, root and replace(root, limits_version=min(root.limits_version, 1)), newest)),
            *[encode(("spent", *each)) for each in self.journaled().items() if each[1]],
            *[encode(("kept", *each)) for each in store.kept.items()],
            *[
                encode(("blocks", level, row.known.paying.sums, row.known.count))
                for level, row in store.rows.items()
            ],
            *[encode(("past", level, day)) for level, days in store.past.items() for day in days.values()],
            *[encode(("open", each)) for each in store.reservations.values()],
            *[encode(("query", *each)) for each in store.paid_queries.items()],
            *[encode(("paid", *each)) for each in store.paid_releases.items()],
            *[encode(("limit", *each)) for each in store.stored.items()],
            *[encode(("closed", each)) for each in store.closed],
            *[encode(("last", *each)) for each in last.items()],
            *[encode((id_, *_content(each))) for id_, each in self.answers.items()],
        ]


def digest_of(parts: list[bytes], *, alike: bool) -> bytes:
    """Return one key of the parts of a state, and where X and Y are `alike`, of those of its exchange."""
    found = b"\n".join(sorted(parts))
    if alike:
        found = min(found, b"\n".join(sorted([each.translate(_EXCHANGED) for each in parts])))
    return blake2b(found, digest_size=16).digest()


def _content(answered: Answered) -> tuple[Any, ...]:
    """Return what of an answer makes a difference."""
    request, outcome, time = answered
    match outcome:
        case Reserved():
            return request.account, outcome.held, outcome.expires_at
        case Charged():
            return request.account, outcome.charged, outcome.already_paid, time - time % DAY
    return (request.account,)
