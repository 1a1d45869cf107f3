"""PrivOLAP's traps, with systems that are right, or wrong in one way that is known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pytest

from bench.privolap.questions import (
    AdapterError,
    Answer,
    Budget,
    BudgetSpentError,
    CannotAnswerError,
    Data,
    Kind,
    Question,
)
from bench.privolap.questions import System as Measured
from bench.privolap.traps import TRAPS

OF_DIFFERENCES = "a filter for one member", "late rows", "a deleted member"
OF_MEMBERS = (*OF_DIFFERENCES, "too little noise")
COUNTS = duckdb.connect(config={"threads": 1})
BY_NAME = {trap.name: trap for trap in TRAPS}


class Laplace(Measured):
    """Members by Laplace's noise, or by so much of it, for an equal part of epsilon; a repeat may cost less."""

    name = "Laplace"

    def __init__(self, of_noise: float = 1.0, of_a_repeat: float = 1.0) -> None:
        self.of_noise, self.of_a_repeat = of_noise, of_a_repeat

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[Account]:
        """Open an account that ends with the program."""
        del state
        yield Account(self, data, budget)


class Account:
    """What is left of a budget."""

    def __init__(self, system: Laplace, data: Data, budget: Budget) -> None:
        self._system, self._data, self._budget = system, data, budget
        self._spent, self._asked = 0.0, set[Question]()
        self._draws = np.random.default_rng()

    def price(self, question: Question) -> float:
        """An equal part."""
        return self._budget.share(question, weighted=False)

    def left(self) -> float:
        """What is left."""
        return 1 - self._spent

    def ask(self, question: Question) -> Answer:
        """Count members and charge for it."""
        if question.kind is not Kind.MEMBERS:
            raise CannotAnswerError
        price = self.price(question) * (self._system.of_a_repeat if question in self._asked else 1)
        if self._spent + price > 1 + 1e-9:
            raise BudgetSpentError
        self._spent += price
        self._asked.add(question)
        (true,) = question.answer_in_the_clear(self._data, COUNTS.cursor()).values()
        scale = self._system.of_noise / (self._budget.epsilon * self.price(question))
        return {0: true + round(self._draws.laplace(0, scale)) if scale else true}


class Reserving(Laplace):
    """Holds a tenth of the budget while a question is asked."""

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[Reserved]:
        """Open an account that ends with the program."""
        del state
        yield Reserved(self, data, budget)


class Reserved(Account):
    """What is neither spent nor held."""

    def __init__(self, system: Laplace, data: Data, budget: Budget) -> None:
        super().__init__(system, data, budget)
        self._held, self._lock = 0, threading.Lock()

    def left(self) -> float:
        """What is left."""
        return max(0.0, super().left() - self._held / 10)

    def ask(self, question: Question) -> Answer:
        """Hold, ask one after the other, and return what was held."""
        self._held += 1
        try:
            with self._lock:
                return super().ask(question)
        finally:
            self._held -= 1


class Failing(Laplace):
    """Cannot be opened."""

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[Account]:
        """Fail."""
        raise RuntimeError("no licence")
        yield


class Locked(Laplace):
    """Cannot be given to another program."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


@pytest.mark.parametrize("name", OF_MEMBERS)
def test_traps_of_members_catch_exact_numbers_that_are_charged(name: str, tmp_path: Path) -> None:
    """By members who come, go or are filtered out, though each answer is paid for."""
    assert BY_NAME[name].verdict(Laplace(of_noise=0), tmp_path / "trap").startswith("caught")


@pytest.mark.parametrize("name", [*OF_MEMBERS, "a repeat", "two at once"])
def test_traps_do_not_catch_who_keeps_a_promise(name: str, tmp_path: Path) -> None:
    """With the noise that is promised; fails for one run in a hundred at most, and in truth in far fewer."""
    assert BY_NAME[name].verdict(Laplace(), tmp_path / "trap") == "holds"


def test_what_is_held_while_others_ask_may_come_back(tmp_path: Path) -> None:
    """What is left rises then, and nobody has spent more than there is."""
    assert BY_NAME["two at once"].verdict(Reserving(), tmp_path / "trap") == "holds"


def test_a_tenth_of_the_noise_is_caught(tmp_path: Path) -> None:
    """A budget of epsilon 2 is spent for 20."""
    assert BY_NAME["too little noise"].verdict(Laplace(of_noise=0.1), tmp_path / "trap").startswith("caught")


def test_another_answer_for_next_to_nothing_is_caught(tmp_path: Path) -> None:
    """The first answer's price is asked of the second one."""
    caught = BY_NAME["a repeat"].verdict(Laplace(of_a_repeat=1e-12), tmp_path / "trap")
    assert caught.startswith("caught: another answer")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("system", "said"),
    [(Failing(), "gave no answer in a program of its own"), (Locked(), "cannot be given to another program")],
    ids=["fails", "locked"],
)
def test_who_cannot_be_killed_is_told_why(system: Laplace, said: str, tmp_path: Path) -> None:
    """An adapter of one's own may fail in another program, or keep what cannot be sent to one."""
    with pytest.raises(AdapterError, match=said):
        BY_NAME["a retry after a crash"].verdict(system, tmp_path / "trap")
