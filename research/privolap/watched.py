"""A system whose account is looked at whenever it has answered, for traps and scores alike.

Traps compare what is learnt with what the system says it charged. That means something only if no more is charged than
there is: what is left lies between nothing and all of the budget, and never rises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from research.privolap.questions import AdapterError, Answer, Budget, Data, Question, Session, System

ROUNDING = 1e-9


class AccountError(AdapterError):
    """What a system says is left cannot be."""


class Watched(System):
    """A system that raises AccountError where what is left cannot be."""

    def __init__(self, system: System) -> None:
        self.name, self._system = system.name, system

    def version(self) -> str:
        """Return that of the system."""
        return self._system.version()

    def close(self) -> None:
        """End what still runs."""
        self._system.close()

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[_Session]:
        """Open data."""
        with self._system.open(data, budget, state) as session:
            yield _Session(session)


class _Session:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._least, self._asked, self._lock = math.inf, 0, Lock()
        self.left()

    def price(self, question: Question) -> float:
        return self._session.price(question)

    def left(self) -> float:
        with self._lock:
            return self._looked_at()

    def ask(self, question: Question) -> Answer:
        with self._lock:
            self._asked += 1
        try:
            return self._session.ask(question)
        finally:
            with self._lock:
                self._asked -= 1
                # An error may be charged too. What a question holds while it is asked may be more than in the end.
                if not self._asked:
                    self._looked_at()

    def _looked_at(self) -> float:
        left = self._session.left()
        if left < -ROUNDING:
            raise AccountError(f"more is charged than there is: {left:.3g} of the budget is left")
        if not left <= 1 + ROUNDING:
            raise AccountError(f"{left:.3g} of the budget is left, where 1 is all of it")
        if left > self._least + ROUNDING:
            raise AccountError(f"{left:.3g} of the budget is left, after {self._least:.3g}")
        self._least = min(left, self._least)
        return left
