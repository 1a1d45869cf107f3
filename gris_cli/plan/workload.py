"""`gris plan workload`: the queries of a dashboard, priced by the service's own words; it reads no data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.inputs import file_errors, number
from gris_cli.plan.flags import CALLS, INFORMATION, AudienceFlag

if TYPE_CHECKING:
    from gris_lab.trial import Trial
    from gris_lab.workload import Answered, Limit, Query
    from pinot_connector.audiences import Audience

ONCE = Fraction(1)
# typer copies a list before it hands it over.
NO_DATA: list[str] = []


@dataclass(frozen=True)
class BudgetFlags:
    """The budget that pays, and how often the dashboard is refreshed."""

    budget_config: Path | None = flag(
        None, "The limits of this budget.yaml, instead of one a month.", metavar="FILE", dir_okay=False
    )
    information: int | None = flag(
        None, f"The information units of an account a month; by default {INFORMATION}.", min=0
    )
    calls: int | None = flag(None, f"Its calls a month; by default {CALLS}.", min=0)
    refreshes_per_month: Annotated[
        Fraction, number("How often a month all queries are asked on new data.", default="1")
    ] = ONCE

    def rate(self) -> Fraction:
        """Return how often a month the dashboard is refreshed."""
        if self.refreshes_per_month <= 0:
            raise typer.BadParameter("--refreshes-per-month: expected a number above 0")
        return self.refreshes_per_month

    def budgets(self) -> list[Limit]:
        """Return the limits: those of the file, or the one that flags state."""
        from gris_lab.workload import MONTH_DAYS, Limit

        if self.budget_config is None:
            information = INFORMATION if self.information is None else self.information
            calls = CALLS if self.calls is None else self.calls
            return [Limit("an account", information, calls, "month", MONTH_DAYS)]
        if self.information is not None or self.calls is not None:
            raise typer.BadParameter(
                "--budget-config says --information and --calls; they cannot be given with it"
            )
        return list(budgets_of(self.budget_config))


def budgets_of(path: Path, flag: str = "--budget-config") -> Iterator[Limit]:
    """Yield the limits of a budget.yaml, which `flag` names in errors."""
    from budget_service.configuration.budget_file import ConfigurationError, load_configuration
    from gris_lab.workload import MONTH_DAYS, Limit
    from pinot_connector.errors import level_name

    try:
        entries = load_configuration(path).accounts
    except ConfigurationError as error:
        raise typer.BadParameter(f"{flag}: {error}") from None
    days = {"day": Fraction(1), "week": Fraction(7), "month": MONTH_DAYS, "never": Fraction(0)}
    for each in entries:
        window = f"{each.days} days" if each.days else each.window
        length = Fraction(each.days) if each.days else days[each.window]
        is_enforced = each.mode == "enforce"
        of_purposes = [(most, purpose) for purpose, most in sorted(each.purposes.items())]
        for most, purpose in (*of_purposes, (each.limit, "")):
            name = level_name(each.path, purpose) + ("" if is_enforced else " (recorded alone)")
            yield Limit(name, most.information, most.calls, window, length, is_enforced, purpose)


_FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="SQL, with semicolons between the queries.", dir_okay=False)
]


@with_flags
def workload(
    *,
    queries: _FileArgument,
    policy: Path = required("The policy that answers.", metavar="FILE", dir_okay=False),
    audience: AudienceFlag = "",
    budget: BudgetFlags,
    data: list[str] = flag(
        NO_DATA,
        "For the owner of the data: answer each query once, by noise that is thrown away, and show how much is found. "
        "Repeatable.",
        metavar="TABLE=PATH",
    ),
    as_json: bool,
) -> None:
    """Price the queries of a dashboard, and show for how many accounts a budget pays. Reads no data without --data.

    Each is answered, with price and expected error, or refused, with the reason and what to write instead. A comment
    before a query is its title.
    """
    import time

    from gris_cli.clients import audience_of
    from gris_cli.plan.workload_report import print_workload
    from gris_lab import workload as lab

    rate, budgets = budget.rate(), budget.budgets()
    with file_errors(queries):
        asked = _queries_of(queries)
    asking = audience_of(audience)
    found = lab.answers(policy, asked, asking, now=int(time.time()))
    # What costs nothing takes from no budget.
    goes = [
        lab.carried(costs, each, rate) for each in budgets if (costs := lab.costs_of(found, each.purpose))
    ]
    tried = _tried(found, policy, data, asking) if data else {}
    print_workload(found, goes, rate, tried, as_json=as_json)


def _tried(
    found: list[Answered], policy: Path, data: list[str], audience: Audience | None
) -> dict[int, Trial]:
    from contextlib import closing

    from gris_cli.clients import files_and_copies
    from gris_cli.examples import locations_of, require_tables
    from gris_data.engines import duckdb_engine
    from gris_lab.trial import trials

    locations = locations_of(data)
    require_tables(policy, locations)
    with closing(duckdb_engine(files_and_copies(policy, locations))) as engine:
        return trials(found, policy, engine, audience)


def _queries_of(path: Path) -> list[Query]:
    from gris_data.errors import InputError
    from gris_lab.workload import queries_of

    try:
        # Editors begin a file with a mark of UTF-8, which is no part of its first query.
        return queries_of(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{path}: expected a text in UTF-8") from None
    except InputError as error:
        raise typer.BadParameter(f"{path}: {error}") from None
