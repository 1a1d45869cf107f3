"""Whether accounts are closed, by what the ledger answered a short time ago.

What an account has paid for is given without a reservation, which is where the ledger refuses a closed account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from pinot_connector.errors import GrisError
from pinot_connector.single_flight import SingleFlight

_Account: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _Answer:
    is_closed: bool
    asked_at: float


class ClosedAccounts:
    """Remembers what the ledger said of accounts. For one event loop.

    Args:
        known_seconds: how old an answer may be.
        most: of how many accounts an answer is remembered.
    """

    def __init__(self, known_seconds: float, most: int = 10_000) -> None:
        self._known_seconds = known_seconds
        self._most = most
        self._answers: dict[_Account, _Answer] = {}
        # Many repeats at once make one call, and share its failure.
        self._asking: SingleFlight[_Account] = SingleFlight(lambda error: isinstance(error, GrisError))

    async def is_closed(self, account: _Account, ask: Callable[[], Awaitable[bool]]) -> bool:
        """Returns whether the account is closed now, or was when the ledger was last asked.

        Args:
            account: the path of the account.
            ask: asks the ledger; called if nothing young enough is remembered.

        Raises:
            GrisError: the ledger did not answer; what is older is never used.
        """
        while (known := self._young(account)) is None:
            turn = self._asking.turn(account)
            if turn is None:
                await self._asking.wait(account)
                continue
            with turn:
                asked_at = _now()
                answer = _Answer(await ask(), asked_at)
                self._remember(account, answer)
                return answer.is_closed
        return known.is_closed

    def _young(self, account: _Account) -> _Answer | None:
        known = self._answers.get(account)
        return None if known is None or _now() - known.asked_at >= self._known_seconds else known

    def _remember(self, account: _Account, answer: _Answer) -> None:
        self._answers.pop(account, None)
        while len(self._answers) >= self._most:
            del self._answers[next(iter(self._answers))]
        self._answers[account] = answer


def _now() -> float:
    return asyncio.get_running_loop().time()
