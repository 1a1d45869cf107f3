"""`gris domain`: one module a command."""

from __future__ import annotations

import typer

from gris_cli.domain.inspect import inspect
from gris_cli.domain.publish import publish

app = typer.Typer(
    help="Publish which elements of a column are safe to name, and inspect what was published.",
    no_args_is_help=True,
)
for each in (publish, inspect):
    app.command()(each)
