"""`gris budget journal`."""

from __future__ import annotations

import sys
import time

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, RootFlag
from gris_cli.flag_groups import flag, with_flags

# What is new is asked for so often.
POLL_SECONDS = 1.0


@with_flags
def journal(
    *,
    root: RootFlag,
    after: str = flag("", "Only what comes after an entry, by its position.", "--from", metavar="POSITION"),
    follow: bool = flag(False, "Go on with what is written from now on, until interrupted."),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Print the journal of a root account, oldest entry first: a line for each, or with --json an object."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from gris_cli.budget.ledger import PAGE, charges_of
    from gris_cli.budget.reports import entry_facts
    from gris_cli.terminal import print_done, printable

    is_first = not after
    while True:
        request = admin_pb2.ListChargesRequest(account=budget_pb2.Account(path=[root]), after=after)
        found = charges_of(admin, request, PAGE)
        for facts in map(entry_facts, found):
            print_done(printable("  ".join(map(str, filter(None, facts.values())))), facts, as_json=as_json)
        if is_first and not found:
            # Most likely its name is misspelt, and who follows it would wait for good.
            typer.echo(f"{printable(root)} has no entry yet: is it a root account of this ledger?", err=True)
        is_first = False
        # What reads a pipe should not wait for more.
        sys.stdout.flush()
        after = found[-1].position if found else after
        if len(found) < PAGE:
            if not follow:
                return
            time.sleep(POLL_SECONDS)
