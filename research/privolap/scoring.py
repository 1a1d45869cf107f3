"""Which answers are useful: names right where names are asked for, and numbers off by at most 10 % on average."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from bench.workloads import MEAN_ERROR, RIGHT_NAMES
from research.privolap.questions import (
    AdapterError,
    Answer,
    Budget,
    BudgetSpentError,
    CannotAnswerError,
    Data,
    Kind,
    Question,
    Session,
    System,
)
from research.privolap.watched import AccountError, Watched


@dataclass(frozen=True)
class Score:
    """What a script was answered."""

    useful: int
    answered: int
    asked: int
    useful_by_kind: Mapping[Kind, int]


def is_useful(question: Question, answer: Answer, true: Answer) -> bool:
    """Return whether an answer is useful, given that of all items, months or steps.

    Of a list 95 % of the names have to be right, in whole names; items with as many members as the last of them are as
    right. What a series or funnel should show and does not is off by all of it.
    """
    if question.kind is Kind.TOP:
        wanted = min(question.k, len(true))
        least = sorted(true.values(), reverse=True)[wanted - 1] if wanted else math.inf
        right = sum(true.get(name, 0.0) >= least for name in answer)
        if len(answer) > question.k or right < math.floor(RIGHT_NAMES * wanted):
            return False
        compared: Answer = {name: true.get(name, 0.0) for name in answer}
    else:
        compared = true
    errors = [abs(answer.get(key, 0.0) - number) / max(abs(number), 1) for key, number in compared.items()]
    return bool(errors) and sum(errors) / len(errors) <= MEAN_ERROR


def score(system: System, data: Data, budget: Budget, state: Path, truth: Mapping[Question, Answer]) -> Score:
    """Ask what the truth is known of; a question that is refused or cannot be asked is not useful.

    Raises:
        AdapterError: What is left of the budget cannot be; then no answer counts.
    """
    answered, useful = 0, Counter[Kind]()
    try:
        with Watched(system).open(data, budget, state) as session:
            for question in truth:
                answer = _asked(session, question)
                if answer is not None:
                    answered += 1
                    useful[question.kind] += is_useful(question, answer, truth[question])
    except AccountError as error:
        raise AdapterError(f"{system.name} has no score: {error}") from error
    return Score(useful.total(), answered, len(truth), useful)


def _asked(session: Session, question: Question) -> Answer | None:
    try:
        return session.ask(question)
    except (BudgetSpentError, CannotAnswerError):
        return None


def truth_of(data: Data, script: tuple[Question, ...]) -> dict[Question, Answer]:
    """Return the true answers; of lists the counts of all items."""
    everything = 1_000_000
    with duckdb.connect() as connection:
        return {
            each: (replace(each, k=everything) if each.kind is Kind.TOP else each).answer_in_the_clear(
                data, connection
            )
            for each in script
        }
