"""`gris budget seal`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, LoggedReasonFlag, RootFlag
from gris_cli.flag_groups import flag, with_flags


@with_flags
def seal(
    *,
    root: RootFlag,
    archive: bool = flag(False, "Move the entries before the checkpoint to a file in the service's archive."),
    reason: LoggedReasonFlag = "",
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Verify a root account and write a checkpoint of its journal, from which later verifications begin."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from gris_cli.budget.ledger import READ_SECONDS, administered
    from gris_cli.terminal import print_done

    account = budget_pb2.Account(path=[root])
    request = admin_pb2.SealJournalRequest(account=account, archive=archive, reason=reason)
    made = administered(admin, "SealJournal", request, seconds=READ_SECONDS)
    moved = f", moved to {made.archive}" if made.archive else ""
    done = f"checkpoint of {root}: {made.entries} entries{moved}; their digest is {made.digest}"
    if made.emptied:
        done += f"; {made.emptied} older archives were emptied"
    facts = {
        "root": root,
        "entries": made.entries,
        "digest": made.digest,
        "archive": made.archive,
        "emptied": made.emptied,
    }
    print_done(done, facts, as_json=as_json)
