"""`gris budget refund`."""

from __future__ import annotations

from gris_cli.budget.flags import ChangeFlags
from gris_cli.flag_groups import required, with_flags


@with_flags
def refund(
    *,
    change: ChangeFlags,
    release: str = required("The release whose answer was wrong.", metavar="ID"),
    as_json: bool,
) -> None:
    """Refund what an account was charged for a release. Asking the question again charges it again."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, administered
    from gris_cli.terminal import print_done

    request = admin_pb2.RefundChargeRequest(
        account=account_of(change.account),
        release_id=release,
        reason=change.reason,
        request_id=change.request_id,
    )
    given = administered(change.admin, "RefundCharge", request).refunded
    done = (
        f"{change.account} was refunded {given.information} information units and {given.calls} calls; "
        "asking the question again charges it again"
    )
    facts = {"account": change.account, "information": given.information, "calls": given.calls}
    print_done(done, facts, as_json=as_json)
