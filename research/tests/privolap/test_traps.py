"""PrivOLAP's traps, with systems that are right, or wrong in one way that is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pytest

from research.privolap.neighbours import DELTA, FIRST, LAST, table
from research.privolap.questions import (
    AdapterError,
    Answer,
    Budget,
    BudgetSpentError,
    CannotAnswerError,
    Data,
    Kind,
    Question,
)
from research.privolap.questions import System as Measured
from research.privolap.traps import TRAPS
from research.privolap.watched import Watched

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


class Reserving(Measured):
    """Holds a half of the budget while a question is asked, until it may be answered, and charges a tenth."""

    name = "reserving"

    def __init__(self) -> None:
        self.held, self.spent = 0, 0
        self.may = {each: threading.Event() for each in ("first", "second")}

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[Reserving]:
        """Open the one account that there is."""
        yield self

    def left(self) -> float:
        """What is neither spent nor held."""
        return 1 - self.spent / 10 - self.held / 2

    def price(self, question: Question) -> float:
        """A tenth."""
        return 0.1

    def ask(self, question: Question) -> Answer:
        """Hold, wait, and charge."""
        self.held += 1
        self.may[question.without_tag].wait()
        self.held, self.spent = self.held - 1, self.spent + 1
        return {0: 1.0}


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
    asked = {each: Question(Kind.MEMBERS, FIRST, LAST, without_tag=each) for each in ("first", "second")}
    data, system = table(tmp_path / "table.parquet"), Reserving()
    with (
        Watched(system).open(data, Budget(1, DELTA, tuple(asked.values())), tmp_path) as session,
        ThreadPoolExecutor(2) as pool,
    ):
        first, second = (pool.submit(session.ask, each) for each in asked.values())
        while system.held < 2:
            time.sleep(0.001)
        system.may["first"].set()
        first.result(10)
        assert system.left() == pytest.approx(0.4)
        system.may["second"].set()
        second.result(10)
        assert session.left() == pytest.approx(0.8)


def test_a_tenth_of_the_noise_is_caught(tmp_path: Path) -> None:
    """A budget of epsilon 2 is spent for 20."""
    assert BY_NAME["too little noise"].verdict(Laplace(of_noise=0.1), tmp_path / "trap").startswith("caught")


def test_another_answer_for_next_to_nothing_is_caught(tmp_path: Path) -> None:
    """The first answer's price is asked of the second one."""
    caught = BY_NAME["a repeat"].verdict(Laplace(of_a_repeat=1e-12), tmp_path / "trap")
    assert caught.startswith("caught: another answer")


@pytest.mark.parametrize(
    ("system", "said"),
    [(Failing(), "gave no answer in a program of its own"), (Locked(), "cannot be given to another program")],
    ids=["fails", "locked"],
)
def test_who_cannot_be_killed_is_told_why(system: Laplace, said: str, tmp_path: Path) -> None:
    """An adapter of one's own may fail in another program, or keep what cannot be sent to one."""
    with pytest.raises(AdapterError, match=said):
        BY_NAME["a retry after a crash"].verdict(system, tmp_path / "trap")
