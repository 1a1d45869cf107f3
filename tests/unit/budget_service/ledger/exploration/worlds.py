"""Small worlds as data: requests that may each be sent once, at any time and in any order, while a clock ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from budget_service.ledger.act import Act
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import DAY, SECOND, Microseconds, Period
from budget_service.server.refunds import without_charge
from tests.support.budget_samples import ANALYST, COLLEAGUE, COMPANY, NOON, UNIT, limit

# The first tick is midnight, where the analysts' window ends; a reservation lapses at the second one after it was made,
# which is on the same day where a world has three.
TICK = 30 * SECOND
START: Microseconds = NOON + DAY // 2 - TICK
TTL = 2 * TICK
# Names that differ in one character which nothing else has: see `explorer.key`.
BLOCKS = ("X", "Y")
WORST, USED = Cost(2, 1), Cost(1, 1)


@dataclass(frozen=True)
class World:
    """Who has which limit at first, and what may be asked.

    With `alike`, exchanging X and Y everywhere gives the same world.
    """

    name: str
    requests: tuple[Act, ...]
    limits: tuple[LevelLimit, ...]
    ticks: int = 2
    alike: bool = False

    def levels(self, account: Account, stored: Mapping[Account, Limit]) -> tuple[LevelLimit, ...]:
        """Return the limits of an account: those stored in the ledger before those of the beginning."""
        first = {each.level: each.limit for each in self.limits}
        found = ((level, stored.get(level, first.get(level))) for level in account.levels)
        return tuple([LevelLimit(level, each) for level, each in found if each is not None])


def question(
    name: str,
    *acts: str,
    blocks: tuple[str, ...] = (),
    account: Account = ANALYST,
    asks: str = "",
    worst: Cost = WORST,
    forfeits: bool = False,
    worst_case_above: bool = False,
) -> tuple[Act, ...]:
    """Return what may become of one question: its reservation and other acts. `asks` is the question if not its own."""
    about = asks or name
    common = partial(Charge, account=account, unit_id=UNIT, release_id=f"rel {about}", blocks=blocks)
    every: dict[str, Act] = {
        "reserve": Reserve(
            account=account,
            request_id=f"reserve {name}",
            max_cost=worst,
            unit_id=UNIT,
            query_id=about,
            ttl=TTL,
            reservation_id=f"hold {name}",
            forfeits=forfeits,
            blocks=blocks,
        ),
        "settle": common(
            request_id=f"settle {name}",
            cost=USED,
            reservation_id=f"hold {name}",
            query_id="",
            worst_case_above=worst_case_above,
        ),
        "cancel": CancelReservation(
            account=account, request_id=f"cancel {name}", reservation_id=f"hold {name}"
        ),
        "charge": common(request_id=f"charge {name}", cost=USED, reservation_id="", query_id=about),
        "refund": without_charge(account, f"rel {about}", "", f"refund {name}", actor="ops"),
        "again": without_charge(account, f"rel {about}", "", f"refund {name} again", actor="ops"),
    }
    return tuple([every[act] for act in acts])


def limited(id_: str, level: Account, limit: Limit) -> SetLimits:
    """Return an administrator's request to set a limit."""
    return SetLimits(account=COMPANY, request_id=id_, actor="ops", changes=((level, limit),))


HOLDING = ("reserve", "settle", "cancel")
CLOSE = CloseAccount(account=ANALYST, request_id="close", actor="ops", reason="")
REOPEN = ReopenAccount(account=ANALYST, request_id="reopen", actor="ops", reason="")
LOST = WriteOff(account=COMPANY, request_id="lost", actor="ops")
OWN, ABOVE = limit(5, 3, period=Period.DAY), limit(5, 9)
ON_BOTH = (LevelLimit(COMPANY, ABOVE), LevelLimit(ANALYST, OWN))

# Two blocks and everybody, who takes more calls; the analyst's limit is lowered below what is spent.
BLOCKED = World(
    "blocks",
    (
        *question("X", "reserve", "settle", "refund", blocks=("X",), forfeits=True),
        *question("Y", "reserve", "settle", "refund", blocks=("Y",), forfeits=True),
        *question("all", "reserve", "settle", worst=Cost(1, 2)),
        limited("lower", ANALYST, limit(2, 2, period=Period.DAY)),
    ),
    ON_BOTH,
    alike=True,
)
# One question asked three times, directly too, paid for once and refunded twice; worst cases count above.
REPEATED = World(
    "repeats",
    (
        *question("1", "reserve", "settle", "refund", asks="q", worst_case_above=True, forfeits=True),
        *question("2", "reserve", "settle", "again", asks="q", blocks=("X",)),
        *question("3", "charge", asks="q"),
        limited("late", ANALYST, limit(2, 2, days=2)),
    ),
    ON_BOTH[:1],
)
# Two analysts under one level, the colleague without a limit of their own.
SHARED = World(
    "shared",
    (
        *question("1", *HOLDING, "refund"),
        *question("2", *HOLDING, account=COLLEAGUE, forfeits=True),
        *question("3", "charge", "refund", "again", account=COLLEAGUE),
        limited("lower", COMPANY, limit(3, 2)),
        limited("late", COLLEAGUE, limit(3, 9, period=Period.NEVER)),
        CLOSE,
    ),
    ON_BOTH,
)
# Who leaves while something is held, by a longer limit that comes late too. What was paid for on the day before is paid
# for again.
LEAVING = World(
    "leavers",
    (
        *question("1", *HOLDING, "refund", forfeits=True),
        *question("2", "charge", asks="1", blocks=("X",)),
        limited("late", ANALYST, limit(3, 9, period=Period.WEEK)),
        CLOSE,
    ),
    ON_BOTH,
    ticks=3,
)
# Who is closed while blocks hold something comes again, what is left above is written off, and a limit is only tracked.
RETURNING = World(
    "returns",
    (
        *question("X", *HOLDING, "refund", blocks=("X",), forfeits=True),
        *question("Y", *HOLDING, blocks=("Y",)),
        *question("all", "charge"),
        limited("track", ANALYST, replace(OWN, mode=Mode.TRACK)),
        LOST,
        CLOSE,
        REOPEN,
    ),
    ON_BOTH,
)
WORLDS = (BLOCKED, REPEATED, SHARED, LEAVING, RETURNING)
