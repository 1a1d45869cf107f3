"""`gris budget journal`."""

from __future__ import annotations

import sys
import time

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AccountFlag, AdminFlag
from gris_cli.flag_groups import flag, with_flags

# What is new is asked for so often.
POLL_SECONDS = 1.0


@with_flags
def journal(
    *,
    account: AccountFlag,
    since: str = flag(
        "", "The first day or time of the period; UTC without an offset.", "--from", metavar="DAY"
    ),
    until: str = flag(
        "", "The first day or time after the period; UTC without an offset.", "--to", metavar="DAY"
    ),
    after: str = flag("", "Only what comes after an entry, by its position.", metavar="POSITION"),
    follow: bool = flag(False, "Go on with what is written from now on, until interrupted."),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Print the journal of an account and of every account below it, oldest entry first; --json: an object a line."""
    from gris_cli.budget.ledger import journal_pages, timestamp_of
    from gris_cli.budget.reports import entry_facts, journal_sheet
    from gris_cli.sheets import print_sheets
    from gris_cli.terminal import print_json, printable

    start, end = timestamp_of("--from", since), timestamp_of("--to", until)
    found = after != ""
    while True:
        for page in journal_pages(admin, account, after):
            after = page.last
            entries = [
                each
                for each in page.entries
                if (start is None or start.ToMicroseconds() <= each.time.ToMicroseconds())
                and (end is None or each.time.ToMicroseconds() < end.ToMicroseconds())
            ]
            found = found or bool(entries)
            if as_json:
                for entry in entries:
                    print_json(entry_facts(entry))
            elif entries:
                print_sheets({"journal": journal_sheet(entries)}, as_json=False)
            # What reads a pipe should not wait for more.
            sys.stdout.flush()
        if not found:
            # Most likely its name is misspelt, and who follows it would wait for good.
            typer.echo(f"{printable(account)} has no such entry: is it an account of this ledger?", err=True)
            found = True
        if not follow:
            return
        time.sleep(POLL_SECONDS)
