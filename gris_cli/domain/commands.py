"""The commands of `gris domain`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.budget.commands import BUDGET_ADDRESS, BudgetFlag
from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import exact, named_errors

if TYPE_CHECKING:
    from dp_service.partitions import Parameters

app = typer.Typer(
    help="Publish which elements of a column are safe to name, and look at what was published.",
    no_args_is_help=True,
)

RHO = Fraction(1, 10)
DELTA = Fraction(1, 10**9)
DELTA_0 = 100
ITERATIONS = 3

RhoFlag = Annotated[
    Fraction, typer.Option(parser=exact, metavar="NUMBER", show_default="0.1", help="Its zCDP.")
]
DomainDeltaFlag = Annotated[
    Fraction,
    typer.Option(parser=exact, metavar="NUMBER", show_default="1e-9", help="Its chance to fail a member."),
]
Delta0Flag = Annotated[
    int, typer.Option("--delta-0", metavar="NUMBER", help="How many elements of a member count in a round.")
]


@app.command()
def publish(
    *,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Parquet, CSV, or a DuckDB database.")],
    table: Annotated[str, typer.Option(help="The table's name in the policy.")],
    column: Annotated[str, typer.Option(help="The column whose elements are to be named.")],
    member: Annotated[str, typer.Option(help="The column of members.")],
    data_version: Annotated[str, typer.Option(metavar="TEXT", help="What the file says of the data.")],
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy, for its currency.")],
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="The domain file to write.")],
    account: Annotated[str, typer.Option(metavar="A/B", help="The account that records the price.")] = "",
    budget: BudgetFlag = BUDGET_ADDRESS,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="dp_service's key, if the ledger demands tickets.")
    ] = None,
    unrecorded: Annotated[
        bool, typer.Option("--unrecorded", help="Record no price: for trials whose result nobody sees.")
    ] = False,
    source_table: Annotated[str, typer.Option(help="The table of a DuckDB database.")] = "",
    method: Annotated[str, typer.Option(help="gaussian, sips, dpsu, gw, mad or mad2r.")] = "sips",
    rho: RhoFlag = RHO,
    delta: DomainDeltaFlag = DELTA,
    delta_0: Delta0Flag = DELTA_0,
    iterations: Annotated[int, typer.Option(help="The rounds of sips.")] = ITERATIONS,
    drop_nulls: Annotated[
        bool, typer.Option("--drop-nulls", help="Leave out rows without member or element.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Publish the elements of a column that are safe to name, and record what that costs everyone who sees them."""
    from gris_cli.domain.flow import Request, published  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.domain.publishing import Publication  # noqa: PLC0415
    from gris_cli.domain.reading import Source  # noqa: PLC0415
    from gris_cli.domain.reports import print_domain  # noqa: PLC0415

    if bool(account) == unrecorded:
        raise typer.BadParameter("--account says where the price is recorded; --unrecorded that it is not")
    with named_errors():
        publication = Publication(
            table=table,
            column=column,
            data_version=data_version,
            source=Source(data, member, column, table=source_table, drops_nulls=drop_nulls),
            parameters=_parameters(method, rho, delta, delta_0, iterations),
        )
    made = published(Request(publication, policy, out, account, budget, key_file))
    print_domain(made.domain, made.price, made.integrity, as_json=as_json)


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")],
    *,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A policy, for the price in its currency.")
    ] = None,
    elements: Annotated[bool, typer.Option("--elements", help="List the elements too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Tell what a domain file holds, what it cost, and whether it is whole."""
    from gris_cli.domain.flow import inspected  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.domain.reports import print_domain  # noqa: PLC0415

    made = inspected(file, policy)
    print_domain(made.domain, made.price, made.integrity, as_json=as_json, lists_elements=elements)


def _parameters(method: str, rho: Fraction, delta: Fraction, delta_0: int, iterations: int) -> Parameters:
    from dp_service.partitions import Method, Parameters  # noqa: PLC0415

    if method not in list(Method):
        raise typer.BadParameter(f"--method expects one of {', '.join(Method)}")
    return Parameters(Method(method), rho, delta, delta_0, iterations)
