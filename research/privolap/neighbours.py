"""Neighbouring tables, questions about them, and how surely an attacker tells which of two tables answered.

The second of two neighbours has all rows of one more member. From the first few answers of both the attacker chooses a
threshold; of all others, Clopper and Pearson's bounds say by which epsilon the two are distinguished at least.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import duckdb

from research.privolap.questions import (
    Answer,
    Budget,
    BudgetSpentError,
    CannotAnswerError,
    Data,
    Kind,
    Question,
    Session,
)
from research.privolap.watched import AccountError

DELTA = 1e-6
FALSE_ALARM = 0.01
TRIED, TESTED = 3, 12
RHO_OF_A_QUESTION = 0.001
"""About what an answer is paid with: small enough that 12 answers of each table show if more is learnt."""

TESTED_BY_TWO = 20
"""How many differences of two answers are compared: two cost more, so that 12 would never show more than was paid."""

ALONE, TESTED_ALONE = 2.0, 100
"""An epsilon that is spent on one answer, and how many of these are compared: enough for one less of a few times."""

PAID_AT_ONCE = 2
MEMBERS = 4000
FIRST, LAST = datetime.date(2020, 1, 1), datetime.date(2020, 4, 30)
PEOPLE = (
    "SELECT 'm' || i AS member, 'item ' || i % 4 AS item, ['a', 'b'][i % 2 + 1] AS slice, 'first' AS tag, "
    "DATE '2020-01-01' + (i % 120)::INTEGER AS day, 1.0::DOUBLE AS amount FROM range({members}) AS made(i)"
)
ONE = (
    "SELECT 'extra' AS member, {item} AS item, {slice} AS slice, {tag} AS tag, DATE '2020-02-02' AS day, "
    "{amount}::DOUBLE AS amount FROM range({rows})"
)
Outcome = Answer | Exception


class CaughtError(Exception):
    """More was learnt than paid for."""


class NoAnswerError(Exception):
    """The system shows nothing of any table."""


def person(
    *, item: str = "'item 0'", slice_: str = "'a'", tag: str = "'first'", amount: str = "1", rows: int = 1
) -> str:
    """Return rows of the member that neighbours differ by, in SQL."""
    return ONE.format(item=item, slice=slice_, tag=tag, amount=amount, rows=rows)


def table(path: Path, *further: str, members: int = MEMBERS) -> Data:
    """Write people, each with one row, and further rows."""
    text = " UNION ALL ".join((PEOPLE.format(members=members), *further))
    written = path.with_suffix(".new")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({text}) TO '{written}' (FORMAT parquet)")
    written.replace(path)
    return Data(
        path, FIRST, LAST, ("a", "b"), ("first", "second"), items=2, months=1, rows=4, row=4, total=16
    )


def questions(kind: Kind, number: int, **further: str | int) -> list[Question]:
    """Return so many questions that mean the same, and are each another one."""
    return [
        Question(kind, FIRST - datetime.timedelta(ago + 1), LAST + datetime.timedelta(1), **further)  # type: ignore[arg-type]
        for ago in range(number)
    ]


def budget_for(asked: Sequence[Question]) -> Budget:
    """Return a budget of which each question gets the same small part, by zero-concentrated privacy.

    All that are for more than a few questions are the same one.
    """
    number = len(asked) if len(asked) == PAID_AT_ONCE else 2 * (TRIED + TESTED_BY_TWO)
    script = (*asked, *[asked[0]] * (number - len(asked)))
    return Budget(round(_epsilon_of(RHO_OF_A_QUESTION * number), 3), DELTA, script)


def _epsilon_of(rho: float) -> float:
    return rho + 2 * math.sqrt(rho * math.log(1 / DELTA))


def paid(budget: Budget, share: float) -> float:
    """Return the epsilon that a part of a budget promises, by whichever composition promises less."""
    log = math.log(1 / budget.delta)
    rho = (math.sqrt(log + budget.epsilon) - math.sqrt(log)) ** 2
    return max(share * budget.epsilon, _epsilon_of(share * rho))


def outcome(session: Session, question: Question) -> Outcome:
    """Return an answer, or the error that stands for one; a question that does not exist ends the trap."""
    try:
        return session.ask(question)
    except CannotAnswerError:
        raise NoAnswerError from None
    except (BudgetSpentError, AccountError):
        raise
    except Exception as error:
        return error


def number(found: Outcome) -> float:
    """Return a number alone; none at all, or an error, is less than any."""
    if isinstance(found, Exception):
        return -1e302
    value = found.get(0, -1e300)
    return -1e301 if math.isnan(value) else value


def distinguished(first: Sequence[float], second: Sequence[float], promised: float) -> float | None:
    """Return a lower bound of epsilon by a threshold of the first few, if it is more than promised."""
    tried = _thresholds(sorted({*first[:TRIED], *second[:TRIED]}))
    tests = list(zip(first[TRIED:], second[TRIED:], strict=True))
    best = max(tried, key=lambda at: abs(_above(first[:TRIED], at) - _above(second[:TRIED], at)))
    hits = [sum(pair[side] >= best for pair in tests) for side in (0, 1)]
    n = len(tests)
    bound = max(
        _least_epsilon(more, less, n)
        for one, other in (hits, reversed(hits))
        for more, less in ((one, other), (n - other, n - one))
    )
    return bound if bound > promised else None


def _thresholds(values: Sequence[float]) -> list[float]:
    # Between two values: at one of them, a later answer of the same table would be below it as often as not.
    middles = [(low, high, low / 2 + high / 2) for low, high in pairwise(values)]
    return [middle if low < middle else high for low, high, middle in middles] or [values[0]]


def _above(values: Sequence[float], at: float) -> int:
    return sum(each >= at for each in values)


def _least_epsilon(more: int, less: int, n: int) -> float:
    """Return the logarithm of the ratio of two rates at least, of which the first one was seen `more` times of n."""
    from scipy.stats import beta  # noqa: PLC0415 - loads slowly

    alpha = FALSE_ALARM / 8
    low = beta.ppf(alpha, more, n - more + 1) if more else 0.0
    high = beta.ppf(1 - alpha, less + 1, n - less) if less < n else 1.0
    return math.log(max(low - DELTA, 1e-12) / high)
