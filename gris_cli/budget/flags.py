"""The flags that commands of `gris budget` share, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from gris_cli.flag_groups import required

AccountFlag = Annotated[str, typer.Option(metavar="A/B", help="The account.")]
AdminFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_BUDGET_ADMIN", metavar="ADDRESS", help="The administrator's address of budget_service."
    ),
]
RootFlag = Annotated[str, typer.Option(metavar="NAME", help="The root account.")]
RequestFlag = Annotated[
    str, typer.Option(metavar="ID", help="The id of an earlier attempt, to retry it; by default a new one.")
]
ReasonFlag = Annotated[
    str, typer.Option(metavar="TEXT", help="Why; it stays in the journal. budget.yaml may require it.")
]
LoggedReasonFlag = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why; the service logs it. budget.yaml may require it."),
]
DEFAULT_ADMIN = "localhost:50053"
UNSOUND = 1


@dataclass(frozen=True)
class ChangeFlags:
    """Which account an administrator changes, and why."""

    account: AccountFlag
    reason: str = required("Why; it stays in the journal.", metavar="TEXT")
    request_id: RequestFlag = ""
    admin: AdminFlag = DEFAULT_ADMIN
