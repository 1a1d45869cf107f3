"""Fills a bundle from the services: the journals first, then what each account has, and what of it is of the same time.

Journals have ids; what an account has is asked by its name, and of one that is forgotten nothing can be asked.

Charges go on meanwhile. What an account has is as of the end of its journal, unless something newer of it is in the
ledger by then: that is looked up after every few accounts, and noted with them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2, budget_pb2_grpc

from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account
from budget_service.server.archives import SUFFIX, last_line, name_of
from gris_audit.bundle import ACCOUNTS, GUARANTEES, NAMES, SERVICE, Journal, Manifest, hashed, opened
from gris_audit.names import Names
from gris_cli.budget.ledger import (
    ADMIN,
    BUDGET,
    PAGE,
    READ_SECONDS,
    translated_errors,
    waiting_requests,
)
from gris_cli.connection_options import protected_address
from gris_cli.terminal import printable
from gris_data.errors import InputError
from gris_data.private_files import write_new
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.endpoints import Address
from pinot_connector.errors import AccountUnknown, GrisError, ServiceRefused
from pinot_connector.local_services import default_timeouts
from pinot_connector.shared_budgets import account_guarantee

# A journal of very many entries takes long, as charges have their turn.
EXPORT_SECONDS = 24 * 3600.0
CALL_SECONDS = 30.0
ACCOUNTS_AT_ONCE = 32


@dataclass(frozen=True)
class Sources:
    """The addresses of the services; without one of dp_service no guarantee is stated."""

    admin: str
    budget: str
    dp: str


@dataclass
class _Exported:
    """The journal of a root while it is written, who of its accounts is forgotten, and its end."""

    file: Path
    lines: int = 0
    former: dict[Account, set[Account]] = field(default_factory=dict)
    forgotten: set[Account] = field(default_factory=set)
    end: admin_pb2.JournalEnd = field(default_factory=admin_pb2.JournalEnd)

    def write(self, lines: str) -> None:
        """Write lines of entries."""
        with opened(self.file) as file:
            file.write(lines)
        for line in lines.splitlines():
            entry = json.loads(line)
            account = Account(tuple(entry["account"]))
            self.lines += 1
            if entry["kind"] == EntryKind.MOVE.value:
                target = Account.of_text(entry["change"])
                self.former[target] = {account, *self.former.pop(account, ())}
            elif entry["kind"] == EntryKind.FORGET.value:
                self.forgotten |= {account, *self.former.pop(account, ())}

    def finish(self, end: admin_pb2.JournalEnd) -> None:
        """Write the last line, if there is another one."""
        self.end = end
        if self.lines:
            with opened(self.file) as file:
                file.write(last_line(end.entries, end.digest))

    def said(self, root: str) -> Journal:
        """Return what the manifest says of it."""
        return Journal(
            root=root,
            file=self.file.name if self.lines else "",
            first=self.end.entries - self.lines + 1,
            entries=self.end.entries,
            digest=self.end.digest,
            checkpoint_entries=self.end.checkpoint_entries,
            checkpoint_digest=self.end.checkpoint_digest,
        )


@dataclass
class _Changed:
    """The levels of entries since a journal was exported; with those that were closed or reopened, all below them."""

    levels: set[Account] = field(default_factory=set)
    closed: set[Account] = field(default_factory=set)

    def has(self, level: Account) -> bool:
        """Return whether what a level has may be newer than its journal."""
        return level in self.levels or not self.closed.isdisjoint(level.levels)


def collect(folder: Path, sources: Sources, root: str) -> Manifest:
    """Write what the services say of one root, or of all if it is empty, and return the manifest of all in the folder.

    Raises:
        GrisError: A service cannot be reached or refuses, or the ledger is damaged.
        typer.BadParameter: A service says which flag is wrong.
        InputError: The ledger has no account.
    """
    journals = asyncio.run(_collect(folder, sources, root))
    return Manifest(
        format="gris-audit-1",
        gris=metadata.version("gris-dp"),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        made_by=next(each.end.actor for each in journals.values()),
        every_root=not root,
        journals=[exported.said(name) for name, exported in journals.items()],
        files={each.name: hashed(each) for each in sorted(folder.iterdir())},
    )


async def _collect(folder: Path, sources: Sources, root: str) -> dict[str, _Exported]:
    account = budget_pb2.Account(path=[root]) if root else None
    budget = protected_address(sources.budget, *BUDGET)
    async with (
        open_channel(protected_address(sources.admin, *ADMIN)) as administered,
        open_channel(budget) as asked,
    ):
        admin = admin_pb2_grpc.BudgetAdminServiceStub(administered)
        journals, names = await _journals(admin, folder, account)
        if not journals:
            raise InputError("the ledger has no account yet: there is nothing to export")
        if root and not journals[root].end.entries:
            raise typer.BadParameter(f"--root: {printable(root)}: expected a root account with a journal")
        write_new(folder / NAMES, "".join(names.lines()))
        accounts = _accounts(admin, budget_pb2_grpc.BudgetServiceStub(asked), journals, names)
        await _write(folder / ACCOUNTS, accounts)
        if sources.dp:
            dp = protected_address(sources.dp, "dp_service", "--dp")
            await _write(folder / GUARANTEES, _guarantees(dp, budget, folder / ACCOUNTS))
        await _service(admin, folder, account)
    return journals


async def _journals(
    admin: Any, folder: Path, account: budget_pb2.Account | None
) -> tuple[dict[str, _Exported], Names]:
    found, names = dict[str, _Exported](), Names()
    request = admin_pb2.ExportJournalRequest(account=account)
    with translated_errors(request):
        async for part in admin.ExportJournal(request, timeout=EXPORT_SECONDS):
            file = folder / f"journal.{name_of(part.root)}{SUFFIX}"
            exported = found.setdefault(part.root, _Exported(file))
            if part.HasField("end"):
                exported.finish(part.end)
            elif part.HasField("lines"):
                exported.write(part.lines)
            else:
                names.add_lines(part.names)
    for exported in found.values():
        # Who was forgotten a moment ago, or whose name was not removed, is not in the bundle either.
        names.leave_out(exported.forgotten)
    return found, names


async def _service(admin: Any, folder: Path, account: budget_pb2.Account | None) -> None:
    """Write what the service says of itself: its configuration, its own verification, and requests that wait."""
    calls: dict[str, Message] = {
        "GetStatus": admin_pb2.GetStatusRequest(),
        "VerifyLedger": admin_pb2.VerifyLedgerRequest(account=account),
    }
    waiting = await waiting_requests(admin, account)
    said: dict[str, Any] = {"ListLimitRequests": {"requests": [_facts(each) for each in waiting]}}
    for method, request in calls.items():
        with translated_errors(request):
            said[method] = _facts(await getattr(admin, method)(request, timeout=EXPORT_SECONDS))
    said["asked_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_new(folder / SERVICE, json.dumps(said, indent=1) + "\n")


async def _accounts(
    admin: Any, ledger: Any, journals: dict[str, _Exported], names: Names
) -> AsyncIterator[dict[str, Any]]:
    """Give what each level that has a name has, and whether its journal went on until then."""
    for root, exported in journals.items():
        levels = sorted({Account((root,)), *names.levels(root)})
        changed, after = _Changed(), exported.end.position
        for start in range(0, len(levels), ACCOUNTS_AT_ONCE):
            some = levels[start : start + ACCOUNTS_AT_ONCE]
            found = await asyncio.gather(*(_budget(ledger, level) for level in some))
            after = await _changed_since(admin, root, after, changed)
            for level, budget in zip(some, found, strict=True):
                yield {"account": level.path, "changed_meanwhile": changed.has(level), **budget}


async def _budget(ledger: Any, account: Account) -> dict[str, Any]:
    """Return what an account has. Policy statements are in the journal; here they would take a reading of it each."""
    request = budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=account.path))
    with translated_errors(request):
        try:
            return {"budget": _facts(await ledger.GetBudget(request, timeout=CALL_SECONDS))}
        except grpc.aio.AioRpcError as error:
            # budget.yaml may not know it any more, or no account with such a name.
            if error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
                raise
            return {"refused": error.details()}


async def _changed_since(admin: Any, root: str, after: str, changed: _Changed) -> str:
    """Collect the levels of entries after a position, and return the position of the last of them.

    Raises GrisError if an account was forgotten since: its name may be among those that were sent before.
    """
    request = admin_pb2.ListChargesRequest(
        account=budget_pb2.Account(path=[root]), after=after, page_size=PAGE
    )
    while True:
        with translated_errors(request):
            page = await admin.ListCharges(request, timeout=READ_SECONDS)
        for each in page.charges:
            if each.kind == admin_pb2.CHARGE_KIND_FORGET:
                raise GrisError("an account was forgotten during the export: export again")
            for path in (each.account.path, each.moved_to.path):
                changed.levels.update(Account(tuple(path)).levels)
            if each.kind in (admin_pb2.CHARGE_KIND_CLOSE, admin_pb2.CHARGE_KIND_REOPEN):
                changed.closed.add(Account(tuple(each.account.path)))
            after = each.position
        request.page_token = page.next_page_token
        if not request.page_token:
            return after


async def _guarantees(dp: Address, budget: Address, accounts: Path) -> AsyncIterator[dict[str, Any]]:
    noise, ledger = DpServiceClient(dp, Timeouts()), BudgetServiceClient(budget, (), default_timeouts(budget))

    async def of(account: list[str]) -> dict[str, Any]:
        try:
            found = await account_guarantee(noise, ledger.for_account(account))
            return {"account": account, "guarantee": found.to_dict()}
        except (AccountUnknown, ServiceRefused) as error:
            # Where it counts in the currency of another policy, or charges that count were archived.
            return {"account": account, "refused": str(error)}

    try:
        with accounts.open(encoding="utf-8") as lines:
            known = (each["account"] for each in map(json.loads, lines) if "budget" in each)
            while some := list(islice(known, ACCOUNTS_AT_ONCE)):
                for each in await asyncio.gather(*map(of, some)):
                    yield each
    finally:
        await noise.close()
        await ledger.close()


async def _write(path: Path, objects: AsyncIterator[dict[str, Any]]) -> None:
    """Write an object a line."""
    with opened(path) as file:
        async for each in objects:
            file.write(json.dumps(each) + "\n")


def _facts(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found
