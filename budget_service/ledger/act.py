"""What every act has in common: what changes the ledger, and how it is asked for, loaded and decided.

One act is one module of `acts`. It is complete when it is made, and stays the same when it is sent again. The limits
that it is decided by are a value of their own (`ledger.limits.AppliedLimits`). The `request_id` belongs to the root
account: two roots may use the same one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from budget_service.ledger.case import Case
from budget_service.ledger.fingerprints import act_fields, fingerprint_of
from budget_service.ledger.outcomes import Outcome
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import NOTHING, Account, Cost, Fingerprint, Hold
from budget_service.ledger.windows import Microseconds

# A few megabytes.
_KEPT_ACCOUNTS = 10_000


class Needs(Struct, frozen=True, gc=False, kw_only=True):
    """What has to be loaded for an act, beside what is remembered of it.

    `levels` are those that it counts on, and `blocks` those that alone pay or are paid back; with `every_block` it is
    decided by what the block that has paid most has paid. One that is not `is_limited` depends on no limit, and ends no
    reservation that has lapsed. `reservation_id` is what it names, which may be `of_any_account`, and `outcomes` the
    ids of requests whose remembered outcomes it reads. `releases` are what it pays for or pays back; `questions` those
    that it pays for, an empty one that of the reservation. With `stored` the stored
    limits and closed accounts of the root are counted; `limits` are levels whose stored limit is wanted, `closed`
    accounts of which it is wanted whether they are.
    """

    levels: tuple[Account, ...] = ()
    blocks: tuple[str, ...] = ()
    every_block: bool = False
    is_limited: bool = True
    reservation_id: str = ""
    of_any_account: bool = False
    outcomes: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    stored: bool = False
    limits: tuple[Account, ...] = ()
    closed: tuple[Account, ...] = ()


class Act(Protocol):
    """Something that changes the ledger."""

    @property
    def account(self) -> Account:
        """Whom it is about."""

    @property
    def request_id(self) -> str:
        """Its name: an act that is sent again has the same."""

    def fingerprint(self) -> Fingerprint:
        """Return a digest of everything that was sent."""

    def needs(self) -> Needs:
        """Return what has to be loaded to decide it."""

    def decide(self, case: Case) -> Outcome | None:
        """Return what becomes of it, and make its changes in the case.

        None: what has lapsed has to be written first, as there may be more of it.
        """


class AdministrativeAct(Struct, frozen=True, gc=False, kw_only=True):
    """What an administrator does: the `actor` as authenticated, and the `reason` that was given, which may be empty.

    Both are part of the fingerprint: what one administrator has sent is not what another one does, of whom nothing
    would be recorded.
    """

    account: Account
    request_id: str
    actor: str
    reason: str = ""

    def digest(self, *fields: str) -> Fingerprint:
        """Return the digest of an act with these fields."""
        return fingerprint_of(self.account, (*fields, *act_fields(self.actor, self.reason)))

    def entry(
        self,
        kind: EntryKind,
        now: Microseconds,
        *,
        account: Account | None = None,
        cost: Cost = NOTHING,
        unit_id: str = "",
        release_id: str = "",
        query_id: str = "",
        holds: tuple[Hold, ...] = (),
        shared_cost: Cost | None = None,
        change: str = "",
    ) -> JournalEntry:
        """Return the entry of what was done to the account or another."""
        return JournalEntry(
            kind=kind,
            account=account or self.account,
            cost=cost,
            unit_id=unit_id,
            request_id=self.request_id,
            release_id=release_id,
            query_id=query_id,
            time=now,
            holds=holds,
            shared_cost=shared_cost,
            reason=self.reason,
            actor=self.actor,
            change=change,
        )


@lru_cache(maxsize=_KEPT_ACCOUNTS)
def levels_of(account: Account) -> tuple[Account, ...]:
    """Return the levels that an act of an account counts on, from the widest."""
    return account.levels
