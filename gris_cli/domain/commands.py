"""The commands of `gris domain`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.budget.commands import BUDGET_ADDRESS, BudgetFlag
from gris_cli.flags import DEFAULT_SPARK, JsonFlag, SparkFlag
from gris_cli.plan.flags import OutFlag, SeedFlag, exact, named_errors

if TYPE_CHECKING:
    from dp_service.partitions import Method, Parameters
    from gris_cli.domain.member_data import Source
    from gris_cli.domain.publishing import Found, Publication

app = typer.Typer(
    help="Publish which elements of a column are safe to name, and look at what was published.",
    no_args_is_help=True,
)


class PublishingEngine(StrEnum):
    """Where the work is done: on this machine, or on Spark."""

    DUCKDB = "duckdb"
    SPARK = "spark"


RHO = Fraction(1, 10)
DELTA = Fraction(1, 10**9)
DELTA_0 = 100
ITERATIONS = 3
# What is compared is compared with the paper's numbers.
COMPARED_DELTA = Fraction(1, 10**5)
METHODS = ["gaussian", "sips", "dpsu", "gw", "mad", "mad2r"]
RHOS = [Fraction(1, 10)]
ROUNDS = [1, 2, 3, 4, 5]
MOST_SYNTHETIC = 10**7

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
    data: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Parquet, CSV, or a DuckDB database; on Spark Parquet or catalog:NAME.",
        ),
    ],
    table: Annotated[str, typer.Option(help="The table's name in the policy.")],
    column: Annotated[str, typer.Option(help="The column whose elements are to be named.")],
    member: Annotated[str, typer.Option(help="The column of members.")],
    data_version: Annotated[
        str, typer.Option(metavar="TEXT", help="What the file says of the data: a name, and no hash of them.")
    ],
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
    engine: Annotated[
        PublishingEngine, typer.Option(help="Where the work is done.")
    ] = PublishingEngine.DUCKDB,
    spark: SparkFlag = DEFAULT_SPARK,
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
    _require_duckdb()
    from gris_cli.domain.member_data import Source  # noqa: PLC0415
    from gris_cli.domain.publishing import Publication  # noqa: PLC0415
    from gris_cli.domain.publishing_flow import Request, published  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.domain.reports import print_domain  # noqa: PLC0415

    if bool(account) == unrecorded:
        raise typer.BadParameter("--account says where the price is recorded; --unrecorded that it is not")
    on_spark = engine is PublishingEngine.SPARK
    with named_errors():
        publication = Publication(
            table=table,
            column=column,
            data_version=data_version,
            source=Source(
                data if on_spark else Path(data), member, column, table=source_table, drops_nulls=drop_nulls
            ),
            parameters=_parameters(method, rho, delta, delta_0, iterations),
        )
    discover = _discovery(spark if on_spark else None)
    made = published(Request(publication, discover, policy, out, account, budget, key_file))
    print_domain(made.domain, made.price, made.integrity, as_json=as_json)


def _discovery(spark: str | None) -> Callable[[Publication], Found]:
    """Return what finds elements: Spark at a URL, or, without one, this machine."""
    from gris_cli.domain.publishing import found_on_this_machine  # noqa: PLC0415

    if spark is None:
        return found_on_this_machine
    try:
        from gris_cli.domain.on_spark import found_on_spark  # noqa: PLC0415 - pyspark is an extra
    except ModuleNotFoundError:
        raise typer.BadParameter("--engine spark needs pip install 'gris-dp[spark]'") from None
    return partial(found_on_spark, url=spark)


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
    _require_duckdb()
    from gris_cli.domain.publishing_flow import inspected  # noqa: PLC0415 - `gris --help` should be quick
    from gris_cli.domain.reports import print_domain  # noqa: PLC0415

    made = inspected(file, policy)
    print_domain(made.domain, made.price, made.integrity, as_json=as_json, lists_elements=elements)


def _require_duckdb() -> None:
    try:
        import duckdb  # noqa: F401, PLC0415 - an extra of its own
    except ModuleNotFoundError:
        raise typer.BadParameter("gris domain needs pip install 'gris-dp[dp,duckdb,cli]'") from None


def _parameters(method: str, rho: Fraction, delta: Fraction, delta_0: int, iterations: int) -> Parameters:
    from dp_service.partitions import Parameters  # noqa: PLC0415

    return Parameters(_method(method), rho, delta, delta_0, iterations)


@app.command()
def compare(
    *,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Parquet, CSV, or a DuckDB database.")
    ] = None,
    column: Annotated[str, typer.Option(help="The column of elements.")] = "",
    member: Annotated[str, typer.Option(help="The column of members.")] = "",
    source_table: Annotated[str, typer.Option(help="The table of a DuckDB database.")] = "",
    drop_nulls: Annotated[
        bool, typer.Option("--drop-nulls", help="Leave out rows without member or element.")
    ] = False,
    synthetic: Annotated[
        int, typer.Option(metavar="MEMBERS", help="Instead of --data: made-up data of so many members.")
    ] = 0,
    methods: Annotated[
        list[str], typer.Option("--method", help="A method; repeat it for several.")
    ] = METHODS,
    rhos: Annotated[
        list[Fraction],
        typer.Option("--rho", parser=exact, metavar="NUMBER", help="A zCDP; repeat it for several."),
    ] = RHOS,
    iterations: Annotated[
        list[int], typer.Option(help="A number of rounds of sips; repeat it for several.")
    ] = ROUNDS,
    delta: DomainDeltaFlag = COMPARED_DELTA,
    delta_0: Delta0Flag = DELTA_0,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each method.")] = 3,
    seed: SeedFlag = None,
    out: OutFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell how many elements each method would release; for the owner of the data, never for analysts."""
    _require_duckdb()
    from gris_cli.domain.comparison import compared, grid_of, iterations_sheet, methods_sheet  # noqa: PLC0415
    from gris_cli.domain.member_data import SourceError  # noqa: PLC0415
    from gris_cli.domain.pictures import draw_compared  # noqa: PLC0415
    from gris_cli.plan.pictures import check_picture  # noqa: PLC0415
    from gris_cli.plan.progress import progress  # noqa: PLC0415
    from gris_cli.plan.sheets import print_sheets  # noqa: PLC0415

    check_picture(out, curves=max(len(methods), len(rhos)))
    source = _compared_source(data, member, column, source_table, drops_nulls=drop_nulls, synthetic=synthetic)
    with named_errors():
        asked = grid_of([_method(each) for each in methods], rhos, delta, delta_0, iterations)
    try:
        with progress("comparing", len(asked) * runs) as advance:
            result = compared(source, asked, runs=runs, seed=seed, advance=advance)
    except SourceError as error:
        raise typer.BadParameter(f"--data: {error}") from None
    if out:
        draw_compared(
            result, out, iterations=ITERATIONS, title=f"delta = {float(delta):g}, {runs} runs a point"
        )
    sheets = {"methods": methods_sheet(result, ITERATIONS), "iterations": iterations_sheet(result)}
    print_sheets(sheets, as_json=as_json)


def _compared_source(
    data: Path | None, member: str, column: str, table: str, *, drops_nulls: bool, synthetic: int
) -> Source:
    from gris_cli.domain.member_data import Source  # noqa: PLC0415
    from gris_cli.domain.synthetic_data import synthetic as made_up  # noqa: PLC0415

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
