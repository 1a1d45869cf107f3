"""The commands of `gris domain`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gris_cli.budget.commands import BUDGET_ADDRESS, BudgetFlag
from gris_cli.flags import DEFAULT_SPARK, JsonFlag, SparkFlag
from gris_cli.inputs import named_by
from gris_cli.plan.flags import OutFlag, SeedFlag, exact, named_errors

if TYPE_CHECKING:
    from dp_service.partitions import Method, Parameters
    from gris_data.domain.canonical_pairs import Source
    from gris_data.domain.publishing import Found, Publication

app = typer.Typer(
    help="Publish which elements of a column are safe to name, and inspect what was published.",
    no_args_is_help=True,
)


class PublishingEngine(StrEnum):
    """Where the computation runs: on this machine, or on Spark."""

    DUCKDB = "duckdb"
    SPARK = "spark"


RHO = Fraction(1, 10)
DELTA = Fraction(1, 10**9)
DELTA_0 = 100
ITERATIONS = 3
# The delta of the paper's own comparison.
COMPARED_DELTA = Fraction(1, 10**5)
METHODS = ["gaussian", "sips", "dpsu", "gw", "mad", "mad2r"]
RHOS = [Fraction(1, 10)]
ROUNDS = [1, 2, 3, 4, 5]
MOST_SYNTHETIC = 10**7


def _delta_flag(default: str) -> Any:
    """Return the flag of a delta; `default` is what its help shows."""
    return typer.Option(
        parser=exact,
        metavar="NUMBER",
        show_default=default,
        help="The probability that the guarantee fails for a member.",
    )


DataFlag = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Parquet, CSV, or a DuckDB database; on Spark Parquet or catalog:NAME."
    ),
]
TableFlag = Annotated[str, typer.Option(help="The table's name in the policy.")]
NamedColumnFlag = Annotated[str, typer.Option(help="The column whose elements are to be named.")]
ColumnFlag = Annotated[str, typer.Option(help="The column of elements.")]
MemberFlag = Annotated[str, typer.Option(help="The column of members.")]
DataVersionFlag = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="The version of the data that the file states: a name, not a hash of them."
    ),
]
CurrencyPolicyFlag = Annotated[Path, typer.Option(metavar="FILE", help="The policy, for its currency.")]
DomainFileFlag = Annotated[
    Path, typer.Option(metavar="FILE", dir_okay=False, help="The domain file to write.")
]
PayerFlag = Annotated[str, typer.Option(metavar="A/B", help="The account that records the price.")]
TicketKeyFlag = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The noise key of dp_service, if the ledger demands tickets."),
]
UnrecordedFlag = Annotated[
    bool, typer.Option("--unrecorded", help="Record no price: for trials whose result nobody sees.")
]
EngineFlag = Annotated[PublishingEngine, typer.Option(help="Where the computation runs.")]
SourceTableFlag = Annotated[str, typer.Option(help="The table of a DuckDB database.")]
DropNullsFlag = Annotated[
    bool, typer.Option("--drop-nulls", help="Leave out rows without member or element.")
]
MethodFlag = Annotated[str, typer.Option(help="gaussian, sips, dpsu, gw, mad or mad2r.")]
RhoFlag = Annotated[
    Fraction, typer.Option(parser=exact, metavar="NUMBER", show_default="0.1", help="The price in zCDP.")
]
PublishedDeltaFlag = Annotated[Fraction, _delta_flag("1e-9")]
ComparedDeltaFlag = Annotated[Fraction, _delta_flag("1e-5")]
Delta0Flag = Annotated[
    int,
    typer.Option("--delta-0", metavar="NUMBER", help="How many elements of a member count in each round."),
]
IterationsFlag = Annotated[int, typer.Option(help="The number of rounds of sips.")]
PricePolicyFlag = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A policy, to state the price in its currency.")
]


@app.command()
def publish(
    *,
    data: DataFlag,
    table: TableFlag,
    column: NamedColumnFlag,
    member: MemberFlag,
    data_version: DataVersionFlag,
    policy: CurrencyPolicyFlag,
    out: DomainFileFlag,
    account: PayerFlag = "",
    budget: BudgetFlag = BUDGET_ADDRESS,
    key_file: TicketKeyFlag = None,
    unrecorded: UnrecordedFlag = False,
    engine: EngineFlag = PublishingEngine.DUCKDB,
    spark: SparkFlag = DEFAULT_SPARK,
    source_table: SourceTableFlag = "",
    method: MethodFlag = "sips",
    rho: RhoFlag = RHO,
    delta: PublishedDeltaFlag = DELTA,
    delta_0: Delta0Flag = DELTA_0,
    iterations: IterationsFlag = ITERATIONS,
    drop_nulls: DropNullsFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Publish the elements of a column that are safe to name, and record the price for everyone who sees them."""
    from gris_cli.domain.reports import print_domain  # noqa: PLC0415
    from gris_data.domain.canonical_pairs import Source  # noqa: PLC0415
    from gris_data.domain.publishing import Publication  # noqa: PLC0415
    from gris_data.domain.publishing_flow import Request, published  # noqa: PLC0415 - `gris --help` should be quick

    if bool(account) == unrecorded:
        raise typer.BadParameter("give either --account, which records the price, or --unrecorded")
    on_spark = engine is PublishingEngine.SPARK
    path = data if on_spark else Path(data)
    source = Source(path, member, column, table=source_table, drops_nulls=drop_nulls)
    with named_errors():
        parameters = _parameters(method, rho, delta, delta_0, iterations)
        publication = Publication(table, column, data_version, source, parameters)
    discover = _discovery(spark if on_spark else None)
    made = published(Request(publication, discover, policy, out, account, budget, key_file))
    print_domain(made.domain, made.price, made.integrity, as_json=as_json)


