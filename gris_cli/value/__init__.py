"""`gris value`: one module a command."""

from __future__ import annotations

import typer

from gris_cli.value.inspect import inspect
from gris_cli.value.publish import publish

app = typer.Typer(
    help="Publish a bound for the values of a column, and inspect what was published.", no_args_is_help=True
)
for each in (publish, inspect):
    app.command()(each)
