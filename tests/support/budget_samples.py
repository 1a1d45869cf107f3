"""Accounts, limits and requests for the tests; every builder takes only what the test is about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from budget_service.ledger.act import Act
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import DAY, SECOND, Microseconds, Period, WindowRule, microseconds_of

UNIT = "0123456789abcdef" * 2
OTHER_UNIT = "f" * 32
NOON = microseconds_of(datetime(2026, 10, 14, 12, tzinfo=UTC))

COMPANY = Account(("acme",))
ANALYST = Account(("acme", "ann"))
COLLEAGUE = Account(("acme", "bob"))


def statement(*numbers: int) -> str:
    """Return the statement of a policy with one published domain for each number, which is the domain's id."""
    return ",".join(f"{number:016x}:1/10:1/1000000000" for number in sorted(numbers))


ONE = statement(1)
UNREADABLE_STATEMENTS = (
    "hello",
    "ä" * 2048 + "x",
    statement(*range(200)),
    f"{ONE},{ONE}",
    f"{statement(2)},{ONE}",
    f"{ONE},",
    f"{ONE}\n",
    f" {ONE}",
    "0" * 15 + ":1/10:1/9",
    "0" * 65 + ":1/10:1/9",
    "A" * 16 + ":1/10:1/9",
    "a" * 16 + ":1/10:1",
    "a" * 16 + ":01/10:1/9",
    "a" * 16 + ":0:1/9",
    "a" * 16 + ":1/0:1/9",
    "a" * 16 + ":2/10:1/9",
    "a" * 16 + ":1/10:2/18",
    "a" * 16 + ":1/10:9/8",
    "a" * 16 + f":{10**24 + 1}:1/9",
    "a" * 16 + ":1/10:\u0661/9",
)


RequestT_co = TypeVar("RequestT_co", bound=Act, covariant=True)


class Asked(NamedTuple, Generic[RequestT_co]):
    """A request, and the limits that it is decided by: what `Store.apply` takes."""

    request: RequestT_co
    limits: AppliedLimits

    def but(self, **fields: Any) -> Asked[RequestT_co]:
        """Return the same with other fields of the request."""
        request: Any = self.request
        return Asked(replace(request, **fields), self.limits)

    def by(self, limits: AppliedLimits) -> Asked[RequestT_co]:
        """Return the same request, decided by other limits."""
        return Asked(self.request, limits)


@dataclass
class SteppedClock:
    """A clock that stands still until a test moves it."""

    now: Microseconds = NOON

    def __call__(self) -> Microseconds:
        """Tell the time."""
        return self.now

    def step(self, *, seconds: float = 0, days: int = 0) -> None:
        """Move the clock; backwards too."""
        self.now += int(seconds * SECOND) + days * DAY


def limit(
    information: int,
    calls: int,
    *,
    mode: Mode = Mode.ENFORCE,
    period: Period = Period.MONTH,
    zone: str = "UTC",
    days: int = 0,
) -> Limit:
    """Return a limit; by default one that is enforced each month, with `days` one that slides."""
    rule = WindowRule(Period.SLIDING if days else period, zone, days)
    return Limit(Cost(information, calls), mode, rule)


def levels(
    account: Account = ANALYST, own: Limit | None = None, above: Limit | None = None
) -> tuple[LevelLimit, ...]:
    """Return the limits of an account and, if wanted, of the level above it."""
    found = [] if above is None else [LevelLimit(account.level(1), above)]
    return (*found, LevelLimit(account, own or limit(10, 5)))


def reserve(
    id_: str,
    cost: Cost = Cost(4, 1),  # noqa: B008 - a frozen value
    *,
    account: Account = ANALYST,
    on: tuple[LevelLimit, ...] | None = None,
    query_id: str = "",
    ttl_seconds: int = 60,
    unit_id: str = UNIT,
    forfeits: bool = False,
) -> Asked[Reserve]:
    """Return a request to hold a cost; its reservation is called `hold-` and the request id."""
    request = Reserve(
        account=account,
        request_id=id_,
        max_cost=cost,
        unit_id=unit_id,
        query_id=query_id or f"query-{id_}",
        ttl=ttl_seconds * SECOND,
        reservation_id=f"hold-{id_}",
        forfeits=forfeits,
    )
    return Asked(request, AppliedLimits(on or levels(account)))


def charge(
    id_: str,
    cost: Cost = Cost(4, 1),  # noqa: B008 - a frozen value
    *,
    account: Account = ANALYST,
    on: tuple[LevelLimit, ...] | None = None,
    settles: str = "",
    release_id: str = "",
    query_id: str = "",
    unit_id: str = UNIT,
    policy_statement: str = "",
) -> Asked[Charge]:
    """Return a request to charge a cost, directly or against the reservation of the request `settles`."""
    request = Charge(
        account=account,
        request_id=id_,
        cost=cost,
        unit_id=unit_id,
        reservation_id=f"hold-{settles}" if settles else "",
        release_id=release_id,
        query_id=query_id,
        policy_statement=policy_statement,
    )
    return Asked(request, AppliedLimits(on or levels(account)))


def cancel(
    id_: str, ends: str, *, account: Account = ANALYST, on: tuple[LevelLimit, ...] | None = None
) -> Asked[CancelReservation]:
    """Return a request to cancel the reservation of the request `ends`."""
    request = CancelReservation(account=account, request_id=id_, reservation_id=f"hold-{ends}")
    return Asked(request, AppliedLimits(on or levels(account)))
