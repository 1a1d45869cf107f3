"""`gris demo`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import OF_ENGINE, ConnectionFlags


@with_flags
def demo(
    *,
    connection: Annotated[ConnectionFlags, (*OF_ENGINE, "examples")],
    directory: Path | None = flag(
        None, "Where noise key, ledger and logs are kept; by default they are temporary."
    ),
    as_json: bool,
) -> None:
    """Ask five private questions of real data, one of them twice; then of bounded contributions and until a refusal."""
    from gris_cli.clients import engine_of
    from gris_cli.demo_report import DemoReport
    from gris_cli.demo_script import DemoScript
    from gris_cli.examples import find_examples
    from gris_cli.failures import EXIT_UNEXPECTED

    report = DemoReport(as_json=as_json)
    with closing(engine_of(replace(connection, embedded=True))) as engine:
        identical = DemoScript(find_examples(connection.examples), engine, report).run(directory)
    if not identical:
        raise typer.Exit(EXIT_UNEXPECTED)
