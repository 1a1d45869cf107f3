"""Which accounts are closed, and who they are, by what the ledger answered a short time ago.

What an account has paid for is given without a reservation, which is where the ledger refuses a closed account. And a
name may be somebody else's by then: an account that was forgotten leaves it open for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from pinot_connector.single_flight import SharedCalls

_Account: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class KnownAccount:
    """What the ledger says of an account.

    Attributes:
        is_closed: Whether it, or a level above it, is closed or was moved.
        id: Its name in the ledger until it is forgotten; empty: the ledger has nothing of it so far.
    """

    is_closed: bool
    id: str


class KnownAccounts:
    """Remembers what the ledger said of accounts. For one event loop.

    Args:
        known_seconds: how old an answer may be.
        most: of how many accounts an answer is remembered.
    """

    def __init__(self, known_seconds: float, most: int = 10_000) -> None:
        self._known_seconds = known_seconds
        self._most = most
        self._answers: dict[_Account, tuple[KnownAccount, float]] = {}
        self._asking: SharedCalls[KnownAccount] = SharedCalls()

    def young(self, account: _Account) -> KnownAccount | None:
        """Returns what the ledger said of the account not too long ago; None: nothing."""
        known, asked_at = self._answers.get(account, (None, 0.0))
        return known if known is not None and _now() - asked_at < self._known_seconds else None

    def learn(self, account: _Account, known: KnownAccount, asked_at: float) -> None:
        """Remembers what the ledger said, which was asked at a time of the event loop.

        One without an id gets it with its next charge, so nothing is remembered of that.
        """
        if not (known.id or known.is_closed):
            return
        self._answers.pop(account, None)
        while len(self._answers) >= self._most:
            del self._answers[next(iter(self._answers))]
        self._answers[account] = known, asked_at

    async def known(self, account: _Account, ask: Callable[[], Awaitable[KnownAccount]]) -> KnownAccount:
        """Returns what the ledger says of the account now, or said when it was last asked.

        Args:
            account: the path of the account.
            ask: asks the ledger; called if nothing young enough is remembered.

        Raises:
            GrisError: the ledger did not answer; what is older is never used.
        """
        if (known := self.young(account)) is not None:
            return known
        asked_at = _now()

        async def asked() -> KnownAccount:
            answer = await ask()
            self.learn(account, answer, asked_at)
            return answer

        # Many at once make one call, and share its failure.
        return await self._asking.joined(account, asked)


def _now() -> float:
    return asyncio.get_running_loop().time()
