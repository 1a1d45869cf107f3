"""All commands, and how their errors are reported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import typer

from gris_cli import budget, domain, plan
from gris_cli.ask import ask
from gris_cli.bound.command import bound
from gris_cli.catalog import catalog
from gris_cli.connection_options import read_connection_options
from gris_cli.demo import demo
from gris_cli.explain import explain
from gris_cli.guarantee import guarantee
from gris_cli.history import history
from gris_cli.mcp import mcp
from gris_cli.policy.check import check
from gris_cli.policy.draft import draft
from gris_cli.remaining import remaining
from gris_cli.serve import serve
from gris_cli.shell import shell

EXIT_CODES = (
    "Exit codes: 0 done; 1 anything unexpected, or refused by an engine or a service, or a check found a fault; 2 "
    "wrong usage, question, account or policy; 3 refused by the policy; 4 budget exhausted; 5 unavailable, or failed; "
    "130 interrupted."
)
app = typer.Typer(
    name="gris",
    help="Private answers from Apache Pinot and DuckDB, within a budget that cannot be overspent.",
    epilog=EXIT_CODES,
    # Without boxes each option has a line, and the terminal's full width.
    rich_markup_mode=None,
    # Local variables hold true counts; no trace may ever print them.
    pretty_exceptions_enable=False,
)
app.callback()(read_connection_options)
for command, about in (
    (ask, "Ask a question and pay for it."),
    (explain, "Show what a question would cost; takes the flags of ask."),
    (shell, "Ask in SQL at a prompt, with the price before each question."),
    (catalog, "Show what may be asked."),
    (remaining, "Show what is left of a budget."),
    (history, "Show past answers that a gateway keeps."),
    (guarantee, "Show the privacy guarantee of all that an account is shown."),
    (serve, "Run the services here; --gateway: for programs and people."),
    (mcp, "Serve one agent, for which a gateway answers."),
    (demo, "Ask private questions of real data."),
    (draft, "Write a first policy for your tables."),
    (check, "Show what a policy allows, and compare it with data."),
    (bound, "Copy a table in which a member has few elements."),
):
    app.command(short_help=about)(command)
app.add_typer(domain.app, name="domain", short_help="Publish which elements of a column are safe to name.")
app.add_typer(plan.app, name="plan", short_help="What budgets are worth: guarantee, solve, attacks.")
app.add_typer(budget.app, name="budget", short_help="For operators: accounts, limits, charges, usage.")


def _say_exit_codes(commands: typer.Typer) -> None:
    """Have the help of every command say what its exit codes mean."""
    for command in commands.registered_commands:
        command.epilog = EXIT_CODES
    for group in commands.registered_groups:
        group.epilog = EXIT_CODES
        if group.typer_instance is not None:
            _say_exit_codes(group.typer_instance)


_say_exit_codes(app)

# typer brings a click of its own since 0.20; the base of this class is the usage error of whichever it uses.
_UsageError = typer.BadParameter.__bases__[0]
EXIT_INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; every error becomes one message, JSON if `--json` is there.

    A reader that has left, as `head` does, is no error: the command has done what it should.
    """
    code = _run(arguments)
    # What cannot be written is dropped here, or Python would complain of it at its end.
    _nobody_reads()
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        return int(_made().main(list(arguments) or ["--help"], prog_name="gris", standalone_mode=False) or 0)
    except SystemExit as ended:
        # So rich ends a program whose output nobody reads.
        if isinstance(ended.__context__, BrokenPipeError):
            return 0
        raise
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            return 0
        return _failed(error, as_json="--json" in arguments)


@cache
def _made() -> Any:
    """Return all commands as click runs them, made once: that takes longer than many a command."""
    return typer.main.get_command(app)


def _nobody_reads() -> bool:
    """Return whether standard output was closed by its reader; then nothing more goes there."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return True
    return False


def _failed(error: Exception, *, as_json: bool) -> int:
    from gris_cli.data.errors import InputError
    from gris_cli.failures import failure_of, usage_failure
    from gris_cli.printing import print_failure

    failure = usage_failure(error) if isinstance(error, (_UsageError, InputError)) else failure_of(error)
    with suppress(BrokenPipeError):
        print_failure(failure, as_json=as_json)
    return failure.exit_code
