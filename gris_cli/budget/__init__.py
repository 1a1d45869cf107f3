"""`gris budget`: one module a command; `ledger` calls budget_service, `reports` lays out what it says."""

from __future__ import annotations

import typer

from gris_cli.budget.backup import backup
from gris_cli.budget.closing import close, reopen
from gris_cli.budget.journal import journal
from gris_cli.budget.new_currency import new_currency
from gris_cli.budget.refund import refund
from gris_cli.budget.resume_clock import resume_clock
from gris_cli.budget.set_limit import set_limit
from gris_cli.budget.show import show
from gris_cli.budget.ticket_key import ticket_key
from gris_cli.budget.trim import trim
from gris_cli.budget.usage import usage
from gris_cli.budget.verify import verify

app = typer.Typer(
    help="What accounts have left, their limits, and whether the ledger is right.", no_args_is_help=True
)
for each in (
    *(show, set_limit, new_currency, resume_clock, refund, close, reopen),
    *(trim, backup, journal, usage, verify, ticket_key),
):
    app.command()(each)
