"""Thirteen traps: attacks on a system as on a black box, each of which ends in a yes or a no.

Most ask two neighbouring tables the same, again and again about other days that all rows lie within, and catch a system
if its answers distinguish the two by more than was paid for them: then somebody can learn more of a member than was
promised. An error is an answer too. A system that keeps its promise is caught with a probability of at most FALSE_ALARM
in each comparison.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier

import duckdb

from research.privolap.neighbours import (
    ALONE,
    DELTA,
    MEMBERS,
    PAID_AT_ONCE,
    PEOPLE,
    TESTED,
    TESTED_ALONE,
    TESTED_BY_TWO,
    TRIED,
    CaughtError,
    NoAnswerError,
    Outcome,
    budget_for,
    distinguished,
    number,
    outcome,
    paid,
    person,
    questions,
    table,
)
from research.privolap.questions import AdapterError, Budget, BudgetSpentError, Data, Kind, Question, System
from research.privolap.watched import AccountError, Watched

THREADS = 8


@dataclass(frozen=True)
class Trap:
    """An attack, and what it means to be caught, in words."""

    name: str
    caught_if: str
    attack: Callable[[System, Path], None]

    @property
    def slug(self) -> str:
        """The name as that of a folder."""
        return self.name.replace(" ", "-").replace("^", "")

    def verdict(self, system: System, folder: Path) -> str:
        """Run the attack in a new folder: `holds`, `caught: ...` or `no answer`."""
        folder.mkdir(parents=True)
        try:
            self.attack(Watched(system), folder)
        except (CaughtError, AccountError) as caught:
            return f"caught: {caught}"
        except NoAnswerError:
            return "no answer"
        return "holds"


def compare(
    system: System,
    folder: Path,
    tables: Sequence[Data],
    kind: Kind,
    statistic: Callable[[Outcome], float],
    **further: str | int,
) -> None:
    """Ask two neighbouring tables the same, and raise CaughtError if more is learnt than was paid for."""
    asked = questions(kind, TRIED + TESTED, **further)
    budget = budget_for(asked)
    found, promised = [], 0.0
    for world, data in enumerate(tables):
        with system.open(data, budget, _state(folder, world)) as session:
            before = session.left()
            found.append([outcome(session, each) for each in asked])
            promised = max(promised, paid(budget, (before - session.left()) / len(asked)))
    if all(isinstance(each, Exception) or not each for answers in found for each in answers):
        raise NoAnswerError
    require_alike([[statistic(each) for each in answers] for answers in found], promised)


def _state(folder: Path, world: int | str) -> Path:
    """Return where a world keeps its state: beside that of all other traps, which may share what runs."""
    return folder.parent / "states" / f"{folder.name}-{world}"


def require_alike(found: Sequence[Sequence[float]], promised: float) -> None:
    """Raise CaughtError if two tables are distinguished."""
    first, second = found
    bound = distinguished(first, second, promised)
    if bound is not None:
        raise CaughtError(f"epsilon of {bound:.2f} or more, {promised:.2f} paid")


def one_more(
    system: System,
    folder: Path,
    *,
    kind: Kind,
    extra: str,
    statistic: Callable[[Outcome], float] = number,
    members: int = MEMBERS,
    **further: str | int,
) -> None:
    """Compare a table with one that has one more member."""
    paths = folder / "without.parquet", folder / "with.parquet"
    tables = table(paths[0], members=members), table(paths[1], extra, members=members)
    compare(system, folder, tables, kind, statistic, **further)


def many_rows(system: System, folder: Path) -> None:
    """Ask how many rows there are, and the sum."""
    extra = person(rows=100_000)
    for kind in (Kind.ROWS, Kind.SUM):
        (folder.parent / f"{folder.name}-{kind.name}").mkdir()
        one_more(system, folder.parent / f"{folder.name}-{kind.name}", kind=kind, extra=extra)


def floats(system: System, folder: Path) -> None:
    """Ask for a sum of which one member has 10^300 and 2^-30, and look at its size and its last bits."""
    extra = f"{person(amount='1e300')} UNION ALL {person(amount='power(2, -30)')}"
    tables = table(folder / "without.parquet"), table(folder / "with.parquet", extra)
    compare(system, folder, tables, Kind.SUM, _size_and_bits)


def _size_and_bits(found: Outcome) -> float:
    value = number(found)
    if not math.isfinite(value) or abs(value) > 1e15:
        return value
    return value if (value * 2**20).is_integer() else -1e15


def only_mine(found: Outcome) -> float:
    """Return whether a name is shown that one member has, or nothing at all."""
    return float(isinstance(found, Exception) or "mine" in found or None in found)


def alone(system: System, folder: Path) -> None:
    """Spend a budget on one count, again and again with another question and a new budget each time."""
    asked, found, promised = questions(Kind.MEMBERS, TRIED + TESTED_ALONE), [], 0.0
    tables = table(folder / "without.parquet"), table(folder / "with.parquet", person())
    for world, data in enumerate(tables):
        answers = []
        for place, each in enumerate(asked):
            budget = Budget(ALONE, DELTA, (each,))
            with system.open(data, budget, _state(folder, f"{world}-{place}")) as session:
                before = session.left()
                answers.append(number(outcome(session, each)))
                promised = max(promised, paid(budget, before - session.left()))
        found.append(answers)
    require_alike(found, promised)


def filtered(system: System, folder: Path) -> None:
    """Subtract from the count of all that of those without a tag, which one member alone has."""
    extra = person(tag="'second'")
    found, promised = [], 0.0
    everybody = questions(Kind.MEMBERS, TRIED + TESTED_BY_TWO)
    others = [replace(each, without_tag="second") for each in everybody]
    budget = budget_for([*everybody, *others])
    tables = table(folder / "without.parquet"), table(folder / "with.parquet", extra)
    for world, data in enumerate(tables):
        with system.open(data, budget, _state(folder, world)) as session:
            before = session.left()
            pairs = zip(everybody, others, strict=True)
            found.append([number(outcome(session, a)) - number(outcome(session, b)) for a, b in pairs])
            promised = max(promised, paid(budget, (before - session.left()) / len(everybody)))
    require_alike(found, promised)


def repeated(system: System, folder: Path) -> None:
    """Ask the same question again: another answer has to cost what the first one did."""
    asked = questions(Kind.MEMBERS, 4)
    with system.open(table(folder / "table.parquet"), budget_for(asked), _state(folder, 0)) as session:
        left = [session.left()]
        first = outcome(session, asked[0])
        left.append(session.left())
        second = outcome(session, asked[0])
        left.append(session.left())
    price, charged = left[0] - left[1], left[1] - left[2]
    if not _same(first, second) and (charged <= 0 or charged < 0.999 * price):
        raise CaughtError(f"another answer for {charged:.3g} of the budget, the first one for {price:.3g}")


def killed(system: System, folder: Path) -> None:
    """Kill the program with the answer in its hands, and ask again from a new one."""
    asked = questions(Kind.MEMBERS, 4)
    data, budget = table(folder / "table.parquet"), budget_for(asked)
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    child = context.Process(
        target=_ask_and_die, args=(its, system, data, budget, _state(folder / "killed", 0))
    )
    try:
        child.start()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise AdapterError(f"{system.name} cannot be given to another program: {error}") from error
    its.close()
    try:
        said = mine.recv()
    except EOFError:
        child.join()
        raise AdapterError(
            f"{system.name} gave no answer in a program of its own, which ended with {child.exitcode}; "
            "its error is above"
        ) from None
    child.join()
    if isinstance(said, AccountError):
        raise said
    first, price = said
    with system.open(data, budget, _state(folder / "killed", 0)) as session:
        second = outcome(session, asked[0])
        shown = 1 if _same(first, second) else 2
        if 1 - session.left() < (shown - 0.5) * price:
            raise CaughtError(
                f"{shown} answers are shown, of which {(1 - session.left()) / price:.0f} are paid"
            )


def _ask_and_die(pipe: Connection, system: System, data: Data, budget: Budget, state: Path) -> None:
    try:
        with system.open(data, budget, state) as session:
            pipe.send((session.ask(budget.script[0]), session.price(budget.script[0])))
            os.kill(os.getpid(), signal.SIGKILL)
    except AccountError as error:
        pipe.send(error)


def at_once(system: System, folder: Path) -> None:
    """Ask eight questions at the same moment where the budget pays for two."""
    asked = questions(Kind.MEMBERS, THREADS)
    budget = budget_for(asked[:PAID_AT_ONCE])
    with system.open(table(folder / "table.parquet"), budget, _state(folder, 0)) as session:
        price, barrier = session.price(asked[0]), Barrier(THREADS)

        def ask(question: Question) -> Outcome:
            barrier.wait()
            try:
                return outcome(session, question)
            except BudgetSpentError as spent:
                return spent

        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(ask, asked))
        answered = sum(not isinstance(each, Exception) for each in found)
        if answered * price > 1 + 1e-9:
            raise CaughtError(f"{answered} answers for the price of {int(1 / price)}")


def changed(system: System, folder: Path, *, before: Sequence[str], after: Sequence[str]) -> None:
    """Ask, change the file, ask the same again and subtract; in the other world the file changes by no member.

    In both worlds somebody else gets a row more, so that it always is another file.
    """
    asked = questions(Kind.MEMBERS, TRIED + TESTED_BY_TWO)
    budget = budget_for([*asked, *asked])
    found, promised = [], 0.0
    other = person().replace("'extra'", "'m0'")
    for world, (first, second) in enumerate(((before, before), (before, after))):
        data = table(folder / f"table{world}.parquet", *first)
        with system.open(data, budget, _state(folder, world)) as session:
            left = session.left()
            earlier = [number(outcome(session, each)) for each in asked]
            table(data.path, other, *second)
            later = [number(outcome(session, each)) for each in asked]
            promised = max(promised, paid(budget, (left - session.left()) / len(asked)))
        found.append([new - old for new, old in zip(later, earlier, strict=True)])
    require_alike(found, promised)


def tied(system: System, folder: Path) -> None:
    """Give one of two items of equal size a member more, and ask for the largest."""
    renamed = "'item ' || CASE WHEN item IN ('item 0', 'item 1') THEN 'a' ELSE 'b' END AS item"
    even = f"SELECT * REPLACE ({renamed}) FROM ({{}})"  # noqa: S608
    people = PEOPLE.format(members=MEMBERS)
    tables = []
    for name, extra in (("first", person(item="'item a'")), ("second", person(item="'item b'"))):
        path = folder / f"{name}.parquet"
        data = table(path)
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({even.format(people)} UNION ALL {extra}) TO '{path}' (FORMAT parquet)")
        tables.append(data)
    compare(system, folder, tables, Kind.TOP, _second_is_first, k=1)


def _second_is_first(found: Outcome) -> float:
    return -1.0 if isinstance(found, Exception) else float(next(iter(found), "") == "item b")


def _same(first: Outcome, second: Outcome) -> bool:
    return (
        not isinstance(first, Exception) and not isinstance(second, Exception) and dict(first) == dict(second)
    )


def _null(system: System, folder: Path) -> None:
    for kind, k in ((Kind.TOP, 10), (Kind.SERIES, 0)):
        (folder / kind.name).mkdir()
        extra = person(item="NULL", slice_="NULL", tag="NULL", amount="NULL", rows=1000)
        one_more(system, folder / kind.name, kind=kind, extra=extra, statistic=only_mine, k=k)


TRAPS = (
    Trap(
        "a member with 10^5 rows",
        "one more member of 100,000 rows shows in a count of rows or a sum",
        many_rows,
    ),
    Trap(
        "too little noise",
        "one more member shows in a count that all of a budget is spent on",
        alone,
    ),
    Trap(
        "floats",
        "a member's 10^300 shows in the size of a sum, or 2^-30 in its bits below 2^-20; "
        "how noise is drawn is not tried",
        floats,
    ),
    Trap(
        "NaN",
        "a member whose amount is NaN shows in a sum, or by its error",
        # Where a sum of NaN is 0, it has to be far from that of the others beside much noise too.
        partial(one_more, kind=Kind.SUM, extra=person(amount="'NaN'"), members=10 * MEMBERS),
    ),
    Trap(
        "keys of one member",
        "a list shows the item that one member has alone, in 10,000 rows",
        partial(one_more, kind=Kind.TOP, extra=person(item="'mine'", rows=10_000), statistic=only_mine, k=10),
    ),
    Trap(
        "a filter for one member",
        "two counts, one without a tag of one member, show that member by subtraction",
        filtered,
    ),
    Trap("a repeat", "the same question gets another answer for less than the first one cost", repeated),
    Trap(
        "a retry after a crash",
        "a program that is killed gets more answers than its budget is charged for",
        killed,
    ),
    Trap(
        "two at once", "eight questions at the same moment get more answers than the budget pays for", at_once
    ),
    Trap(
        "late rows",
        "a member whose rows come later shows in the difference of two answers",
        partial(changed, before=(), after=(person(),)),
    ),
    Trap(
        "a deleted member",
        "a member whose rows are deleted shows in the difference of two answers",
        partial(changed, before=(person(),), after=()),
    ),
    Trap("ties", "one member decides which of two equal items is named first", tied),
    Trap("a NULL group", "a member of NULLs shows in a list or a series, or by their error", _null),
)
