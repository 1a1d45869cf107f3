"""The page of `gris plan brief`: its tables, and what is said of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gris_data.sheets import Sheet
from gris_lab.brief import (
    DAYS,
    NamedBudget,
    known_attacks_sheet,
    odds_sheet,
    questions_sheet,
)
from gris_lab.budgets import deployments_sheet
from gris_lab.html_pages import Part, page
from gris_lab.workload import Answered
from pinot_connector import formats

_PARTS = {
    "odds": (
        "What can an attacker gain?",
        "The attacker knows all rows of everybody but one member, and wants to know whether a certain thing is true of "
        "that member. However clever the questions, the answers change the odds by no more than this factor, but for a "
        "probability of delta; epsilon is the logarithm of the factor, by the smallest bound that can be stated, "
        "which is named. The adaptive one needs a table: `gris plan table` makes it, and dp_service states it only "
        "where it is given the table. Bounds add up the worst of every answer, spent on one member; where a bound "
        "says “anything”, it excludes nothing, and the attacks below say more.",
    ),
    "attacks": (
        "What do attacks that are known reach?",
        "Those by which the parameters of LinkedIn's system were chosen (Rogers et al. 2020, arXiv:2002.05839, "
        "section 8), with the budget as stated. Of means the question counts whose noise withstands them least, with "
        f"as many answers as the budget pays for, {DAYS} at most; a budget that pays for one or none leaves no mean.",
    ),
    "questions": (
        "What can an analyst ask, and how exact is it?",
        "The most that each question costs by this policy, and how many of it alone each budget pays for. "
        "A name is found with 95 % if it has so many members, or so many more than the names that are cut off "
        "(“above the rest”).",
    ),
    "deployments": (
        "What have others published?",
        "Parameters as published, in table 2 of Rogers et al. 2020 (arXiv:2002.05839) unless a row names its source. "
        "In the local model everybody adds noise to their own data, in the global one a trusted server does.",
    ),
}


_SHARED = (
    " These are bounds of what one account is given. What is left of the budget that accounts share shows what the "
    "others' answers cost, and analysts may put together what they know: the last row holds for all of that."
)


def brief_sheets(
    budgets: Sequence[NamedBudget], found: Sequence[Answered], shared: NamedBudget | None
) -> dict[str, Sheet]:
    """Return the tables of the page; the middle budget is the one that was stated, and others may share one."""
    stated = budgets[len(budgets) // 2]
    return {
        "odds": odds_sheet(budgets, found, shared),
        "attacks": known_attacks_sheet(stated, found),
        "questions": questions_sheet(found, budgets),
        "deployments": deployments_sheet(stated.budget, is_refreshed=stated.is_refreshed),
    }


def brief_page(
    sheets: Mapping[str, Sheet], policy: str, stated: NamedBudget, shared: NamedBudget | None
) -> str:
    """Return the page in HTML."""
    budget = stated.budget
    when = "a month for an account" if stated.is_refreshed else "for an account, which is never refreshed"
    text = (
        f"By the policy {policy} and a budget of {budget.information:,} units and "
        f"{formats.counted(budget.calls, 'call')} {when}. One unit is worth "
        f"epsilon_per = {float(budget.epsilon_per):g}. No data were read."
    )
    more = {} if shared is None else {"odds": _SHARED}
    parts = [
        Part(_PARTS[name][0], _PARTS[name][1] + more.get(name, ""), sheet) for name, sheet in sheets.items()
    ]
    return page("Before anybody is let in: privacy and use of three budgets", text, parts)
