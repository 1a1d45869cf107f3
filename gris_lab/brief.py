"""What three budgets let an attacker gain and an analyst ask, from public numbers: the tables of `gris plan brief`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.accounting.composition import Bound
from dp_service.queries.tables import Policy
from gris_data.sheets import Cell, Column, Sheet, plainly
from gris_lab.accounting.attacks import averaging, unique_member
from gris_lab.budgets import Budget, with_table
from gris_lab.workload import Answered, Limit, Query, Refusal, carried
from pinot_connector import formats
from pinot_connector.parameters import Bounded, CountNoise, Gumbel
from pinot_connector.results import Explanation

LISTED = 10
MOST_QUESTIONS = 12
DAYS = 30
D_BAR = 1000
_PRIORS = (Fraction(1, 2), Fraction(1, 100))
# What a bound of more than this leaves open, is everything.
_CERTAIN = 0.999
_MOST_ODDS = 1_000_000
_BOUNDS = {
    Bound.BASIC: "adding up",
    Bound.DONG_DURFEE_ROGERS: "Dong et al.",
    Bound.DURFEE_ROGERS: "Durfee, Rogers",
    Bound.ZCDP: "zCDP",
    Bound.ADAPTIVE: "adaptive",
}


@dataclass(frozen=True)
class NamedBudget:
    """A budget of a month, or all of one that is never refreshed, and what it is beside the one that was stated."""

    name: str
    budget: Budget
    is_refreshed: bool = True

    @property
    def span(self) -> str:
        """For what time it is."""
        return "a month" if self.is_refreshed else "in all"


def three_budgets(stated: Budget, *, is_refreshed: bool = True) -> tuple[NamedBudget, ...]:
    """Return a third of a budget, the budget, and three times as much, each with the bounds that are in the cache."""
    sizes = (("a third", Fraction(1, 3)), ("as stated", Fraction(1)), ("threefold", Fraction(3)))
    return tuple(
        NamedBudget(
            name,
            with_table(
                replace(stated, information=int(stated.information * part), calls=int(stated.calls * part)),
                quick=True,
            ),
            is_refreshed,
        )
        for name, part in sizes
    )


def shared_budget(level: str, budget: Budget, *, is_refreshed: bool = True) -> NamedBudget:
    """Return the budget of a level that several accounts share, with the bounds that are in the cache."""
    return NamedBudget(level, with_table(budget, quick=True), is_refreshed)


def typical_questions(policy: Policy) -> list[Query]:
    """Return a total of each table, and the ten largest elements of each column that may be grouped by."""
    found: list[Query] = []
    for table in policy.tables:
        counted = f'COUNT(DISTINCT "{table.member}")'
        found.append(Query(0, f"members of {table.name}", f'SELECT {counted} FROM "{table.name}"'))  # noqa: S608
        for column in table.columns:
            if column.group_by:
                grouped = f'SELECT "{column.name}", {counted} FROM "{table.name}" GROUP BY "{column.name}"'  # noqa: S608
                title = f"the {LISTED} largest {column.name} of {table.name}"
                found.append(Query(0, title, f"{grouped} ORDER BY 2 DESC LIMIT {LISTED}"))
    # Of each a name, so that none repeats another.
    return [replace(each, line=number) for number, each in enumerate(found[:MOST_QUESTIONS], start=1)]


def questions_sheet(found: Sequence[Answered], budgets: Sequence[NamedBudget]) -> Sheet:
    """Return what typical questions cost, how exact they are, and how many each budget pays for."""
    return Sheet(
        (
            Column("question", "question", is_text=True),
            Column("information", "units", _thousands),
            Column("calls", "calls"),
            Column("mean_error", "a count is off by, on average", _thousands),
            Column("found_mostly", "counted members for a name to be found (95 %)", is_text=True),
            *(Column(each.name, f"{each.span}, {each.name}", _thousands) for each in budgets),
        ),
        list(_question_rows(found, budgets)),
    )


def _question_rows(found: Sequence[Answered], budgets: Sequence[NamedBudget]) -> Iterator[tuple[Cell, ...]]:
    for each in found:
        if isinstance(each.outcome, Refusal) or each.cost is None:
            continue
        accuracy = each.outcome.accuracy
        yield (
            each.query.title,
            each.cost.information,
            each.cost.calls,
            None if accuracy is None else accuracy.mean_error,
            "" if accuracy is None else accuracy.found_text,
            *(_fits(each, budget.budget) for budget in budgets),
        )


def _fits(each: Answered, budget: Budget) -> int:
    limit = Limit("", budget.information, budget.calls, "month", Fraction(1))
    return carried([each.cost], limit, Fraction(1)).fits if each.cost is not None else 0


def odds_sheet(
    budgets: Sequence[NamedBudget], found: Sequence[Answered], shared: NamedBudget | None
) -> Sheet:
    """Return by how much answers change the odds of an attacker who knows everything but one member's rows, at most.

    The last row is of all accounts that share a budget, if they do.
    """
    rows = [_answer_row(each, budgets[-1].budget) for each in _cheapest_and_dearest(found)]
    rows += [
        _odds_row(f"one day, budget {each.name}, spent evenly", _day_of(each.budget))
        for each in budgets
        if each.is_refreshed
    ]
    rows += [_whole_row(f"budget {each.name}", each) for each in budgets]
    if shared is not None:
        rows.append(_whole_row(f"all accounts of {shared.name} together", shared))
    return Sheet(
        (
            Column("answers", "all that is shown in", is_text=True),
            Column("epsilon", "epsilon", _upwards),
            Column("bound", "by the bound", lambda value: _BOUNDS[Bound(str(value))], is_text=True),
            Column("epsilon_without_table", "without tables a service states", _upwards),
            Column("delta", "delta", _one_in),
            Column("odds", "odds change at most by a factor of", _factor),
            Column("half", "who thought 1 in 2, thinks at most", _chance),
            Column("hundredth", "who thought 1 in 100, thinks at most", _chance),
        ),
        rows,
    )


def _whole_row(of: str, named: NamedBudget) -> tuple[Cell, ...]:
    """Return the row of all that a budget pays for."""
    when = "one month" if named.is_refreshed else "for good"
    calls = formats.counted(named.budget.calls, "call")
    return _odds_row(f"{when}, {of}: {named.budget.information:,} units and {calls}", named.budget)


def _cheapest_and_dearest(found: Sequence[Answered]) -> list[Answered]:
    priced = sorted((each for each in found if each.cost is not None), key=_information)
    return [priced[0], priced[-1]] if len(priced) > 1 else priced


def _information(each: Answered) -> int:
    return 0 if each.cost is None else each.cost.information


def _answer_row(each: Answered, budget: Budget) -> tuple[Cell, ...]:
    calls = 0 if each.cost is None else each.cost.calls
    one = replace(budget, information=_information(each), calls=calls, domains=(), times=1)
    return _odds_row(f"one answer: {each.query.title}", one)


def _day_of(budget: Budget) -> Budget:
    units, calls = -(-budget.information // DAYS), -(-budget.calls // DAYS)
    return replace(budget, information=units, calls=calls, domains=())


def _odds_row(name: str, budget: Budget) -> tuple[Cell, ...]:
    worth = budget.guarantee()
    # dp_service has no tables but those of --adaptive-tables.
    stated = replace(budget, table=None).guarantee()
    odds = math.exp(worth.epsilon)
    beliefs = (_after(prior, odds) for prior in _PRIORS)
    return (name, worth.epsilon, worth.bound.value, stated.epsilon, worth.delta, odds, *beliefs)


def _after(prior: Fraction, odds: float) -> float:
    before = float(prior / (1 - prior))
    return before * odds / (1 + before * odds)


def _upwards(value: Cell) -> str:
    return formats.rounded_up(value, 4) if isinstance(value, float) else plainly(value)


def _chance(value: Cell) -> str:
    if not isinstance(value, float) or value > _CERTAIN:
        return "anything"
    return f"{formats.rounded_up(100 * value, 3)} in 100"


def _factor(value: Cell) -> str:
    if not isinstance(value, float) or value > _MOST_ODDS:
        return f"more than {_MOST_ODDS:,}"
    return formats.rounded_up(value, 4)


def _one_in(value: Cell) -> str:
    """Return a probability as people say it, never less than it is."""
    if not isinstance(value, float) or not value:
        return "0"
    return f"1 in {float(formats.rounded_down(1 / Fraction(value), 2)):,.0f}"


def _thousands(value: Cell) -> str:
    if isinstance(value, float):
        return formats.number(round(value, 1))
    return f"{value:,}" if isinstance(value, int) else plainly(value)


def known_attacks_sheet(named: NamedBudget, found: Sequence[Answered]) -> Sheet:
    """Return what the attacks reach by which the paper chose its parameters, as far as the budget pays for them.

    The first is on the question whose answers withstand it least; it is left out where no question can be paid twice.
    """
    budget = named.budget
    alone = unique_member(budget.epsilon_per, budget.delta, calls=budget.calls, d_bar=D_BAR).unk_gumb
    when = "of the month" if named.is_refreshed else "that the budget ever pays for"
    means = [
        _averaged(each.outcome, answers)
        for each in found
        if isinstance(each.outcome, Explanation) and (answers := min(DAYS, _fits(each, budget))) > 1
    ]
    rows: list[tuple[Cell, ...]] = []
    if means:
        mean = max(means, key=lambda each: each.chance)
        what = f"the mean of {mean.answers} answers to one of these questions, each with new noise"
        rows.append((f"{what}, is the exact count", mean.chance))
    rows.append((f"a name that only one member has is shown in any call {when}, at most", alone))
    return Sheet(
        (
            Column("attack", "attack", is_text=True),
            Column("chance", "chance", lambda value: f"{value:.2g}"),
        ),
        rows,
    )


@dataclass(frozen=True)
class _Mean:
    """How likely the mean of so many answers, each with new noise, rounds to the count."""

    answers: int
    chance: float


def _averaged(question: Explanation, answers: int) -> _Mean:
    """Return how likely the mean of answers rounds to the count; 0: it shows none."""
    parameters, scale = question.parameters, question.parameters.noise_scale
    if scale is None:
        return _Mean(answers, 0.0)
    kind = parameters.kind
    is_gaussian = isinstance(kind, Bounded) or (
        isinstance(kind, Gumbel) and kind.count_noise is CountNoise.GAUSSIAN
    )
    if not is_gaussian:
        return _Mean(answers, averaging(2 / scale, answers).discrete)
    # The sum of whole draws that are normal, as nearly as is shown, is whole, and below half as many as there are.
    nearest = (answers + 1) // 2 - Fraction(1, 2)
    return _Mean(answers, math.erf(float(nearest / scale) / math.sqrt(2 * answers)))
