"""The limits that a request is decided by, and those that an administrator has set in the ledger, with their text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from budget_service.ledger.account_states import AccountState
from budget_service.ledger.values import Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import Microseconds, Period, WindowRule

# Bounds of one request and of one root account: everything that grows is bounded.
MAX_CHANGED_AT_ONCE = 1000
MAX_STORED_LIMITS = 100_000


class LimitsChangedError(Exception):
    """The limits are not those of the ledger. Look them up and apply the request again."""


class StoredLimits(Struct, frozen=True, gc=False):
    """Stored limits and states of the levels of an account. `version` is that of those of the whole root, 0 if none."""

    version: int = 0
    limits: Mapping[Account, Limit] = field(default_factory=dict)
    states: Mapping[Account, AccountState] = field(default_factory=dict)

    def applied_to(self, account: Account, levels: tuple[LevelLimit, ...]) -> AppliedLimits:
        """Return what requests of an account with these limited levels are decided by."""
        if not self.states:
            return AppliedLimits(levels, self.version)
        path = (account.level(depth) for depth in range(1, account.depth + 1))
        closed = (level for level in path if level in self.states and self.states[level].is_closed)
        own = self.states.get(account)
        first = own.former(account)[:1] if own is not None else ()
        return AppliedLimits(
            levels,
            self.version,
            closed=next(closed, None),
            is_moved=own is not None and own.is_over,
            paid_as=first[0].text if first else "",
        )


class LeaseBounds(Struct, frozen=True, gc=False):
    """Until when a region may grant from a lease, by its own clock, and when the window of the account ends.

    `window_end` is None if the budget is never refreshed.
    """

    ends_at: Microseconds
    window_end: Microseconds | None


class WouldChangeError(Exception):
    """What was decided without being done has another answer than one without effect."""


class AppliedLimits(Struct, frozen=True, gc=False):
    """The limits that a request is decided by, and the version of the root's stored limits that they were found with.

    `levels` are the levels of the account that have a limit, from the widest; a request about a budget needs at least
    one. `rules` are the windows of all limits that the root has, for a change of currency, or those that the account
    may have had by the configuration, to forget it. `most_stored` is how many limits and states of accounts a root may
    have stored. What an administrator asks of a root otherwise needs none: see NO_LIMITS. `closed` is the widest level
    of the account that is closed; the account itself `is_moved` if that is an earlier name, or one that is forgotten.
    `paid_as` is the first name of an account that was moved: its payments are kept under it. In a region the one level
    is a `lease`, whose share is the limit. A `dry_run` changes nothing, and its answer is without effect.
    """

    levels: tuple[LevelLimit, ...] = ()
    version: int = 0
    rules: tuple[WindowRule, ...] = ()
    most_stored: int = MAX_STORED_LIMITS
    closed: Account | None = None
    is_moved: bool = False
    paid_as: str = ""
    lease: LeaseBounds | None = None
    dry_run: bool = False

    def payer(self, account: Account) -> str:
        """Return whose payments count for a request: the account's own, made in windows of its last level with a limit.

        One level's windows follow each other, so that what a payer has paid for belongs to one window at a time. The
        last level is the account itself as long as every account has a limit of its own; no path has two slashes in a
        row.
        """
        last = self.levels[-1].level
        name = self.paid_as or account.text
        return name if last == account else f"{name}//{last.depth}"


NO_LIMITS = AppliedLimits()


def limit_text(limit: Limit) -> str:
    """Return a limit in one line; no part of it holds a colon."""
    maximum, rule = limit.maximum, limit.window
    amounts = (str(maximum.information), str(maximum.calls))
    return ":".join((*amounts, limit.mode.value, rule.period.value, str(rule.days), rule.zone))


def parse_limit(text: str) -> Limit:
    """Return the limit of a text made by `limit_text`."""
    information, calls, mode, period, days, zone = text.split(":")
    rule = WindowRule(Period(period), zone, int(days))
    return Limit(Cost(int(information), int(calls)), Mode(mode), rule)


def change_text(before: Limit | None, after: Limit | None) -> str:
    """Return what a limit was and what it is now, in one line; nothing stands for no limit."""
    texts = ("" if limit is None else limit_text(limit) for limit in (before, after))
    return ">".join(texts)


def parse_change(text: str) -> tuple[Limit | None, Limit | None]:
    """Return the limits of a text made by `change_text`."""
    before, arrow, after = text.partition(">")
    if not arrow:
        raise ValueError("not a change of a limit")
    return (parse_limit(before) if before else None, parse_limit(after) if after else None)
