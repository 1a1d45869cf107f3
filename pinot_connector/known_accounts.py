"""Which accounts are closed, by what the ledger answered a short time ago.

What an account has paid for is given without a reservation, which is where the ledger refuses a closed account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pinot_connector.single_flight import SharedCalls

_Account: TypeAlias = tuple[str, ...]


class KnownAccounts:
    """Remembers of accounts whether the ledger said that they, or levels above them, are closed. For one event loop.

    Args:
        known_seconds: how old an answer may be.
        most: of how many accounts an answer is remembered.
    """

    def __init__(self, known_seconds: float, most: int = 10_000) -> None:
        self._known_seconds = known_seconds
        self._most = most
        self._answers: dict[_Account, tuple[bool, float]] = {}
        self._asking: SharedCalls[bool] = SharedCalls()

    def learn(self, account: _Account, asked_at: float, *, is_closed: bool) -> None:
        """Remembers what the ledger said, which was asked at a time of the event loop."""
        self._answers.pop(account, None)
        while len(self._answers) >= self._most:
            del self._answers[next(iter(self._answers))]
        self._answers[account] = is_closed, asked_at

    async def is_closed(self, account: _Account, ask: Callable[[], Awaitable[bool]]) -> bool:
        """Returns whether the ledger says that an account is closed now, or said so when it was last asked.

        Args:
            account: the path of the account.
            ask: asks the ledger; called if nothing young enough is remembered.

        Raises:
            GrisError: the ledger did not answer; what is older is never used.
        """
        known = self._answers.get(account)
        if known is not None and _now() - known[1] < self._known_seconds:
            return known[0]
        asked_at = _now()

        async def asked() -> bool:
            answer = await ask()
            self.learn(account, asked_at, is_closed=answer)
            return answer

        # Many at once make one call, and share its failure.
        return await self._asking.joined(account, asked)


def _now() -> float:
    return asyncio.get_running_loop().time()
