"""Answers of the ledger, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from gris_api.budget.v1 import admin_pb2, budget_pb2

from gris_cli.budget.exhaustion import Exhaustion
from gris_cli.budget.ledger import format_timestamp
from gris_cli.data.sheets import Column, Sheet, percent, sheet_rows
from pinot_connector.budgets import levels_of

# What is no charge, in the words of people; each charge is called by the end of its name.
_NO_CHARGES = {
    admin_pb2.CHARGE_KIND_CURRENCY: "new currency",
    admin_pb2.CHARGE_KIND_CLOCK: "clock resumed",
    admin_pb2.CHARGE_KIND_REFUNDED: "refunded",
    admin_pb2.CHARGE_KIND_LIMIT: "limit changed",
    admin_pb2.CHARGE_KIND_CLOSE: "closed",
    admin_pb2.CHARGE_KIND_REOPEN: "reopened",
}
# What the numbers of a difference say that are not amounts.
_MEANINGS = {"state": "0 open, 1 closed"}


def _text(key: str, heading: str) -> Column:
    return Column(key, heading, is_text=True)


def _copied(key: str, heading: str) -> Column:
    return Column(key, heading, is_text=True, is_copied=True)


def currency_facts(found: budget_pb2.GetBudgetResponse) -> dict[str, Any]:
    """Return for JSON what `currency_notes` says to people."""
    planned = {"unit_id": found.next_unit_id, "begins_at": format_timestamp(found.next_unit_begins_at)}
    return {
        "currency": found.unit_id or None,
        "next_currency": planned if found.next_unit_id else None,
        "closed": "/".join(found.closed_level) or None,
        "held_by": [_share_json(each) for each in found.region_shares],
        "lost_by": [_share_json(each) for each in found.lapsed_shares],
        "seconds_ahead": found.clock_ahead.ToTimedelta().total_seconds(),
    }


def _share_json(share: budget_pb2.RegionShare) -> dict[str, Any]:
    held = {"information": share.held.information, "calls": share.held.calls}
    return {"region": share.region, **held, "until": format_timestamp(share.ends_at)}


def currency_notes(found: budget_pb2.GetBudgetResponse) -> tuple[tuple[str, str], ...]:
    """Return what the root counts in, and what follows."""
    notes = [("currency", found.unit_id or "none yet: the first charge decides")]
    if found.next_unit_id:
        begins_at = format_timestamp(found.next_unit_begins_at)
        notes.append(("next currency", f"{found.next_unit_id} from {begins_at} (UTC) on"))
    if found.closed_level:
        notes.append(("closed", f"{'/'.join(found.closed_level)}: nothing can be asked"))
    notes += [
        (
            f"held by {each.region}",
            f"{_held(each)} until {format_timestamp(each.ends_at)} (UTC); part of reserved",
        )
        for each in found.region_shares
    ]
    notes += [
        (
            f"lost by {each.region}",
            f"{_held(each)}: not reported when its share ended on {format_timestamp(each.ends_at)} (UTC); "
            "part of spent",
        )
        for each in found.lapsed_shares
    ]
    if seconds := found.clock_ahead.ToTimedelta().total_seconds():
        ahead = timedelta(seconds=round(seconds))
        notes.append(("clock", f"all moments are those of the ledger, {ahead} ahead of its store's clock"))
    return tuple(notes)


def _held(share: budget_pb2.RegionShare) -> str:
    return f"{share.held.information} information units and {share.held.calls} calls"


def levels_sheet(found: budget_pb2.GetBudgetResponse) -> Sheet:
    """Return what each level may spend, has spent and has left, one row for each unit."""
    rows = [
        (
            "/".join(level.path), unit, getattr(level.limit, unit), getattr(level.spent, unit),
            getattr(level.reserved, unit), getattr(level.remaining, unit), level.mode.value,
            "" if level.window_end is None else f"{level.window_end:%Y-%m-%d %H:%M}",
        )
        for level in levels_of(found)
        for unit in ("information", "calls")
    ]  # fmt: skip
    columns = (
        _text("account", "account"), _text("unit", "unit"), Column("limit", "limit"), Column("spent", "spent"),
        Column("reserved", "reserved"), Column("remaining", "left"), _text("mode", "mode"),
        _text("refreshed", "refreshed (UTC)"),
    )  # fmt: skip
    return Sheet(columns, rows, currency_notes(found))


def journal_sheet(entries: Sequence[admin_pb2.JournalEntry]) -> Sheet:
    """Return entries, oldest first; with the blocks that alone have paid, if some have."""
    has_blocks = any(each.cost.blocks for each in entries)
    rows = [
        (
            format_timestamp(each.time), "/".join(each.account.path), each.cost.information, each.cost.calls,
            _kind_text(each.kind), each.release_id, each.request_id, each.policy_statement,
            each.shared_cost.information if each.HasField("shared_cost") else None,
            each.actor, _change_text(each), each.reason, *([" ".join(each.cost.blocks)] if has_blocks else ()),
        )
        for each in entries
    ]  # fmt: skip
    columns = (
        _text("time", "time (UTC)"), _text("account", "account"), Column("information", "information"),
        Column("calls", "calls"), _text("kind", "kind"), _copied("release_id", "release"),
        _copied("request_id", "request"), _text("policy_statement", "published"),
        Column("shared_information", "above"), _text("actor", "by"), _text("change", "change"),
        _text("reason", "reason"),
        *((_text("blocks", "blocks"),) if has_blocks else ()),
    )  # fmt: skip
    return Sheet(columns, rows)


def entry_facts(entry: admin_pb2.JournalEntry) -> dict[str, Any]:
    """Return an entry of the journal by itself: where it stands, and what `journal_sheet` says of it, and more."""
    (row,) = sheet_rows(journal_sheet([entry]))
    return {"position": entry.position, **row, "unit_id": entry.cost.unit_id, "query_id": entry.query_id}


def _kind_text(kind: admin_pb2.ChargeKind) -> str:
    names = {number: name for name, number in admin_pb2.ChargeKind.items()}
    return _NO_CHARGES.get(kind) or names.get(kind, "unknown").removeprefix("CHARGE_KIND_").lower()


def _change_text(entry: admin_pb2.JournalEntry) -> str:
    """Return what a limit was and what it is now; empty if the entry is about none."""
    if entry.kind != admin_pb2.CHARGE_KIND_LIMIT:
        return ""
    before, after = (
        _limit_text(getattr(entry, field)) if entry.HasField(field) else "none"
        for field in ("limit_before", "limit_after")
    )
    return f"was {before}, is {after}"


def _limit_text(limit: admin_pb2.Limit) -> str:
    period = admin_pb2.Period.Name(limit.period).removeprefix("PERIOD_").lower()
    window = f"{period}:{limit.sliding_days}" if limit.sliding_days else period
    mode = budget_pb2.Mode.Name(limit.mode).removeprefix("MODE_").lower()
    return f"{limit.information}/{limit.calls} {mode} {window} {limit.zone}"


def usage_sheet(found: Exhaustion, limits: Mapping[str, Sequence[int]]) -> Sheet:
    """Return, for each limit and day, the share of accounts that would have exhausted it by the day's end."""
    accounts = len(found.spent)
    rows = [
        (unit, limit, day, count, count / accounts if accounts else 0.0)
        for unit, every in limits.items()
        for limit in every
        for day, count in enumerate(found.exhausted(unit, limit), start=1)
    ]
    columns = (
        _text("unit", "unit"), Column("limit", "limit"), Column("day", "day"), Column("accounts", "exhausted"),
        Column("share", "share", percent),
    )  # fmt: skip
    return Sheet(columns, rows, (("accounts", f"{accounts} were charged anything in this time"),))


def verification_facts(found: admin_pb2.VerifyLedgerResponse) -> dict[str, Any]:
    """Return how much was compared, and how much of it differs, for JSON."""
    return {"entries": found.entries, "balances": found.balances, "different": found.different}


def verification_sheet(found: admin_pb2.VerifyLedgerResponse) -> Sheet:
    """Return every balance that is not what the journal says."""
    rows = [
        (
            "/".join(each.path), each.unit, each.sum,
            format_timestamp(each.window_start) if each.HasField("window_start") else "", each.kept, each.rebuilt,
        )
        for each in found.differences
    ]  # fmt: skip
    columns = (
        _text("account", "account"), _text("unit", "unit"), _text("sum", "sum"), _text("window", "window (UTC)"),
        Column("kept", "kept"), Column("rebuilt", "from the journal"),
    )  # fmt: skip
    checked = (
        f"{found.entries} entries of the journal, {found.balances} balances, {found.different} differences"
    )
    found_of = {each.sum for each in found.differences}
    meanings = [(name, meaning) for name, meaning in _MEANINGS.items() if name in found_of]
    return Sheet(columns, rows, (*meanings, ("verified", checked)))
