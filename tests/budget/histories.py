"""Random histories of requests, for the model test and for the conformance of stores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from hypothesis import strategies as st

from budget_service.ledger.requests import Charge, Release, Request, Reserve
from budget_service.ledger.values import Account, Cost, LevelLimit, Mode
from budget_service.ledger.windows import Period
from budget_service.stores.interface import Store
from tests.budget.samples import ANALYST, OTHER_UNIT, SteppedClock, charge, limit, release, reserve

# The company allows less than its two analysts together; the third one only tracks.
OWN = limit(12, 6, period=Period.DAY)
ABOVE = limit(20, 10, period=Period.DAY)
TRACKED = limit(5, 2, mode=Mode.TRACK, period=Period.DAY)
NAMES = ("ann", "bob", "{eve}")


class Act(Enum):
    """What a step of a history does."""

    RESERVE = "reserve"
    SETTLE = "settle"
    DEDUCT = "deduct"
    GIVE_BACK = "give back"
    REPEAT = "repeat"
    REUSE = "reuse"
    FOREIGN = "foreign currency"
    WAIT = "wait"


@dataclass(frozen=True)
class Step:
    """One step; each act uses the numbers it needs, so that a failing history shrinks well."""

    act: Act
    who: int
    cost: Cost
    pick: int
    name: int
    seconds: int


# Most waits stay within a time to live; some cross a day, and some go back.
WAITS = st.one_of(st.integers(0, 40), st.integers(-100, 200), st.integers(40_000, 90_000))
COSTS = st.builds(Cost, st.integers(0, 7), st.integers(0, 3))
STEPS = st.builds(
    Step, st.sampled_from(Act), st.integers(0, 2), COSTS, st.integers(0, 30), st.integers(0, 3), WAITS
)
HISTORIES = st.lists(STEPS, min_size=5, max_size=60)


@dataclass
class Player:
    """Turns steps into requests for the accounts of one root."""

    root: str
    clock: SteppedClock
    made: list[Request] = field(default_factory=list)

    def accounts(self) -> list[Account]:
        """Return the accounts a history speaks of."""
        return [Account((self.root, name)) for name in NAMES]

    def levels(self, account: Account) -> tuple[LevelLimit, ...]:
        """Return the limits of an account."""
        own = TRACKED if account.path[1] == NAMES[2] else OWN
        return (LevelLimit(account.level(1), ABOVE), LevelLimit(account, own))

    def play(self, step: Step) -> Request | None:
        """Return the request of a step; None if it only waits, or has nothing to speak of yet."""
        if step.act is Act.WAIT:
            self.clock.step(seconds=step.seconds)
            return None
        request = self._request(step)
        if request is not None:
            self.made.append(request)
        return request

    def _request(self, step: Step) -> Request | None:
        account = self.accounts()[step.who]
        levels = self.levels(account)
        id_ = f"id {len(self.made)}"
        query_id = f"q{step.name}" if step.name else ""
        release_id = f"rel{step.name}" if step.pick % 5 else f"rel{step.pick}"
        match step.act:
            case Act.RESERVE:
                ttl = 1 + step.pick * 4
                forfeits = step.pick % 3 == 0
                asked = reserve(
                    id_, step.cost, account=account, on=levels, query_id=query_id, ttl_seconds=ttl
                )
                return replace(asked, forfeits=forfeits)
            case Act.DEDUCT:
                ids = {"release_id": release_id if step.name else "", "query_id": query_id}
                return charge(id_, step.cost, account=account, on=levels, **ids)
            case Act.FOREIGN:
                return charge(id_, step.cost, account=account, on=levels, unit_id=OTHER_UNIT)
        return self._about_an_earlier_one(step, id_, release_id)

    def _about_an_earlier_one(self, step: Step, id_: str, release_id: str) -> Request | None:
        if step.act in {Act.REPEAT, Act.REUSE} and self.made:
            earlier = self.made[-1 - step.pick % len(self.made)]
            return earlier if step.act is Act.REPEAT else _with_other_content(earlier)
        holds = [each for each in self.made if isinstance(each, Reserve)]
        if not holds or step.act not in {Act.SETTLE, Act.GIVE_BACK}:
            return None
        hold = holds[-1 - step.pick % min(5, len(holds))]
        account, levels = hold.account, hold.levels
        if step.act is Act.GIVE_BACK:
            return release(id_, ends=hold.request_id, account=account, on=levels)
        cost = hold.max_cost if step.name == 0 else step.cost
        settles = hold.request_id
        return charge(id_, cost, account=account, on=levels, settles=settles, release_id=release_id)


def _with_other_content(request: Request) -> Request:
    match request:
        case Reserve():
            return replace(request, query_id=request.query_id + "'")
        case Charge():
            return replace(request, release_id=request.release_id + "'")
        case Release():
            return replace(request, reservation_id=request.reservation_id + "'")


async def play_all_kinds_of_charges(store: Store, clock: SteppedClock) -> None:
    """Make one entry of each kind in the journal: forfeited, settled, direct; and a free charge, which makes none."""
    both = (LevelLimit(Account(("acme",)), ABOVE), LevelLimit(ANALYST, OWN))
    await store.apply(reserve("lapses", Cost(2, 1), on=both, forfeits=True, ttl_seconds=1))
    await store.apply(reserve("r", Cost(4, 1), on=both, query_id="q"))
    clock.step(seconds=2)
    await store.apply(charge("settles", Cost(3, 1), on=both, settles="r", release_id="rel"))
    await store.apply(charge("direct", Cost(1, 1), on=both, release_id="rel2", query_id="q2"))
    await store.apply(charge("free", Cost(1, 1), on=both, release_id="rel"))
