"""`gris policy`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import (
    DEFAULT_SETTLE_SECONDS,
    JsonFlag,
    PinotAuthorizationFlag,
    PinotCaFlag,
    PinotCertificateFlag,
)
from gris_cli.inputs import named_by

if TYPE_CHECKING:
    from dp_service.queries.policy import Policy
    from dp_service.queries.tables import Table
    from gris_data.policy.data import DataReport
    from gris_data.policy.promises import PromiseReport

app = typer.Typer()
PARQUET_MAGIC = b"PAR1"


@app.callback()
def policy() -> None:
    """Write a first policy for a table, and check a policy before it is served."""


@app.command("draft")
def draft(
    *,
    misplaced: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    data: Annotated[
        list[str],
        typer.Option(
            metavar="[TABLE=]PATH",
            help="A Parquet file or DuckDB database. Only names and types of columns are read. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies a list before it hands it over
    pinot: Annotated[
        str, typer.Option(metavar="URL", help="Instead of --data: the controller of a Pinot, for --table.")
    ] = "",
    table: Annotated[list[str], typer.Option(metavar="NAME", help="With --pinot: a table. Repeatable.")] = [],  # noqa: B006
    member: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column of the people who are protected; by default the only one whose name says so.",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file to write, which must not exist; by default standard output."
        ),
    ] = None,
    pinot_authorization_file: PinotAuthorizationFlag = None,
    pinot_ca_file: PinotCaFlag = None,
    pinot_certificate_file: PinotCertificateFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a first policy for your own tables, with a comment at each decision. No row of the data is read."""
    if misplaced:
        raise typer.BadParameter(f"--data {misplaced[0]} names a table's file: put --data before it")
    from gris_cli.policy.drafting import DraftSource, drafted, print_draft  # noqa: PLC0415 - duckdb is an extra

    files = (pinot_authorization_file, pinot_ca_file, pinot_certificate_file)
    made = drafted(DraftSource(tuple(data), pinot, tuple(table), member, files))
    print_draft(made, out, as_json=as_json)


@app.command("check")
def check(  # noqa: PLR0917 - typer calls it by name
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy file (YAML).")],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="[TABLE=]PATH",
            help="Also read a table's Parquet file or DuckDB database: compare it with the policy, check every assumed "
            "delta and tau, and count the rows that questions leave out. True counts, for the owner of the data "
            "alone. PATH alone is enough for a policy of one table. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies a list before it hands it over
    pinot: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Also compare the policy with the schemas of its tables in a Pinot, at its controller.",
        ),
    ] = "",
    pinot_broker: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="With --pinot: also count by queries, through this broker, whether Pinot's rows keep every assumed "
            "delta and tau. True counts, for the owner of the data alone.",
        ),
    ] = "",
    spark: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The same for --data TABLE=PATH or TABLE=catalog:NAME on this Spark, which reads them instead.",
        ),
    ] = "",
    pinot_authorization_file: PinotAuthorizationFlag = None,
    pinot_ca_file: PinotCaFlag = None,
    pinot_certificate_file: PinotCertificateFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show every fault of a policy file with its line; of a valid one, what it allows, promises and leaves out.

    Exit code 1 if the data break a promise of the policy.
    """
    from dp_service.queries.errors import PolicyError  # noqa: PLC0415 - `gris --help` should be quick
    from dp_service.queries.policy import read_policy  # noqa: PLC0415
    from dp_service.releases.kinds import UnusableParametersError, require_usable  # noqa: PLC0415
    from gris_cli.failures import EXIT_UNEXPECTED, EXIT_USAGE  # noqa: PLC0415
    from gris_cli.policy.report import print_faults, print_report  # noqa: PLC0415

    content = _content(file)
    try:
        found = read_policy(content, str(file))
        require_usable(found.policy)
    except PolicyError as error:
        print_faults(error.problems, content, as_json=as_json)
        raise typer.Exit(EXIT_USAGE) from None
    except UnusableParametersError as error:
        print_faults((found.document.problem(("epsilon_per",), str(error)),), content, as_json=as_json)
        raise typer.Exit(EXIT_USAGE) from None
    if pinot_broker and not pinot:
        raise typer.BadParameter("--pinot-broker needs --pinot, the controller of the same cluster")
    files = (pinot_authorization_file, pinot_ca_file, pinot_certificate_file)
    if pinot:
        _require_schemas(found.policy, pinot, files)
    counted = _counted_on_pinot(found.policy, pinot_broker, pinot, files) if pinot_broker else []
    named = _named_tables(found.policy, data)
    counted += _counted_on_spark(found.policy, spark, named) if spark else []
    reports = [] if spark else _examined_tables(named)
    compared = {table.name for table in found.policy.tables if pinot} | {table.name for table, _ in named}
    print_report(found, reports, counted, compared=compared, as_json=as_json)
    found_in_files = [promise for report in reports for promise in report.promises]
    found_by_engines = [promise for report in counted for promise in report.promises]
    if not all(promise.is_kept for promise in (*found_in_files, *found_by_engines)):
        raise typer.Exit(EXIT_UNEXPECTED)


def _require_schemas(
    policy: Policy, controller: str, files: tuple[Path | None, Path | None, Path | None]
) -> None:
    """Refuse a policy that says of Pinot's tables what their schemas do not."""
    from gris_data.engines import PinotAccess  # noqa: PLC0415 - `gris --help` should be quick
    from gris_data.policy.on_pinot import faults_of_schemas  # noqa: PLC0415 - pinotdb is an extra

    with named_by("--pinot"):
        faults = list(faults_of_schemas(policy, controller, PinotAccess(*files)))
    if faults:
        raise typer.BadParameter(f"--pinot: {'; '.join(faults)}")


