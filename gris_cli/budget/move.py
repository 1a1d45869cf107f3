"""`gris budget move`."""

from __future__ import annotations

from gris_cli.budget.flags import ChangeFlags
from gris_cli.flag_groups import required, with_flags


@with_flags
def move(
    *,
    change: ChangeFlags,
    target: str = required("The new name, below the same level.", "--to", metavar="A/C"),
    as_json: bool,
) -> None:
    """Move an account to another name, with all that it has spent and paid for. The old name stays closed."""
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, administered
    from gris_cli.terminal import print_done

    request = admin_pb2.MoveAccountRequest(
        account=account_of(change.account),
        target=account_of(target),
        reason=change.reason,
        request_id=change.request_id,
    )
    administered(change.admin, "MoveAccount", request)
    done = f"{change.account} is called {target} now; the old name is closed"
    print_done(done, {"account": change.account, "moved_to": target}, as_json=as_json)