def _discovery(spark: str | None) -> Callable[[Publication], Found]:
    """Return the function that finds elements: on Spark at a URL, or on this machine if there is none."""
    from gris_data.domain.publishing import found_on_this_machine  # noqa: PLC0415

    if spark is None:
        return found_on_this_machine
    from gris_data.domain.on_spark import found_on_spark  # noqa: PLC0415 - pyspark is an extra

    return partial(found_on_spark, url=spark)


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")],
    *,
    policy: PricePolicyFlag = None,
    elements: Annotated[bool, typer.Option("--elements", help="List the elements too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what a domain file holds and what it cost, and check that it is intact."""
    from gris_cli.domain.reports import print_domain  # noqa: PLC0415
    from gris_data.domain.publishing_flow import inspected  # noqa: PLC0415 - `gris --help` should be quick

    made = inspected(file, policy)
    print_domain(made.domain, made.price, made.integrity, as_json=as_json, lists_elements=elements)


def _parameters(method: str, rho: Fraction, delta: Fraction, delta_0: int, iterations: int) -> Parameters:
    from dp_service.partitions import Parameters  # noqa: PLC0415

    return Parameters(_method(method), rho, delta, delta_0, iterations)


@app.command()
def compare(
    *,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Parquet, CSV, or a DuckDB database.")
    ] = None,
    column: ColumnFlag = "",
    member: MemberFlag = "",
    source_table: SourceTableFlag = "",
    drop_nulls: DropNullsFlag = False,
    synthetic: Annotated[
        int, typer.Option(metavar="MEMBERS", help="Instead of --data: synthetic data of this many members.")
    ] = 0,
    methods: Annotated[list[str], typer.Option("--method", help="A method; repeatable.")] = METHODS,
    rhos: Annotated[
        list[Fraction],
        typer.Option("--rho", parser=exact, metavar="NUMBER", help="A price in zCDP; repeatable."),
    ] = RHOS,
    iterations: Annotated[list[int], typer.Option(help="A number of rounds of sips; repeatable.")] = ROUNDS,
    delta: ComparedDeltaFlag = COMPARED_DELTA,
    delta_0: Delta0Flag = DELTA_0,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="How often each method runs.")] = 3,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how many elements each method would release. For the owner of the data, never for analysts."""
    from gris_cli.sheets import print_sheets  # noqa: PLC0415
    from gris_lab.domain_comparison import compared, grid_of, iterations_sheet, methods_sheet  # noqa: PLC0415
    from gris_lab.domain_plots import draw_compared  # noqa: PLC0415
    from gris_lab.plots import check_plot  # noqa: PLC0415
    from gris_lab.progress import progress  # noqa: PLC0415

    check_plot(out, curves=max(len(methods), len(rhos)))
    source = _compared_source(data, member, column, source_table, drops_nulls=drop_nulls, synthetic=synthetic)
    with named_errors():
        asked = grid_of([_method(each) for each in methods], rhos, delta, delta_0, iterations)
    with named_by("--data"), progress("comparing", len(asked) * runs) as advance:
        result = compared(source, asked, runs=runs, seed=seed, advance=advance)
    if out:
        name = f"{column} of {data.name}" if data is not None else f"{synthetic} synthetic members"
        title = f"{name}: delta = {float(delta):g}, {runs} runs a point"
        draw_compared(result, out, iterations=ITERATIONS, title=title)
    sheets = {"methods": methods_sheet(result, ITERATIONS), "iterations": iterations_sheet(result)}
    print_sheets(sheets, as_json=as_json)


def _compared_source(
    data: Path | None, member: str, column: str, table: str, *, drops_nulls: bool, synthetic: int
) -> Source:
    from gris_data.domain.canonical_pairs import Source  # noqa: PLC0415
    from gris_lab.synthetic_data import synthetic as made_up  # noqa: PLC0415

    if (data is None) == (synthetic == 0):
        raise typer.BadParameter("give either --data with --column and --member, or --synthetic")
    if data is None:
        if not 0 < synthetic <= MOST_SYNTHETIC:
            raise typer.BadParameter(f"--synthetic expects 1 to {MOST_SYNTHETIC} members")
        return Source(made_up(synthetic, seed=1), "member", "element")
    if not member or not column:
        raise typer.BadParameter("--data needs --column and --member")
    return Source(data, member, column, table=table, drops_nulls=drops_nulls)


def _method(name: str) -> Method:
    from dp_service.partitions import Method  # noqa: PLC0415

    if name not in list(Method):
        raise typer.BadParameter(f"--method expects one of {', '.join(Method)}")
    return Method(name)
