"""`gris audit`: one module a command; `collecting` asks the services for what a bundle holds."""

from __future__ import annotations

import typer

from gris_cli.audit.export import export
from gris_cli.audit.record import record
from gris_cli.audit.verify import verify

app = typer.Typer(
    help="One signed bundle of who did and saw what, and its verification offline.", no_args_is_help=True
)
for each in (record, export, verify):
    app.command()(each)
