"""What `gris plan workload` prints: a line for each query, each refusal at its place, and how far budgets go."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gris_cli.terminal import grid, head, print_json, say, say_all, show
from gris_lab.trial import Trial
from gris_lab.workload import Answered, Carried, Lasting, Refusal, Renewed, costs_of
from pinot_connector import formats
from pinot_connector.json_values import to_json
from pinot_connector.parameters import Consistency
from pinot_connector.results import Explanation

# What says how exact an answer will be, where no number alone does.
_ACCURACY = "accuracy."


def print_workload(
    found: Sequence[Answered],
    goes: Sequence[Carried],
    rate: Fraction,
    tried: Mapping[int, Trial],
    *,
    as_json: bool,
) -> None:
    """Print what becomes of queries, and how far budgets go at a rate of refreshes a month.

    Args:
        found: What becomes of each query.
        goes: How far each budget goes.
        rate: How often a month all queries are asked on new data.
        tried: How good an answer was, by the line of its query; empty: none was asked.
        as_json: Whether to print JSON.
    """
    if as_json:
        print_json(_json(found, goes, tried))
    else:
        _show(found, goes, rate)
        if tried:
            _show_trials(found, tried)


def _json(found: Sequence[Answered], goes: Sequence[Carried], tried: Mapping[int, Trial]) -> dict[str, Any]:
    return {
        "queries": [{**_query(each), **_outcome(each)} for each in found],
        "costs": to_json(costs_of(found)),
        "budgets": [_budget(each) for each in goes],
        "trials": [
            {"line": line, **vars(each), "within": None if math.isnan(each.within) else each.within}
            for line, each in tried.items()
        ],
    }


def _query(each: Answered) -> dict[str, Any]:
    return {
        "line": each.query.line,
        "title": each.query.title,
        "cost": None if each.cost is None else to_json(each.cost),
        "free": each.is_free,
        "repeats": each.repeats or None,
    }


def _budget(each: Carried) -> dict[str, Any]:
    facts = {**vars(each.budget), "fits": each.fits, **vars(each.goes)}
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in facts.items()}


def _outcome(each: Answered) -> dict[str, Any]:
    """Return what is said of a query: without the engines' queries, or why it is refused."""
    if isinstance(each.outcome, Refusal):
        return {"answered": False, "refusal": to_json(each.outcome)}
    said = each.outcome.to_dict().items()
    return {"answered": True, "explanation": {name: value for name, value in said if name != "queries"}}


def _show(found: Sequence[Answered], goes: Sequence[Carried], rate: Fraction) -> None:
    answered = [each for each in found if not isinstance(each.outcome, Refusal)]
    heads = ("line", "query", "information", "calls", "off by", "found from (95 %)")
    show(grid(heads, map(_cells, answered), numbers=(0, 2, 3, 4)))
    for each in answered:
        say_all(f"line {each.query.line}", _expected(each))
    for each in found:
        if isinstance(each.outcome, Refusal):
            head(f"line {each.query.line} is refused{each.query.title and f': {each.query.title}'}")
            show(each.outcome.message)
    head("all queries")
    say("answered", f"{len(answered)} of {len(found)}")
    for cost in sorted(costs_of(found), key=lambda each: each.information)[-1:]:
        of = "; of the block of members that pays most" if cost.blocks else ""
        say("price", f"at most {formats.cost(cost)} each time that the data are new{of}")
    if goes:
        show(grid(_HEADS, (_budget_cells(each) for each in goes), numbers=(1, 2, 4, 5, 6, 7)))
        say("refreshed", f"{formats.number(float(rate))} times a month; {_again(answered)}. {_MEANING}")


def _show_trials(found: Sequence[Answered], tried: Mapping[int, Trial]) -> None:
    """Print how good one answer of each query was."""
    titles = {each.query.line: each.query.title for each in found}
    head("on your data: one answer of each, for the owner alone")
    rows = ((str(line), titles[line], *_trial_cells(each)) for line, each in tried.items())
    show(grid(("line", "query", "found", "asked for", "numbers within (95 %)"), rows, numbers=(0, 2, 3, 4)))
    for line, each in tried.items():
        say(f"line {line}", each.problem)
    say(
        "",
        "of the numbers that an answer shows, half are within a smaller part of themselves. Its noise is thrown away",
    )


def _trial_cells(each: Trial) -> tuple[str, str, str]:
    if each.problem:
        return "", "", ""
    within = "" if math.isnan(each.within) else f"{100 * each.within:.2g} %"
    return f"{each.found:,}", f"{each.asked:,}" if each.asked else "all", within


_HEADS = ("budget", "information", "calls", "renewed", "fits", "a month", "accounts", "months")
_MEANING = (
    "Fits: how often the budget pays for all queries. Accounts: how many that share it can have all queries at that "
    "rate"
)


def _again(answered: Sequence[Answered]) -> str:
    """Return what a query costs that is asked again on the same data: that depends on its table."""
    fresh = [
        str(each.query.line)
        for each in answered
        if each.cost is not None
        and isinstance(each.outcome, Explanation)
        and each.outcome.parameters.consistency is Consistency.FRESH
    ]
    but = f", but for line {', '.join(fresh)}, which is paid each time" if fresh else ""
    return f"a query that is asked again while its data stay the same is free{but}"


def _expected(each: Answered) -> Iterator[str]:
    """Yield how exact an answer will be that is no count, in the service's words."""
    if isinstance(each.outcome, Refusal) or each.cost is None or each.outcome.accuracy is None:
        return
    if each.outcome.accuracy.mean_error is None:
        yield from (text.text for text in each.outcome.statements if text.code.startswith(_ACCURACY))


def _cells(each: Answered) -> Iterator[str]:
    yield str(each.query.line)
    yield each.query.title
    if each.cost is None:
        yield from (f"as line {each.repeats}" if each.repeats else "free", "")
    else:
        yield from (f"{each.cost.information:,}", f"{each.cost.calls:,}")
    accuracy = None if isinstance(each.outcome, Refusal) else each.outcome.accuracy
    yield (
        ""
        if accuracy is None or accuracy.mean_error is None
        else formats.number(round(accuracy.mean_error, 1))
    )
    yield "" if accuracy is None else accuracy.found_text


def _budget_cells(each: Carried) -> Iterator[str]:
    """Yield a line of budgets; numbers are rounded down."""
    budget = each.budget
    yield from (budget.name, f"{budget.information:,}", f"{budget.calls:,}", budget.window, f"{each.fits:,}")
    match each.goes:
        case Renewed(each_month, accounts):
            yield from (f"{int(each_month):,}", f"{accounts:,}", "")
        case Lasting(months):
            yield from ("", "", f"{int(months):,}")
