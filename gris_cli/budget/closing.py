"""`gris budget close` and `gris budget reopen`."""

from __future__ import annotations

from gris_cli.budget.flags import ChangeFlags
from gris_cli.flag_groups import with_flags


@with_flags
def close(change: ChangeFlags, as_json: bool) -> None:
    """Close an account and all accounts below it. Nothing can be asked under it; what was spent counts on."""
    _change(change, "Close", "is closed", closed=True, as_json=as_json)


@with_flags
def reopen(change: ChangeFlags, as_json: bool) -> None:
    """Open a closed account again, with all that it had spent."""
    _change(change, "Reopen", "is open again", closed=False, as_json=as_json)


def _change(change: ChangeFlags, word: str, done: str, *, closed: bool, as_json: bool) -> None:
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import account_of, administered
    from gris_cli.terminal import print_done

    kind = admin_pb2.CloseAccountRequest if closed else admin_pb2.ReopenAccountRequest
    request = kind(account=account_of(change.account), reason=change.reason, request_id=change.request_id)
    administered(change.admin, f"{word}Account", request)
    print_done(f"{change.account} {done}", {"account": change.account, "closed": closed}, as_json=as_json)
