"""The commands of `gris budget`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flags import JsonFlag
from gris_cli.plan.flags import OutFlag

app = typer.Typer(
    help="What accounts have left, their limits, and whether the ledger is right.", no_args_is_help=True
)


@app.callback()
def _refuse_retired_variables() -> None:
    if "GRIS_ADMIN" in os.environ:
        raise typer.BadParameter("GRIS_ADMIN is not read; the variable is called GRIS_BUDGET_ADMIN")


BudgetFlag = Annotated[
    str, typer.Option(envvar="GRIS_BUDGET", metavar="ADDRESS", help="The address of budget_service.")
]
AdminFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_BUDGET_ADMIN", metavar="ADDRESS", help="The administrator's address of budget_service."
    ),
]
AccountFlag = Annotated[str, typer.Option(metavar="A/B", help="The account.")]

RootFlag = Annotated[str, typer.Option(metavar="NAME", help="The root account.")]
RequestFlag = Annotated[
    str, typer.Option(metavar="ID", help="The id of an earlier attempt, to retry it; by default a new one.")
]

BUDGET_ADDRESS = "localhost:50052"
ADMIN_ADDRESS = "localhost:50053"
UNSOUND = 1
MAX_HISTORY = 10_000


@app.command()
def show(
    *,
    account: Annotated[str, typer.Option(envvar="GRIS_ACCOUNT", metavar="A/B", help="The account.")],
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="Show for how many more questions like the past ones the budget lasts."
        ),
    ] = False,
    budget: BudgetFlag = BUDGET_ADDRESS,
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Show what every level of an account may spend, has spent and has left."""
    from gris_cli.budget.ledger_client import BUDGET_SETTING, on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.reports import (  # noqa: PLC0415
        currency_facts,
        currency_notes,
        history_sheet,
        levels_sheet,
        print_report,
    )
    from gris_cli.budget.requests import history_request, path_of  # noqa: PLC0415

    found = on_ledger(budget, lambda ledger: ledger.budget(path_of(account)), setting=BUDGET_SETTING)
    levels = found.levels
    sheets = {"levels": levels_sheet(levels, currency_notes(found))}
    if history:
        request = history_request(account, levels[-1])
        charges = on_ledger(admin, lambda ledger: ledger.listed(request, MAX_HISTORY))
        sheets["history"] = history_sheet(levels, charges)
    print_report(sheets, currency_facts(found), as_json=as_json)