def _counted_on_pinot(
    policy: Policy, broker: str, controller: str, files: tuple[Path | None, Path | None, Path | None]
) -> list[PromiseReport]:
    """Return whether the rows of Pinot's tables keep the policy's promises."""
    from gris_data.engines import PinotAccess, PinotLoading, pinot_engine  # noqa: PLC0415 - `gris --help` should be quick
    from gris_data.policy.promises import counted  # noqa: PLC0415

    loading = PinotLoading(DEFAULT_SETTLE_SECONDS)
    with closing(pinot_engine(broker, controller, loading, PinotAccess(*files))) as engine:
        return [counted(engine, table, policy.currency) for table in policy.tables]


def _counted_on_spark(policy: Policy, url: str, named: list[tuple[Table, str]]) -> list[PromiseReport]:
    """Return whether the rows that a Spark reads keep the policy's promises; refuse columns that they lack."""
    from gris_data.engines import spark_engine  # noqa: PLC0415 - `gris --help` should be quick
    from gris_data.policy.promises import counted, require_columns  # noqa: PLC0415
    from pinot_connector.errors import EngineRefused  # noqa: PLC0415

    if not named:
        raise typer.BadParameter("--spark needs --data TABLE=PATH or TABLE=catalog:NAME")
    with closing(spark_engine(url, {table.name: location for table, location in named})) as engine:
        for table, _ in named:
            try:
                require_columns(engine, table)
            except EngineRefused as error:
                raise typer.BadParameter(f"--data {table.name}: {error}") from None
        return [counted(engine, table, policy.currency) for table, _ in named]


def _named_tables(policy: Policy, data: list[str]) -> list[tuple[Table, str]]:
    """Return the tables that --data names, with their locations."""
    from gris_cli.examples import locations_of  # noqa: PLC0415 - `gris --help` should be quick

    tables = {table.name: table for table in policy.tables}
    # A path may hold an equals sign itself.
    texts = [text if text.partition("=")[0] in tables else _with_table(text, list(tables)) for text in data]
    return [(tables[name], location) for name, location in locations_of(texts).items()]


def _with_table(text: str, tables: list[str]) -> str:
    """Return `TABLE=PATH` for a location alone, which is enough where a policy has one table."""
    if len(tables) == 1 and (":" in text or Path(text).exists()):
        return f"{tables[0]}={text}"
    alone = " or a path alone that exists," if len(tables) == 1 else ""
    raise typer.BadParameter(
        f"--data expects TABLE=PATH with a table of the policy ({', '.join(tables)}),{alone} got {text}"
    )


def _content(file: Path) -> bytes:
    """Return what a file holds, unless it is a table's."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None
    if content.startswith(PARQUET_MAGIC):
        raise typer.BadParameter(
            f"{file} is a Parquet file, and a policy is YAML; gris policy draft --data {file} writes one for it",
            param_hint="FILE",
        )
    return content


def _examined_tables(named: list[tuple[Table, str]]) -> list[DataReport]:
    from gris_cli.clients import data_files  # noqa: PLC0415 - `gris --help` should be quick

    files = data_files({table.name: location for table, location in named})
    return [_examined_table(table, files[table.name]) for table, _ in named]


def _examined_table(table: Table, path: Path) -> DataReport:
    from gris_data.policy.data import examined  # noqa: PLC0415 - duckdb is an extra

    with named_by(f"--data {table.name}"):
        return examined(table, path)
