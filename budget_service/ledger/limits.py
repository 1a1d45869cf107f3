"""The limits that a request is decided by, and those that an administrator has set in the ledger, with their text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from budget_service.ledger.values import Account, Cost, LevelLimit, Limit, Mode
from budget_service.ledger.windows import Microseconds, Period, WindowRule

# Bounds of one request and of one root account: everything that grows is bounded.
MAX_CHANGED_AT_ONCE = 1000
MAX_STORED_LIMITS = 100_000


class LimitsChangedError(Exception):
    """The limits are not those of the ledger. Look them up and apply the request again."""


class StoredLimits(Struct, frozen=True, gc=False):
    """Stored limits of the levels of an account, and which of them are `closed`.

    `version` is that of both for the whole root, 0 if there are none.
    """

    version: int = 0
    limits: Mapping[Account, Limit] = field(default_factory=dict)
    closed: frozenset[Account] = frozenset()

    def applied_to(self, account: Account, levels: tuple[LevelLimit, ...]) -> AppliedLimits:
        """Return what requests of an account with these limited levels are decided by."""
        if not self.closed:
            return AppliedLimits(levels, self.version)
        closed = next((level for level in account.levels if level in self.closed), None)
        return AppliedLimits(levels, self.version, closed=closed)


class LeaseBounds(Struct, frozen=True, gc=False):
    """Until when a region may grant from a lease, by its own clock, and when the window of the account ends.

    `window_end` is None if the budget is never refreshed.
    """

    ends_at: Microseconds
    window_end: Microseconds | None


class AppliedLimits(Struct, frozen=True, gc=False):
    """The limits that a request is decided by, and the version of the root's stored limits that they were found with.

    `levels` are the levels of the account that have a limit, from the widest; a request about a budget needs at least
    one. `rules` are the windows of all limits that the root has, for a change of currency. `most_stored` is how many
    limits and closed accounts a root may have stored. What an administrator asks of a root otherwise needs none: see
    NO_LIMITS. `closed` is the widest level of the account that is closed. In a region the one level is a `lease`, whose
    share is the limit, and payments are kept under the name `paid_as`.
    """

    levels: tuple[LevelLimit, ...] = ()
    version: int = 0
    rules: tuple[WindowRule, ...] = ()
    most_stored: int = MAX_STORED_LIMITS
    closed: Account | None = None
    paid_as: str = ""
    lease: LeaseBounds | None = None

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
# No root has this version: the ledger decides nothing by such limits, and only replays an earlier answer.
NO_VERSION = -1


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
