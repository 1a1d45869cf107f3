"""Reading the state of an account without changing the ledger."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from budget_service.ledger.balances import Balance
from budget_service.ledger.block_sums import NONE_PAYING, Paying
from budget_service.ledger.case import has_too_many_blocks, shortage
from budget_service.ledger.currency import Currency
from budget_service.ledger.draft import Draft
from budget_service.ledger.level_status import status_of
from budget_service.ledger.outcomes import Exhausted, Held, LevelStatus, Reason, Refused, most_spent
from budget_service.ledger.state import HistoryNeededError, Snapshot
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost, LevelLimit
from budget_service.ledger.windows import Microseconds

# So many take some 10 ms.
BLOCKS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class AccountStatement:
    """Every level of an account that has a limit, from the widest, and the currency of its root.

    `limits_version` is the version of the root's stored limits, by which outdated limits are recognised. `ahead` is how
    far the root's time is ahead of the store's clock, and `time` is that time, which `stands_still` for so long
    (`RootRecord.stands_still_for`). `countable` is what the levels without a
    limit can still add up in 64 bits. `blocks` are the levels once more, for each block that has paid alone there, and
    under no name for every other one; a level without such blocks has nothing. `root_blocks` are those of which
    something is charged or held at the root. `closed` is the widest level of the
    account that is closed; no store knows it: it is found where the limits are looked up.
    """

    currency: Currency
    levels: tuple[LevelStatus, ...]
    limits_version: int = 0
    ahead: Microseconds = 0
    time: Microseconds = 0
    stands_still: Microseconds = 0
    countable: Cost = Cost(MAX_AMOUNT, MAX_AMOUNT)  # noqa: RUF009 - it is frozen
    blocks: tuple[Mapping[str, LevelStatus], ...] = ()
    root_blocks: frozenset[str] = frozenset()
    closed: Account | None = None

    def seen_by(self, blocks: tuple[str, ...]) -> AccountStatement:
        """Return the statement with every level as it is for some blocks, none: for everybody."""
        if not blocks:
            return self

        def seen(level: LevelStatus, paid: Mapping[str, LevelStatus]) -> LevelStatus:
            return most_spent([paid.get(block, paid[""]) for block in blocks]) if paid else level

        levels = tuple([seen(*each) for each in zip(self.levels, self.blocks, strict=True)])
        return dataclasses.replace(self, levels=levels)


async def account_statement(
    snapshot: Snapshot,
    account: Account,
    levels: tuple[LevelLimit, ...],
    now: Microseconds,
    pause: Callable[[], Awaitable[None]],
) -> AccountStatement:
    """Return the state of an account at `now`.

    Args:
        snapshot: Its `root`, `clock`, `due`, `due_further` and the balances of all levels of the account and of their
            blocks are enough.
        account: The account.
        levels: The levels of the account that have a limit.
        now: The ledger's time.
        pause: Awaited again and again where there are many blocks: others have their turns.

    Raises:
        HistoryNeededError: It needs the past days too.
    """
    if snapshot.due_further:
        # Nothing is ended by reading, and so nothing is left to a next step either.
        if snapshot.past is None:
            raise HistoryNeededError
        lapsed = tuple(each for each in snapshot.reservations if each.expires_at <= now)
        snapshot = replace(snapshot, due=lapsed)
    limited = {each.level for each in levels}
    unlimited = {level: blocks for level, blocks in snapshot.blocks.items() if level not in limited}
    draft = Draft(replace(snapshot, blocks=unlimited), levels, now, account.levels)
    found = [await _of_blocks(draft, each, snapshot.blocks.get(each.level, ()), pause) for each in levels]
    root = snapshot.root
    stands_still = root.stands_still_for(snapshot.clock)
    of_root = snapshot.blocks.get(account.level(1), ())
    return AccountStatement(
        draft.currency,
        tuple([level for level, _ in found]),
        root.limits_version,
        root.ahead + stands_still,
        time=now,
        stands_still=stands_still,
        countable=draft.countable(),
        blocks=tuple([blocks for _, blocks in found]),
        root_blocks=frozenset([each.block for each in of_root if not draft.balances[each].is_unused]),
    )


async def _of_blocks(
    draft: Draft, each: LevelLimit, blocks: Collection[Account], pause: Callable[[], Awaitable[None]]
) -> tuple[LevelStatus, Mapping[str, LevelStatus]]:
    """Return the status of a level for everybody, and for each block that has paid alone there.

    Under no name it is the status for every other block; a level without such blocks has none.
    """
    balance, since, every = draft.balances[each.level], draft.currency.since, [*blocks]
    pages = [every[first : first + BLOCKS_AT_ONCE] for first in range(0, len(every), BLOCKS_AT_ONCE)]
    paying, found = NONE_PAYING, dict[str, LevelStatus]()
    for page in pages:
        draft.refresh_blocks(each, page)
        paying = paying.beside(Paying.of([draft.balances[block] for block in page], since))
        await pause()

    def status(*own: Balance) -> LevelStatus:
        return status_of(each, balance, replace(Paying.of(own, since), old=paying.old), since)

    for page in pages:
        own = {block.block: draft.balances[block] for block in page}
        found |= {block: status(paid) for block, paid in own.items() if not paid.is_empty}
        await pause()
    return status_of(each, balance, paying, since), found and {"": status()} | found


def check(
    found: AccountStatement,
    cost: Cost,
    unit_id: str,
    account: Account,
    blocks: tuple[str, ...] = (),
) -> Exhausted | Held | Refused | None:
    """Return why `cost` could not be paid now, by some blocks or by everybody: None if it would be allowed.

    Another currency is refused, and so are more blocks than a root may have, and a sum beyond 64 bits.
    """
    if found.currency.unit_id not in ("", unit_id):
        return Refused(Reason.UNIT_MISMATCH)
    added = len(found.root_blocks.union(blocks)) - len(found.root_blocks)
    if found.closed is None and has_too_many_blocks(len(found.root_blocks), added):
        return Refused(Reason.TOO_MANY_BLOCKS)
    levels = found.seen_by(blocks).levels
    if refusal := shortage(levels, cost, account, found.time, found.stands_still):
        return refusal
    fits = cost.within(found.countable) and all(cost.fits_above(each.spent, each.reserved) for each in levels)
    return None if fits or found.closed is not None else Refused(Reason.SUM_OVERFLOW)
