"""A guard of how much a connection spends within an hour: dashboards refresh, and tools scan, by themselves.

A question is priced before it is asked, and its price held while it runs. So neither several threads nor several
cursors spend more together than the limit. Repeats and other free answers are given as without a guard.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf
from threading import Lock
from typing import TypeAlias

from pinot_connector.budgets import Cost, require_within
from pinot_connector.checked_arguments import require_units
from pinot_connector.errors import (
    EndedBetweenLooks,
    GrisError,
    IntegrityError,
    InvalidQuestion,
    OutcomeUnknown,
    ServiceFailed,
)
from pinot_connector.results import PrivateResult
from pinot_connector.rpc_errors import Service

HOUR_SECONDS = 3600.0
FIELD = "max_per_hour"
_FEW_GUARDS = 1000

Ask: TypeAlias = Callable[[int], Awaitable[tuple[PrivateResult, int]]]
"""Asks with a `max_cost`, and returns the result with the information units that were charged this time."""
Price: TypeAlias = Callable[[], Awaitable[Cost]]


@dataclass(eq=False)
class _Spent:
    """What a question costs at most, and then what it has cost; `until` it counts, infinite while it runs."""

    units: int
    until: float = inf


class SpendingGuard:
    """Refuses questions that may take more information units within an hour than a limit. Threads may share it.

    What was charged counts for an hour from then on. What nobody knows to be charged or not counts as charged.

    Args:
        max_per_hour: the limit, in information units of the budget.
        clock: returns seconds that never go back.

    Raises:
        InvalidQuestion: the limit is no number of information units.
    """

    def __init__(self, max_per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        require_units(FIELD, max_per_hour)
        self._limit = max_per_hour
        self._clock = clock
        self._lock = Lock()
        self._spent: list[_Spent] = []

    @property
    def is_idle(self) -> bool:
        """Whether nothing that was spent counts any longer, and no question runs: a new guard allows as much."""
        with self._lock:
            return not any(each.until > self._clock() for each in self._spent)

    async def asked(self, ask: Ask, price: Price, max_cost: int | None) -> PrivateResult:
        """Returns the result of a question for which there is room, or which costs nothing.

        Args:
            ask: asks it.
            price: returns its worst-case cost; it is free.
            max_cost: the most information units that it may cost; None: whatever the guard and the budget hold.

        Raises:
            InvalidQuestion: there is no room; `field` is "max_per_hour", and nothing was asked or charged.
            GrisError: what `ask` and `price` raise.
        """
        worst_case = await price()
        refusal: InvalidQuestion | None = None
        try:
            require_within(max_cost, worst_case)
            spending = self._held(worst_case.information)
        except InvalidQuestion as error:
            refusal = error
        if refusal is not None:
            return await _free(ask, refusal)
        with self._settled(spending):
            # The policy may have another price by now.
            result, spending.units = await ask(worst_case.information)
            return result

    def _held(self, units: int) -> _Spent:
        with self._lock:
            now = self._clock()
            self._spent = [each for each in self._spent if each.until > now]
            if (total := sum(each.units for each in self._spent)) + units > self._limit:
                raise InvalidQuestion(FIELD, self._refusal(units, total, now))
            self._spent.append(spending := _Spent(units))
            return spending

    @contextmanager
    def _settled(self, spending: _Spent) -> Iterator[None]:
        """Lets what a question has cost count for an hour; its result, or its end, says how much that is."""
        try:
            yield
        except BaseException as error:
            spending.units = _units_of(error, spending.units)
            raise
        finally:
            with self._lock:
                spending.until = self._clock() + HOUR_SECONDS if spending.units else 0.0

    def _refusal(self, units: int, total: int, now: float) -> str:
        return (
            f"the question may cost {units} information units, {total} were spent within the last hour or are held by "
            f"running questions, and at most {self._limit} an hour are allowed; {self._when(units, total, now)}; "
            "nothing was asked or charged"
        )

    def _when(self, units: int, total: int, now: float) -> str:
        if units > self._limit:
            return "it would be refused at any time"
        for each in sorted(self._spent, key=lambda spent: spent.until):
            total -= each.units
            if total + units <= self._limit:
                break
        if each.until == inf:
            return "there may be room when these have ended"
        minutes = max(1, ceil((each.until - now) / 60))
        return f"there is room in {minutes} minute{'s' * (minutes != 1)}"


class SpendingGuards:
    """A guard with the same limit for each of those who ask, by name. What they spent within an hour is kept.

    Args:
        max_per_hour: the limit of each, in information units of the budget.
        clock: returns seconds that never go back.

    Raises:
        InvalidQuestion: the limit is no number of information units.
    """

    def __init__(self, max_per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        require_units(FIELD, max_per_hour)
        self._limit = max_per_hour
        self._clock = clock
        self._lock = Lock()
        self._guards: dict[str, tuple[SpendingGuard, float]] = {}
        self._most = _FEW_GUARDS

    def of(self, name: str) -> SpendingGuard:
        """Returns the guard of one who asks."""
        with self._lock:
            now = self._clock()
            if len(self._guards) >= self._most:
                # One that was handed out lately may be about to hold the price of a question.
                self._guards = {
                    each: (guard, until)
                    for each, (guard, until) in self._guards.items()
                    if until > now or not guard.is_idle
                }
                # So that each is looked at seldom, however many there are.
                self._most = max(_FEW_GUARDS, 2 * len(self._guards))
            guard, _ = self._guards.get(name) or (SpendingGuard(self._limit, self._clock), 0.0)
            self._guards[name] = guard, now + HOUR_SECONDS
            return guard


async def _free(ask: Ask, refusal: InvalidQuestion) -> PrivateResult:
    """Returns the result if it costs nothing.

    Raises:
        InvalidQuestion: it does; this is the refusal.
    """
    try:
        return (await ask(0))[0]
    except InvalidQuestion as error:
        if error.field != "max_cost":
            raise
    raise refusal


def _units_of(error: BaseException, worst_case: int) -> int:
    """Returns what a question that ended with an error counts: the worst case where that is not known."""
    match error:
        case EndedBetweenLooks():
            return error.charged[0]
        case OutcomeUnknown() | IntegrityError():
            return worst_case
        case ServiceFailed(service=Service.GATEWAY):
            # It may have failed once the question was paid for.
            return worst_case
        case GrisError():
            return 0
        case _:
            # As when it was cancelled: a charge that had begun is finished.
            return worst_case


def guard_of(max_per_hour: int | SpendingGuard | None) -> SpendingGuard | None:
    """Returns the guard that an argument `max_per_hour` says: a new one for a number, none for None.

    Raises:
        InvalidQuestion: it is neither a guard nor a number of information units.
    """
    if max_per_hour is None or isinstance(max_per_hour, SpendingGuard):
        return max_per_hour
    return SpendingGuard(max_per_hour)
