"""`gris budget request`."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.flags import ConnectionFlags
from gris_cli.inputs import require_amount

if TYPE_CHECKING:
    from gris_api.app.v1 import app_pb2


@with_flags
def request(
    *,
    connection: Annotated[ConnectionFlags, ("budget", "gateway", "account")],
    level: str = flag("", "The level whose limit is to change; by default the account.", metavar="A"),
    information: int = required("The information units of the limit that you need."),
    calls: int = required("Its calls."),
    until: str = flag("", "Until when; UTC without an offset. Default: for good.", metavar="DAY"),
    reason: str = required("Why; administrators and the journal see it.", metavar="TEXT"),
    as_json: bool,
) -> None:
    """Ask administrators for a higher limit of an account, or of a level above it. It changes nothing by itself."""
    from gris_api.app.v1 import app_pb2

    from gris_cli.budget.ledger import timestamp_of
    from gris_cli.terminal import print_done

    require_amount("--information", information)
    require_amount("--calls", calls)
    path = level.split("/") if level else []
    asked = app_pb2.RequestBudgetRequest(
        path=path, information=information, calls=calls, reason=reason, request_id=uuid.uuid4().hex
    )
    if (end := timestamp_of("--until", until)) is not None:
        asked.until.CopyFrom(end)
    id_ = _asked(connection, asked)
    done = f"request {id_} waits for an administrator, at most 30 days: gris budget approve {id_}"
    print_done(done, {"id": id_}, as_json=as_json)


def _asked(flags: ConnectionFlags, request: app_pb2.RequestBudgetRequest) -> str:
    """Ask by the gateway, or else the ledger, which adds by what names it knows this caller; return the id."""
    from gris_cli.budget.ledger import account_of, fault_of, spending
    from gris_cli.clients import gateway_of
    from pinot_connector.budgets import limit_request
    from pinot_connector.errors import InvalidQuestion
    from pinot_connector.gateway_client import AsyncGatewayClient

    async def by_gateway() -> str:
        async with AsyncGatewayClient(gateway_of(flags), account=flags.account or None) as client:
            try:
                return await client.request_budget(request)
            except InvalidQuestion as error:
                # Such as the name of the caller, which is no part of the request.
                if error.field.partition(".")[0] not in request.DESCRIPTOR.fields_by_name:
                    raise
                raise typer.BadParameter(fault_of(error.field, error.problem, request)) from None

    if flags.gateway:
        return asyncio.run(by_gateway())
    if not flags.account:
        raise typer.BadParameter("--account says who is to have more")
    asked = limit_request(request)
    asked.account.CopyFrom(account_of(flags.account))
    return str(spending(flags.budget, "RequestLimit", asked).id)