@app.command("set-limit")
def set_limit(
    *,
    account: AccountFlag,
    information: Annotated[int | None, typer.Option(help="The most information units.")] = None,
    calls: Annotated[int | None, typer.Option(help="The most calls.")] = None,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="enforce, or track: record and never refuse.")
    ] = "enforce",
    window: Annotated[
        str, typer.Option(metavar="WINDOW", help="day, week, month, never or sliding:DAYS.")
    ] = "month",
    zone: Annotated[
        str, typer.Option(metavar="ZONE", help="The time zone whose midnights count, such as Europe/Berlin.")
    ] = "UTC",
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the limit; the configuration applies again.")
    ] = False,
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Set the limit of one level in the ledger. It overrides the configuration and holds at once.

    It replaces the whole limit: what you leave out becomes enforce, month and UTC, whatever it was before.
    """
    from gris_api.budget.v1 import admin_pb2  # noqa: PLC0415 - `gris --help` should not load gRPC

    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415
    from gris_cli.budget.requests import limit_of, path_of  # noqa: PLC0415
    from gris_cli.printing import print_json  # noqa: PLC0415

    if remove != (information is None and calls is None) or (information is None) != (calls is None):
        raise typer.BadParameter("give --information and --calls together, or --remove")
    change = admin_pb2.LimitChange(path=path_of(account))
    if information is not None and calls is not None:
        limit = limit_of(information=information, calls=calls, mode=mode, window=window, zone=zone)
        change.limit.CopyFrom(limit)
    version = on_ledger(admin, lambda ledger: ledger.set_limit(change))
    if as_json:
        print_json({"account": account, "removed": remove, "version": version})
    else:
        typer.echo(
            f"the limit of {account} is {'removed' if remove else 'set'} (version {version} of its root's limits)"
        )


@app.command("new-currency")
def new_currency(
    *,
    root: RootFlag,
    unit_id: Annotated[
        str, typer.Option("--unit", metavar="ID", help="The unit_id of dp_service's new policy.")
    ] = "",
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Withdraw the plan, before the new currency begins.")
    ] = False,
    request_id: RequestFlag = "",
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Let a root account count in another currency from its next window on. Nothing is carried over."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.printing import print_json  # noqa: PLC0415

    if withdraw == bool(unit_id):
        raise typer.BadParameter("give --unit, or --withdraw")
    begins_at = on_ledger(admin, lambda ledger: ledger.change_currency(root, unit_id, request_id))
    if as_json:
        print_json({"root": root, "unit_id": unit_id, "begins_at": begins_at})
    elif withdraw:
        typer.echo(f"{root} keeps its currency")
    else:
        typer.echo(f"{root} counts in {unit_id} from {begins_at} (UTC) on, and in the last one until then")


@app.command("resume-clock")
def resume_clock(
    *,
    root: RootFlag,
    request_id: RequestFlag = "",
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Let the time of a root account go on after its store's clock jumped ahead. This machine's clock must be right."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.printing import print_json  # noqa: PLC0415

    seconds = on_ledger(admin, lambda ledger: ledger.resume_clock(root, request_id))
    if as_json:
        print_json({"root": root, "seconds_ahead": seconds})
    else:
        typer.echo(f"the time of {root} goes on, {seconds:.0f} seconds ahead of its store's clock")


@app.command()
def refund(
    *,
    account: AccountFlag,
    release: Annotated[str, typer.Option(metavar="ID", help="The release whose answer was wrong.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the journal.")],
    request_id: RequestFlag = "",
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Refund what an account was charged for a release. Asking the question again charges it again."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.requests import path_of  # noqa: PLC0415
    from gris_cli.printing import print_json  # noqa: PLC0415

    path = path_of(account)
    given = on_ledger(admin, lambda ledger: ledger.refund(path, release, reason, request_id)).refunded
    if as_json:
        print_json({"account": account, "information": given.information, "calls": given.calls})
    else:
        typer.echo(
            f"{account} was refunded {given.information} information units and {given.calls} calls; "
            "asking the question again charges it again"
        )


@app.command("close")
def close_account(
    *,
    account: AccountFlag,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the journal.")],
    request_id: RequestFlag = "",
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Close an account and all accounts below it. Nothing can be asked under it; what was spent counts on."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.requests import path_of  # noqa: PLC0415
    from gris_cli.printing import print_json  # noqa: PLC0415

    path = path_of(account)
    on_ledger(admin, lambda ledger: ledger.close_account(path, reason, request_id))
    if as_json:
        print_json({"account": account, "closed": True})
    else:
        typer.echo(f"{account} is closed")


@app.command("reopen")
def reopen_account(
    *,
    account: AccountFlag,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the journal.")],
    request_id: RequestFlag = "",
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Open a closed account again, with all that it had spent."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.requests import path_of  # noqa: PLC0415
    from gris_cli.printing import print_json  # noqa: PLC0415

    path = path_of(account)
    on_ledger(admin, lambda ledger: ledger.reopen_account(path, reason, request_id))
    if as_json:
        print_json({"account": account, "closed": False})
    else:
        typer.echo(f"{account} is open again")


@app.command("move")
def move_account(
    *,
    account: AccountFlag,
    target: Annotated[str, typer.Option("--to", metavar="A/C", help="The new name, below the same level.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the journal.")],
    request_id: RequestFlag = "",
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Move an account to another name, with all that it has spent and paid for. The old name stays closed."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.requests import path_of  # noqa: PLC0415
    from gris_cli.printing import print_json  # noqa: PLC0415

    source, new = path_of(account), path_of(target)
    on_ledger(admin, lambda ledger: ledger.move_account(source, new, reason, request_id))
    if as_json:
        print_json({"account": account, "moved_to": target})
    else:
        typer.echo(f"{account} is called {target} now; the old name is closed")


@app.command()
def seal(
    *,
    root: RootFlag,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive", help="Move the entries before the checkpoint to a file in the service's archive."
        ),
    ] = False,
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Verify a root account and write a checkpoint of its journal, from which later verifications begin."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.printing import print_json  # noqa: PLC0415

    checkpoint = on_ledger(admin, lambda ledger: ledger.checkpoint(root, archive=archive))
    if as_json:
        found = {"entries": checkpoint.entries, "digest": checkpoint.digest, "archive": checkpoint.archive}
        print_json({"root": root, **found})
    else:
        moved = f", moved to {checkpoint.archive}" if checkpoint.archive else ""
        typer.echo(
            f"checkpoint of {root}: {checkpoint.entries} entries{moved}; their digest is {checkpoint.digest}"
        )


@app.command()
def backup(*, admin: AdminFlag = ADMIN_ADDRESS, as_json: JsonFlag = False) -> None:
    """Copy a ledger in SQLite into the service's folder for backups, while it is used."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.printing import print_json  # noqa: PLC0415

    found = on_ledger(admin, lambda ledger: ledger.back_up())
    if as_json:
        print_json({"file": found.file, "bytes": found.bytes})
    else:
        typer.echo(f"{found.file}: {found.bytes} bytes, in the service's folder for backups")


