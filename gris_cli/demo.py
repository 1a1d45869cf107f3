"""`gris demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, assert_never

import typer

from gris_cli.flags import (
    DEFAULT_SETTLE_SECONDS,
    DEFAULT_SPARK,
    EngineName,
    JsonFlag,
    PinotServerAdminFlag,
    PinotServerAdminPortFlag,
    PinotSettleSecondsFlag,
    SparkFlag,
)


def demo(  # noqa: PLR0917 - typer calls it by name
    engine: Annotated[EngineName, typer.Option(help="The engine that holds the data.")] = EngineName.DUCKDB,
    directory: Annotated[
        Path | None,
        typer.Option(help="Where noise key, ledger and logs are kept; by default they are temporary."),
    ] = None,
    examples: Annotated[Path | None, typer.Option(help="The directory of the examples.")] = None,
    pinot_broker: Annotated[
        str, typer.Option(envvar="PINOT_BROKER", metavar="URL", help="Pinot's broker.")
    ] = "",
    pinot_controller: Annotated[
        str, typer.Option(envvar="PINOT_CONTROLLER", metavar="URL", help="Pinot's controller.")
    ] = "",
    pinot_server_admin: PinotServerAdminFlag = False,
    pinot_server_admin_port: PinotServerAdminPortFlag = None,
    pinot_settle_seconds: PinotSettleSecondsFlag = DEFAULT_SETTLE_SECONDS,
    spark: SparkFlag = DEFAULT_SPARK,
    as_json: JsonFlag = False,
) -> None:
    """Ask five private questions of real data, one of them twice; then of bounded contributions and until a refusal."""
    from gris_cli.demo_reports import JsonReport, TextReport  # noqa: PLC0415
    from gris_cli.demo_script import DemoScript  # noqa: PLC0415
    from gris_cli.examples import find_examples  # noqa: PLC0415
    from gris_cli.failures import EXIT_UNEXPECTED  # noqa: PLC0415
    from gris_data.engines import PinotLoading, duckdb_engine, pinot_engine, spark_engine  # noqa: PLC0415 - `gris --help` should not load gRPC

    found = find_examples(examples)
    match engine:
        case EngineName.PINOT:
            loading = PinotLoading(pinot_settle_seconds, pinot_server_admin, pinot_server_admin_port)
            data = pinot_engine(pinot_broker, pinot_controller, loading)
        case EngineName.SPARK:
            data = spark_engine(spark, {table: str(path) for table, path in found.tables.items()})
        case EngineName.DUCKDB:
            data = duckdb_engine(found.tables)
        case _:
            assert_never(engine)
    report = JsonReport() if as_json else TextReport()
    try:
        identical = DemoScript(found, data, report).run(directory)
    finally:
        data.close()
    if not identical:
        raise typer.Exit(EXIT_UNEXPECTED)
