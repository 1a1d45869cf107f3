"""`gris budget refuse`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, WaitingFlag
from gris_cli.flag_groups import required, with_flags


@with_flags
def refuse(
    *,
    request: WaitingFlag,
    reason: str = required("Why; it stays in the journal.", metavar="TEXT"),
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Refuse a request for another limit."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import administered, request_of
    from gris_cli.terminal import print_done

    found = request_of(admin, request)
    message = admin_pb2.RefuseLimitRequest(account=found.account, id=request, reason=reason)
    administered(admin, "RefuseLimit", message)
    account = "/".join(found.account.path)
    facts = {"account": account, "id": request, "refused": True}
    print_done(f"request {request} of {account} is refused", facts, as_json=as_json)
