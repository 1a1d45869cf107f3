"""`gris policy`: one module a command."""

from __future__ import annotations

import typer

from gris_cli.policy.check import check
from gris_cli.policy.draft import draft

app = typer.Typer()
for each in (draft, check):
    app.command()(each)


@app.callback()
def policy() -> None:
    """Write a first policy for a table, and check a policy before it is served."""
