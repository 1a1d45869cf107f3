"""`gris plan brief`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import required, with_flags
from gris_cli.inputs import file_errors, named_errors
from gris_cli.plan.flags import SLACK, AudienceFlag, domains_of, is_gaussian, times_of

if TYPE_CHECKING:
    from dp_service.queries.tables import Policy
    from gris_lab.brief import NamedBudget
    from gris_lab.budgets import Budget
    from gris_lab.workload import Limit

_PolicyArgument = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy.", dir_okay=False)]
_BudgetArgument = Annotated[
    Path,
    typer.Argument(
        metavar="BUDGET",
        help="A budget.yaml: of its enforced limits that of the accounts with the longest path counts.",
        dir_okay=False,
    ),
]


_LONGEST_MONTH = 31
_THREEFOLD = 3
# All that a month touches: it may begin and end within a week.
_MOST_WINDOWS = {"day": _LONGEST_MONTH, "week": 6, "month": 1, "never": 1}


@with_flags
def brief(
    *,
    policy: _PolicyArgument,
    budget: _BudgetArgument,
    audience: AudienceFlag = "",
    out: Path = required("Write the page into this file, .html.", metavar="FILE", dir_okay=False),
    as_json: bool,
) -> None:
    """Write one web page for those who decide: what attackers can gain and analysts ask, by three budgets.

    Reads no data: everything follows from the policy and the budgets.
    """
    import time

    from gris_cli.clients import audience_of
    from gris_cli.printing import print_written
    from gris_cli.sheets import print_sheets
    from gris_data.policies import policy_of
    from gris_lab import brief as lab
    from gris_lab.brief_page import brief_page, brief_sheets
    from gris_lab.workload import answers

    if out.suffix != ".html":
        raise typer.BadParameter(
            f"--out: {out}: expected a name that ends in .html, which every browser shows and prints, as PDF too"
        )
    named = policy_of(policy)
    limit, above = _limits(budget)
    stated = _in_a_month(named, limit)
    with named_errors():
        budgets = lab.three_budgets(stated, is_refreshed=bool(limit.days))
        shared = None if above is None else _shared(named, above)
    found = answers(policy, lab.typical_questions(named), audience_of(audience), now=int(time.time()))
    sheets = brief_sheets(budgets, found, shared)
    with file_errors(out, "--out"):
        out.write_text(brief_page(sheets, policy.name, budgets[1], shared), encoding="utf-8")
    if as_json:
        print_sheets(sheets, {"written": str(out)}, as_json=True)
    else:
        print_written(out, as_json=False)


def _shared(policy: Policy, above: Limit) -> NamedBudget:
    from gris_lab.brief import shared_budget

    return shared_budget(above.name, _in_a_month(policy, above), is_refreshed=bool(above.days))


def _limits(path: Path) -> tuple[Limit, Limit | None]:
    """Return the limit of the accounts with the longest path, and the widest above them, which they share."""
    from gris_cli.plan.workload import budgets_of

    # What is recorded alone bounds nothing, and what is for a purpose bounds nothing more.
    limits = [each for each in budgets_of(path, "BUDGET") if each.is_enforced and not each.purpose]
    if not limits:
        raise typer.BadParameter(f"BUDGET: {path}: expected a limit that is enforced")
    deepest = max(each.name.count("/") for each in limits)
    account = max(
        (each for each in limits if each.name.count("/") == deepest), key=lambda each: "*" in each.name
    )
    above = [each for each in limits if _is_above(each.name, account.name)]
    return account, min(above, key=lambda each: each.name.count("/"), default=None)


def _is_above(level: str, account: str) -> bool:
    names, path = level.split("/"), account.split("/")
    return len(names) < len(path) and all(
        name in (segment, "*") for name, segment in zip(names, path, strict=False)
    )


def _in_a_month(policy: Policy, account: Limit) -> Budget:
    """Return what a limit lets be spent in a month, or ever if it is never refreshed, in the policy's currency."""
    from gris_lab.budgets import Budget

    windows = _MOST_WINDOWS.get(account.window) or math.ceil(_LONGEST_MONTH / account.days)
    _require_bounded(account, windows * times_of(policy))
    currency = policy.currency
    return Budget(
        currency.epsilon_per,
        currency.delta,
        windows * account.information,
        windows * account.calls,
        SLACK,
        is_gaussian(policy),
        domains_of(policy, ()),
        times=times_of(policy),
    )


def _require_bounded(limit: Limit, times: int) -> None:
    """Refuse a limit that is too large, so often and threefold, for any bound to be worked out."""
    from dp_service.accounting.checks import MAX_UNITS

    most = MAX_UNITS // (_THREEFOLD * times)
    for unit, got in (("information", limit.information), ("calls", limit.calls)):
        if got > most:
            raise typer.BadParameter(
                f"BUDGET: the limit of {limit.name}, {unit}: expected at most {most:,}, as no bound is worked out for "
                f"more than 2^53 units and the threefold budget is shown too; got {got:,}"
            )