@app.command()
def charges(
    *,
    account: AccountFlag,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="DAY", help="The first day or time of the period; UTC without an offset."
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            "--to", metavar="DAY", help="The first day or time after the period; UTC without an offset."
        ),
    ] = "",
    most: Annotated[int, typer.Option(min=1, max=1_000_000, help="The most charges to list.")] = 100,
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """List the charges of an account and of every account below it, oldest first."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2  # noqa: PLC0415 - `gris --help` should not load gRPC

    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415
    from gris_cli.budget.reports import charges_sheet, print_report  # noqa: PLC0415
    from gris_cli.budget.requests import path_of, timestamp_of  # noqa: PLC0415

    request = admin_pb2.ListChargesRequest(
        account=budget_pb2.Account(path=path_of(account)),
        start_time=timestamp_of("--from", since),
        end_time=timestamp_of("--to", until),
    )

    # One more than is shown, to know whether there are more.
    found = on_ledger(admin, lambda ledger: ledger.listed(request, most + 1))
    is_whole = len(found) <= most
    sheet = charges_sheet(found[:most], is_whole=is_whole)
    print_report({"charges": sheet}, {"has_more": not is_whole}, as_json=as_json)


@app.command()
def usage(
    *,
    account: AccountFlag,
    since: Annotated[str, typer.Option(metavar="DAY", help="When the budget was refreshed.")],
    depth: Annotated[int, typer.Option(help="Count accounts with this many segments.")] = 2,
    days: Annotated[int, typer.Option(help="How many days after that.")] = 31,
    information: Annotated[list[int], typer.Option(help="A limit in information units, repeatable.")] = [],  # noqa: B006 - typer copies it
    calls: Annotated[list[int], typer.Option(help="A limit in calls, repeatable.")] = [],  # noqa: B006
    out: OutFlag = None,
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Show how many accounts would have exhausted a limit by each day (Rogers et al. 2020, figure 5)."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.reports import draw_report, print_report, usage_sheet  # noqa: PLC0415
    from gris_cli.budget.requests import usage_request  # noqa: PLC0415
    from gris_lab.plots import check_plot  # noqa: PLC0415

    check_plot(out, curves=max(len(information), len(calls)))
    request = usage_request(account, depth, since, days, (information, calls))
    report = on_ledger(admin, lambda ledger: ledger.usage(request))
    print_report({"usage": usage_sheet(report)}, {"accounts": report.accounts}, as_json=as_json)
    if out is not None:
        draw_report(report, out, account=account)


@app.command()
def verify(
    *,
    root: Annotated[str, typer.Option(metavar="NAME", help="Only this root account.")] = "",
    archive: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Check archived journals instead, by their digests; repeatable, in any order.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Add up the journal again and compare every balance with it. Exit code 1 if any differs."""
    from gris_cli.budget.reports import (  # noqa: PLC0415 - imports gRPC
        archives_sheet,
        print_report,
        verification_facts,
        verification_sheet,
    )

    if archive:
        from budget_service.server.archives import check_archives  # noqa: PLC0415

        checked = check_archives(archive)
        print_report({"archives": archives_sheet(checked)}, {}, as_json=as_json)
        raise typer.Exit(UNSOUND if any(each.problem for each in checked) else 0)

    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415

    found = on_ledger(admin, lambda ledger: ledger.verification(root))
    print_report({"differences": verification_sheet(found)}, verification_facts(found), as_json=as_json)
    if found.different:
        raise typer.Exit(UNSOUND)


@app.command()
def status(
    *,
    admin: AdminFlag = ADMIN_ADDRESS,
    as_json: JsonFlag = False,
) -> None:
    """Show whether the configuration in the file is in force, and if not, since when and why (exit code 1)."""
    from gris_cli.budget.ledger_client import on_ledger  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.budget.reports import print_report, status_facts, status_sheet  # noqa: PLC0415

    found = on_ledger(admin, lambda ledger: ledger.status())
    print_report({"faults": status_sheet(found)}, status_facts(found), as_json=as_json)
    if found.HasField("refused_since"):
        raise typer.Exit(UNSOUND)
