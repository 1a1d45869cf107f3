"""`gris budget trim`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, LoggedReasonFlag, RootFlag
from gris_cli.flag_groups import required, with_flags


@with_flags
def trim(
    *,
    root: RootFlag,
    export: Path = required("A new file for the whole journal, an entry a line.", metavar="FILE"),
    reason: LoggedReasonFlag = "",
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Export the journal of a root account, then drop its oldest entries from the ledger: those that count no more."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from gris_cli.budget.ledger import READ_SECONDS, administered
    from gris_cli.terminal import print_done

    last = _exported(export, root, admin)
    request = admin_pb2.TrimJournalRequest(
        account=budget_pb2.Account(path=[root]), exported=last, reason=reason
    )
    made = administered(admin, "TrimJournal", request, seconds=READ_SECONDS)
    done = f"{made.dropped} entries dropped, {made.entries} since the ledger began; their digest is {made.digest}"
    facts = {"root": root, "dropped": made.dropped, "entries": made.entries, "digest": made.digest}
    print_done(done, facts, as_json=as_json)


def _exported(path: Path, root: str, admin: str) -> str:
    """Write the journal into a new file, on the disk when this returns, and return the position of its last entry."""
    from gris_cli.budget.ledger import journal_pages
    from gris_cli.budget.reports import entry_facts

    last = ""
    try:
        with path.open("x", encoding="utf-8") as file:
            for page in journal_pages(admin, root):
                file.writelines(json.dumps(entry_facts(entry)) + "\n" for entry in page.entries)
                last = page.last
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise typer.BadParameter(f"--export: {path} cannot be written: {error.strerror}") from None
    if not last:
        raise typer.BadParameter(f"--root: {root} has no entries to export")
    return last
