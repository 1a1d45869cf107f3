"""`gris budget reopen`."""

from __future__ import annotations

from gris_cli.budget.flags import ChangeFlags
from gris_cli.flag_groups import with_flags


@with_flags
def reopen(change: ChangeFlags, as_json: bool) -> None:
    """Open a closed account again, with all that it had spent."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, administered
    from gris_cli.terminal import print_done

    request = admin_pb2.ReopenAccountRequest(
        account=account_of(change.account), reason=change.reason, request_id=change.request_id
    )
    administered(change.admin, "ReopenAccount", request)
    facts = {"account": change.account, "closed": False}
    print_done(f"{change.account} is open again", facts, as_json=as_json)
