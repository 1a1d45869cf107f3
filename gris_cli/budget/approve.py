"""`gris budget approve`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, WaitingFlag
from gris_cli.flag_groups import with_flags


@with_flags
def approve(*, request: WaitingFlag, admin: AdminFlag = DEFAULT_ADMIN, as_json: bool) -> None:
    """Approve a request for another limit. It is set at once, or where two persons have to, by the second one."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import administered, request_of
    from gris_cli.terminal import print_done

    found = request_of(admin, request)
    message = admin_pb2.ApproveLimitRequest(account=found.account, id=request)
    version, account = administered(admin, "ApproveLimit", message).version, "/".join(found.account.path)
    done = f"the limit of {account} is set (version {version} of its root's limits)"
    done = (
        done
        if version
        else f"request {request} of {account} is approved; another person has to approve it too"
    )
    print_done(done, {"account": account, "id": request, "version": version or None}, as_json=as_json)
