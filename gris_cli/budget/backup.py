"""`gris budget backup`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, LoggedReasonFlag
from gris_cli.flag_groups import with_flags


@with_flags
def backup(*, reason: LoggedReasonFlag = "", admin: AdminFlag = DEFAULT_ADMIN, as_json: bool) -> None:
    """Copy a ledger in SQLite into the service's folder for backups, while it is used."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import READ_SECONDS, administered
    from gris_cli.terminal import print_done

    request = admin_pb2.BackUpLedgerRequest(reason=reason)
    made = administered(admin, "BackUpLedger", request, seconds=READ_SECONDS)
    done = f"{made.file}: {made.bytes} bytes, in the service's folder for backups"
    print_done(done, {"file": made.file, "bytes": made.bytes}, as_json=as_json)
