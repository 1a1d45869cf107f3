"""`gris policy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import JsonFlag, PinotAuthorizationFlag, PinotCaFlag, PinotCertificateFlag

if TYPE_CHECKING:
    from dp_service.queries.policy import Policy
    from dp_service.queries.tables import Table
    from gris_cli.policy_data import DataReport

app = typer.Typer()


@app.callback()
def policy() -> None:
    """Write a first policy for a table, and check a policy before it is served."""


@app.command("draft")
def draft(
    *,
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
    try:
        from gris_cli.policy_drafting import DraftSource, drafted, print_draft  # noqa: PLC0415 - duckdb is an extra
    except ModuleNotFoundError:
        raise typer.BadParameter("gris policy draft needs pip install 'gris-dp[dp,duckdb,cli]'") from None

    files = (pinot_authorization_file, pinot_ca_file, pinot_certificate_file)
    made = drafted(DraftSource(tuple(data), pinot, tuple(table), member, files))
    print_draft(made, out, as_json=as_json)


@app.command("check")
def check(  # noqa: PLR0917 - typer calls it by name
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy file (YAML).")],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="TABLE=PATH",
            help="Also read a table's Parquet file or DuckDB database: compare it with the policy, check every assumed "
            "delta and tau, and count the rows that questions leave out. True counts, for the owner of the data "
            "alone. Repeatable.",
        ),
    ] = [],  # noqa: B006 - typer copies a list before it hands it over
    pinot: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Also compare the policy with the schemas of its tables in a Pinot, at its controller.",
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
    from dp_service.releases.mechanism import UnusableParametersError, require_usable  # noqa: PLC0415
    from gris_cli.failures import EXIT_UNEXPECTED, EXIT_USAGE  # noqa: PLC0415
    from gris_cli.policy_report import print_faults, print_report  # noqa: PLC0415

    try:
        content = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None
    try:
        found = read_policy(content, str(file))
        require_usable(found.policy)
    except PolicyError as error:
        print_faults(error.problems, content, as_json=as_json)
        raise typer.Exit(EXIT_USAGE) from None
    except UnusableParametersError as error:
        print_faults((found.document.problem(("epsilon_per",), str(error)),), content, as_json=as_json)
        raise typer.Exit(EXIT_USAGE) from None
    if pinot:
        _require_schemas(
            found.policy, pinot, (pinot_authorization_file, pinot_ca_file, pinot_certificate_file)
        )
    reports = _examined(found.policy, data)
    print_report(found, reports, as_json=as_json)
    if any(not promise.is_kept for report in reports for promise in report.promises):
        raise typer.Exit(EXIT_UNEXPECTED)


def _require_schemas(
    policy: Policy, controller: str, files: tuple[Path | None, Path | None, Path | None]
) -> None:
    """Refuse a policy that says of Pinot's tables what their schemas do not."""
    try:
        from gris_cli.clients import PinotAccess  # noqa: PLC0415 - `gris --help` should be quick
        from gris_cli.policy_pinot import faults_of_schemas  # noqa: PLC0415 - pinotdb is an extra
        from gris_cli.table_schema import SchemaError  # noqa: PLC0415 - duckdb is an extra
    except ModuleNotFoundError:
        raise typer.BadParameter("--pinot needs pip install 'gris-dp[dp,duckdb,pinot,cli]'") from None
    try:
        faults = list(faults_of_schemas(policy, controller, PinotAccess(*files)))
    except SchemaError as error:
        raise typer.BadParameter(f"--pinot: {error}") from None
    if faults:
        raise typer.BadParameter(f"--pinot: {'; '.join(faults)}")


def _examined(policy: Policy, data: list[str]) -> list[DataReport]:
    """Return what is left out of the tables whose data are named."""
    reports = []
    for text in data:
        name, equals, path_text = text.partition("=")
        table = next((each for each in policy.tables if each.name == name), None)
        if not equals or not path_text or table is None:
            raise typer.BadParameter("--data expects TABLE=PATH with a table of the policy")
        reports.append(_examined_table(table, Path(path_text)))
    return reports


def _examined_table(table: Table, path: Path) -> DataReport:
    try:
        from gris_cli.policy_data import DataError, examined  # noqa: PLC0415 - duckdb is an extra
    except ModuleNotFoundError:
        raise typer.BadParameter("--data needs pip install 'gris-dp[dp,duckdb,cli]'") from None
    try:
        return examined(table, path)
    except DataError as error:
        raise typer.BadParameter(f"--data {table.name}: {error}") from None
