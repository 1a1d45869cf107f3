"""`gris budget close`."""

from __future__ import annotations

from gris_cli.budget.flags import ChangeFlags
from gris_cli.flag_groups import with_flags


@with_flags
def close(change: ChangeFlags, as_json: bool) -> None:
    """Close an account and all accounts below it. Nothing can be asked under it; what was spent counts on."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, administered
    from gris_cli.terminal import print_done

    request = admin_pb2.CloseAccountRequest(
        account=account_of(change.account), reason=change.reason, request_id=change.request_id
    )
    administered(change.admin, "CloseAccount", request)
    facts = {"account": change.account, "closed": True}
    print_done(f"{change.account} is closed", facts, as_json=as_json)
