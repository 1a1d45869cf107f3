"""`gris plan`: one module a command, which reads its flags, has the numbers computed in `gris_lab`, and prints them.

Only the laboratory and nothing that serves draws noise for simulations.
"""

from __future__ import annotations

import typer

from gris_cli.plan.attacks import attacks
from gris_cli.plan.bound import bound
from gris_cli.plan.brief import brief
from gris_cli.plan.compose import compose
from gris_cli.plan.curve import curve
from gris_cli.plan.deployments import deployments
from gris_cli.plan.found import found
from gris_cli.plan.guarantee import guarantee
from gris_cli.plan.solve import solve
from gris_cli.plan.table import table
from gris_cli.plan.thresholds import thresholds
from gris_cli.plan.usage import usage
from gris_cli.plan.value import value
from gris_cli.plan.workload import workload

app = typer.Typer(
    help="What budgets are worth, which to choose, and what questions would find.", no_args_is_help=True
)
for each in (
    guarantee,
    solve,
    table,
    attacks,
    deployments,
    compose,
    bound,
    value,
    curve,
    found,
    usage,
    workload,
    thresholds,
    brief,
):
    app.command()(each)
