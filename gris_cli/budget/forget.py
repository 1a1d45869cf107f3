"""`gris budget forget`."""

from __future__ import annotations

from gris_cli.budget.flags import ChangeFlags
from gris_cli.flag_groups import with_flags


@with_flags
def forget(change: ChangeFlags, as_json: bool) -> None:
    """Forget who a closed account was, once nothing of it counts. What it was charged stays, under an id."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, administered
    from gris_cli.terminal import print_done

    request = admin_pb2.ForgetAccountRequest(
        account=account_of(change.account), reason=change.reason, request_id=change.request_id
    )
    administered(change.admin, "ForgetAccount", request)
    done = f"{change.account} is forgotten: who is called so from now on is somebody new"
    print_done(done, {"account": change.account, "forgotten": True}, as_json=as_json)
