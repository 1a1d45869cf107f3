"""The commands of `gris value`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from gris_cli.budget.commands import BUDGET_ADDRESS, BudgetFlag
from gris_cli.domain.commands import DataVersionFlag, PayerFlag, TableFlag, TicketKeyFlag, UnrecordedFlag
from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import exact

app = typer.Typer(
    help="Publish a bound for the values of a column, and inspect what was published.", no_args_is_help=True
)
QUANTILE = Fraction(95, 100)

PolicyFlag = Annotated[
    Path, typer.Option(metavar="FILE", help="The policy, for the column's grid and the currency.")
]
OutFlag = Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="The file to write.")]


@app.command()
def publish(
    *,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Parquet, or a DuckDB database.")],
    table: TableFlag,
    column: Annotated[str, typer.Option(help="The column, one of the policy's quantiles of totals.")],
    data_version: DataVersionFlag,
    policy: PolicyFlag,
    out: OutFlag,
    account: PayerFlag = "",
    budget: BudgetFlag = BUDGET_ADDRESS,
    key_file: TicketKeyFlag = None,
    unrecorded: UnrecordedFlag = False,
    quantile: Annotated[
        Fraction,
        typer.Option(
            parser=exact,
            metavar="NUMBER",
            show_default="0.95",
            help="Which part of the members is below the bound.",
        ),
    ] = QUANTILE,
    as_json: JsonFlag = False,
) -> None:
    """Publish a quantile of members' totals as an upper bound, and record the price for everyone who sees it."""
    from gris_data.value.publishing import Request, published  # noqa: PLC0415 - `gris --help` should be quick

    if bool(account) == unrecorded:
        raise typer.BadParameter("give either --account, which records the price, or --unrecorded")
    request = Request(table, column, quantile, data, data_version, policy, out, account, budget, key_file)
    made = published(request)
    _print(made.bound, made.content, made.price, as_json=as_json)


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of a bound.")],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Show what the file of a bound holds, and check that it is intact."""
    from dp_service.queries.published_bounds import BoundFileError, read_bound  # noqa: PLC0415

    try:
        content = file.read_bytes()
        bound = read_bound(content)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    except BoundFileError as error:
        raise typer.BadParameter(f"{file}: {error}") from None
    _print(bound, content, None, as_json=as_json)


def _print(bound: Any, content: bytes, price: Any, *, as_json: bool) -> None:
    from dp_service.queries.published import integrity_of  # noqa: PLC0415
    from gris_cli.printing import console_of_width, print_json, say  # noqa: PLC0415
    from pinot_connector import formats  # noqa: PLC0415
    from pinot_connector.json_values import to_json  # noqa: PLC0415

    integrity = integrity_of(content)
    if as_json:
        print_json({**to_json(bound), "integrity": integrity, "price": to_json(price)})
        return
    console = console_of_width()
    cell = f"{formats.exact(bound.lower)} to {formats.exact(bound.upper)}"
    say(
        console,
        "bound",
        f"{bound.table}.{bound.column}: {float(bound.q):g} of the members' totals are below {cell}",
    )
    say(console, "data", f"version {bound.data_version}, published {bound.published_at}")
    say(console, "guarantee", f"{float(bound.rho):g}-zCDP for adding or removing a member")
    if price is not None:
        say(console, "price", formats.cost(price))
    say(
        console,
        "counts",
        f"for everyone who sees it: --domain {bound.rho}:{bound.delta} of gris plan guarantee",
    )
    say(console, "policy", f"upper: {{published: FILE, integrity: '{integrity}'}}")
