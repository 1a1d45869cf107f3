"""What a release store does, and the values that it keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2

Account: TypeAlias = tuple[str, ...]
"""The path of an account."""
Microseconds: TypeAlias = int
"""Since 1970-01-01 UTC."""

DAY: Microseconds = 86_400 * 10**6
# As long as a ledger remembers what was paid for, after the window of the payment.
KEPT_AFTER_WINDOW: Microseconds = 35 * DAY


@dataclass(frozen=True)
class KeptRelease:
    """A whole release, whatever part of it a question shows.

    Attributes:
        content: All of it; no intervals, because they depend on what is shown.
        version_is_fixed: Whether the policy fixes the version of the data. Such a question can be asked for as long
            as the policy allows it and the noise key is in use.
    """

    content: dp_pb2.Kept
    version_is_fixed: bool

    @property
    def release_id(self) -> str:
        """The name of the release."""
        return self.content.bill.release_id

    @property
    def key_id(self) -> str:
        """The noise key that it was drawn with."""
        return self.content.key_id


@dataclass(frozen=True)
class Payment:
    """The window in which an account paid for a release, by the ledger's clock.

    The account is given the release for nothing from then on; the window decides only how long it is kept.

    Attributes:
        window_start: When the window began.
        window_end: When it ends; None: never.
    """

    window_start: Microseconds
    window_end: Microseconds | None


@dataclass(frozen=True)
class Found:
    """A release that is kept, and what the account that asks paid for it last; None: nothing."""

    kept: KeptRelease
    payment: Payment | None


@dataclass(frozen=True)
class Receipt:
    """What an account was shown, for its history.

    Attributes:
        shown: The question and its result. Of the elements it has only the intervals if the release is kept: the rest
            is taken from there.
        same: A key that two receipts share if the second adds nothing to the first.
        query_id: The kept release whose first elements were shown; empty: the receipt has all that was shown.
    """

    shown: app_pb2.PastRelease
    same: str
    query_id: str


@dataclass(frozen=True)
class ReceiptPage:
    """Past results, newest first; `after` is where the next page begins, None if this was the last."""

    releases: tuple[app_pb2.PastRelease, ...]
    after: int | None


@dataclass(frozen=True)
class StoreStatistics:
    """How much a store keeps.

    Attributes:
        releases: How many releases.
        unpaid: How many of them nobody has paid for, as far as the store knows.
        size_bytes: How many bytes they take, with payments and receipts.
    """

    releases: int
    unpaid: int
    size_bytes: int


class ReleaseStore(ABC):
    """Keeps releases, payments and receipts. Any number of clients may share it.

    Guarantee: a release that was kept under a `query_id` stays the one that is found there, at least until 35 days
    after the end of the last window in which it was paid for, and for as long as its version of the data can be asked
    about. Nothing is removed to make room.

    Every method raises `ReleaseStoreFailed` if the store cannot be read or written; nothing is shown then.
    """

    @abstractmethod
    async def find(self, query_id: str, account: Account) -> Found | None:
        """Returns the release that is kept for a question, and what an account paid for it; None: none is kept."""

    @abstractmethod
    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Keeps a release that nobody has paid for yet, before it is charged.

        Returns:
            The release that is kept for the question: an earlier one if there is one.
        """

    @abstractmethod
    async def mark_paid(self, query_id: str, account: Account, payment: Payment) -> None:
        """Notes that an account paid for the release that is kept for a question, after it was charged."""

    @abstractmethod
    async def add_receipt(self, account: Account, receipt: Receipt) -> None:
        """Notes what an account was shown.

        It replaces the receipt of the same request, and the same receipt unless that had a request id of its own.
        """

    @abstractmethod
    async def receipt(self, account: Account, request_id: str) -> app_pb2.PastRelease | None:
        """Returns what an account was shown for the request with this id; None: there is no such receipt."""

    @abstractmethod
    async def receipts(self, account: Account, most: int, before: int | None) -> ReceiptPage:
        """Returns at most `most` things that an account was shown, older than the one at `before`."""

    @abstractmethod
    async def remove_old_receipts(self) -> None:
        """Removes every receipt whose days are over by this machine's clock; no release and no payment.

        Opening a store with limits of receipts does it too, and so does each new one, in memory for its account.
        """

    @abstractmethod
    async def statistics(self) -> StoreStatistics:
        """Returns how much is kept."""

    @abstractmethod
    async def close(self) -> None:
        """Closes the store once everything has been written. Closing twice is allowed."""

    @abstractmethod
    def close_now(self) -> None:
        """Does what `close` does, for code without an event loop: it blocks until that is done."""
