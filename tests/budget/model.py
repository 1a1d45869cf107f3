"""The ledger in a few dozen lines: lists that are added up anew each time, for days in UTC and one root account."""

from __future__ import annotations

from dataclasses import dataclass, field

from budget_service.ledger.requests import Charge, Request, Reserve
from budget_service.ledger.values import Account, Cost, LevelLimit, Mode
from budget_service.ledger.windows import DAY, Microseconds

Told = tuple[object, ...]
Sums = tuple[int, int]


@dataclass(frozen=True)
class Held:
    """An open reservation."""

    request: Reserve
    day: int
    cost: Cost
    paid_release_id: str
    ends_at: Microseconds


@dataclass
class Model:
    """`spent` is a list of (account, day, cost); the answers are short tuples."""

    now: Microseconds = 0
    unit_id: str = ""
    spent: list[tuple[Account, int, Cost]] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    paid: dict[tuple[Account, int, str, str], str] = field(default_factory=dict)
    told: dict[str, tuple[str, Told]] = field(default_factory=dict)

    def tell(self, request: Request, clock: Microseconds) -> Told:
        """Answer a request."""
        if request.request_id in self.told:
            content, told = self.told[request.request_id]
            return told if content == request.fingerprint() else ("REQUEST_ID_REUSED",)
        self.advance(clock)
        told = self._decide(request)
        self.told[request.request_id] = (request.fingerprint(), told)
        return told

    def advance(self, clock: Microseconds) -> None:
        """Let time pass and reservations lapse."""
        self.now = max(self.now, clock)
        for id_, hold in list(self.held.items()):
            if hold.ends_at <= self.now:
                del self.held[id_]
                self.spent += [(hold.request.account, hold.day, hold.cost)] if hold.request.forfeits else []

    def used(self, level: Account) -> tuple[Sums, Sums]:
        """Return what is spent and what is held today."""
        spent = [cost for account, day, cost in self.spent if day == self.today and _below(account, level)]
        holds = [hold for hold in self.held.values() if hold.day == self.today]
        return _sum(spent), _sum([hold.cost for hold in holds if _below(hold.request.account, level)])

    @property
    def today(self) -> int:
        """The number of the day."""
        return self.now // DAY

    def _decide(self, request: Request) -> Told:
        if isinstance(request, Reserve | Charge) and self.unit_id not in ("", request.unit_id):
            return ("UNIT_MISMATCH",)
        if isinstance(request, Reserve):
            return self._reserve(request)
        hold = self.held.get(request.reservation_id)
        if isinstance(request, Charge) and (hold or not request.reservation_id):
            return self._charge(request, hold)
        if hold is None:
            return ("RESERVATION_OVER",)
        return ("released", self.held.pop(request.reservation_id).cost)

    def _reserve(self, request: Reserve) -> Told:
        recorded = self._paid(request, "query", request.query_id)
        if not recorded and not self._fits(request.levels, request.max_cost):
            return ("exhausted",)
        cost = Cost(0, 0) if recorded else request.max_cost
        self.held[request.reservation_id] = Held(request, self.today, cost, recorded, self.now + request.ttl)
        self.unit_id = request.unit_id
        return ("reserved", cost, bool(recorded))

    def _charge(self, request: Charge, hold: Held | None) -> Told:
        query_id = hold.request.query_id if hold else request.query_id
        known = {self._paid(request, "query", query_id), hold.paid_release_id if hold else ""} - {""}
        free = bool(hold and hold.paid_release_id) or bool(self._paid(request, "release", request.release_id))
        if known - {request.release_id}:
            return ("RELEASE_MISMATCH",)
        if not free and hold and not request.cost.within(hold.cost):
            return ("COST_ABOVE_RESERVATION",)
        if not free and not hold and not self._fits(request.levels, request.cost):
            return ("exhausted",)
        self.held.pop(request.reservation_id, None)
        self.unit_id = request.unit_id
        if free:
            return ("charged", Cost(0, 0), True)
        self._spend(request, query_id, hold.day if hold else self.today)
        return ("charged", request.cost, False)

    def _spend(self, request: Charge, query_id: str, day: int) -> None:
        self.spent.append((request.account, day, request.cost))
        for kind, id_ in (("release", request.release_id), ("query", query_id)):
            if request.release_id and id_:
                self.paid[request.account, day, kind, id_] = request.release_id

    def _paid(self, request: Reserve | Charge, kind: str, id_: str) -> str:
        return self.paid.get((request.account, self.today, kind, id_), "")

    def _fits(self, levels: tuple[LevelLimit, ...], cost: Cost) -> bool:
        enforced = [each for each in levels if each.limit.mode is Mode.ENFORCE]
        return all(_room(self.used(each.level), each.limit.maximum, cost) for each in enforced)


def _below(account: Account, level: Account) -> bool:
    return account.path[: level.depth] == level.path


def _sum(costs: list[Cost]) -> Sums:
    return sum(cost.information for cost in costs), sum(cost.calls for cost in costs)


def _room(used: tuple[Sums, Sums], maximum: Cost, cost: Cost) -> bool:
    units = zip(_sum([maximum]), _sum([cost]), *used, strict=True)
    return all(asked == 0 or spent + held + asked <= most for most, asked, spent, held in units)
