"""`gris audit record`."""

from __future__ import annotations

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, ReasonFlag
from gris_cli.flag_groups import flag, required, with_flags


@with_flags
def record(
    *,
    file: list[str] = required(
        "A file that a service decides by from now on; repeatable. KIND is policy, budget, console, access or gateway.",
        metavar="KIND=FILE",
    ),
    root: str = flag("", "Only in the journal of this root account.", metavar="NAME"),
    reason: ReasonFlag = "",
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Record in the journals that a file was changed: its digest, who says so, and why."""
    from collections import Counter

    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from budget_service.ledger.recorded_files import RecordedFile
    from budget_service.ledger.values import InvalidFieldError
    from gris_audit.bundle import METRICS
    from gris_audit.configuration import GivenFile
    from gris_cli.budget.ledger import administered
    from gris_cli.sheets import print_sheets
    from gris_data.sheets import Column, Sheet

    files = [GivenFile.read(each) for each in file]
    if any(each.kind == METRICS for each in files):
        raise typer.BadParameter("--file: no service decides by metrics")
    named = list[RecordedFile]()
    for given in files:
        try:
            named.append(RecordedFile.parse(given.kind, given.sha256, given.path.name))
        except InvalidFieldError as error:
            raise typer.BadParameter(f"--file: {error}; got {given.path.name}") from None
    if twice := [name for name, of in Counter((each.kind, each.name) for each in named).items() if of > 1]:
        raise typer.BadParameter(f"--file: two files are {' '.join(twice[0])}; give them different names")
    account = budget_pb2.Account(path=[root]) if root else None
    rows = list[tuple[str, str, str, int]]()
    for each in named:
        message = admin_pb2.RecordedFile(kind=each.kind, sha256=each.sha256, name=each.name)
        request = admin_pb2.RecordFileRequest(account=account, file=message, reason=reason)
        done = administered(admin, "RecordFile", request)
        rows.append((each.kind, each.name, each.sha256, done.journals))
    columns = (
        Column("kind", "kind", is_text=True), Column("name", "name", is_text=True),
        Column("sha256", "SHA-256", is_text=True, is_copied=True), Column("journals", "journals"),
    )  # fmt: skip
    print_sheets({"recorded": Sheet(columns, rows)}, as_json=as_json)
