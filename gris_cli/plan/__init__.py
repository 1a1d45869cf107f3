"""`gris plan`: one module a command."""

from __future__ import annotations

import typer

from gris_cli.plan.attacks import attacks
from gris_cli.plan.guarantee import guarantee
from gris_cli.plan.solve import solve

app = typer.Typer(help="What budgets are worth, and which to choose.", no_args_is_help=True)
for each in (guarantee, solve, attacks):
    app.command()(each)
