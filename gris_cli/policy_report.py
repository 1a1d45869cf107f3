"""What `gris policy check` prints: faults with their lines, or what a valid policy allows."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from dp_service.queries.errors import Problem
from dp_service.queries.policy import PolicyFile
from dp_service.queries.policy_review import Review, review
from dp_service.queries.resolution import mechanism_for
from dp_service.queries.tables import (
    Choice,
    Column,
    Contributions,
    Names,
    OfferedMeasure,
    Policy,
    QuantileColumn,
    Table,
    TauIs,
    Totals,
    ValueColumn,
    ValueNulls,
)
from dp_service.queries.times import CompleteBy, Refresh, Stream, TimeColumn
from dp_service.terms import BoundedBy
from dp_service.values.cells import Grid as PublicGrid
from gris_cli.formatting import format_count, format_exact
from gris_cli.policy_promises import ONE_VALUE, is_size
from gris_cli.printing import console_of_width, print_json, printable, say

if TYPE_CHECKING:
    from gris_cli.policy_data import Clipped, DataReport
    from gris_cli.policy_promises import Promise, PromiseReport
    from gris_cli.policy_values import Clamped

CODE = "policy"


def print_faults(problems: Sequence[Problem], content: bytes, *, as_json: bool) -> None:
    """Print faults: as JSON on standard output, or each with its line on standard error."""
    if as_json:
        message = f"the policy has {format_count(len(problems), 'fault')}"
        locations = [_location(problem) for problem in problems]
        print_json({"error": {"code": CODE, "message": message, "problems": locations}})
        return
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        # What is no text is not repeated.
        lines = []
    for problem in problems:
        sys.stderr.write(f"{printable(str(problem))}\n")
        if problem.line <= len(lines):
            sys.stderr.write(f"{problem.line:6} | {printable(lines[problem.line - 1].rstrip())}\n")


def print_report(
    file: PolicyFile,
    data: Sequence[DataReport] = (),
    engines: Sequence[PromiseReport] = (),
    *,
    compared: Collection[str] = (),
    as_json: bool,
) -> None:
    """Print what a valid policy allows, its defaults, warnings, and what of the data is left out.

    Args:
        file: The policy.
        data: What was counted in files.
        engines: What was counted by engines.
        compared: The tables whose columns were compared with the data.
        as_json: Whether to print JSON.
    """
    found = review(file)
    unseen = [table.name for table in file.policy.tables if table.name not in compared]
    if as_json:
        counted = {"data": [_plain_data(each) for each in data]} if data else {}
        kept = {"promises": [_plain_data(each) for each in engines]} if engines else {}
        print_json({**_plain(file, found), "not_compared": unseen, **counted, **kept})
        return
    console = console_of_width()
    policy = file.policy
    say(console, "policy", f"{file.document.source} is sound")
    say(console, "currency", _format_currency(policy))
    say(console, "count noise", policy.count_noise)
    for table in policy.tables:
        _print_table(console, table)
    console.print()
    for location, values in _defaults_by_location(found):
        say(console, "default", f"{location}: {', '.join(values)}")
    for warning in found.warnings:
        say(console, "warning", str(warning))
    say(console, "not checked", _format_unseen(unseen))
    for report in data:
        _print_data(console, report)
    for each in engines:
        console.print()
        say(console, "data", f"{each.table}, as the engine has it; true counts, for the owner alone")
        _print_promises(console, each.promises)


def _format_unseen(tables: Sequence[str]) -> str:
    """Return what was taken from the policy as it stands, empty if nothing was."""
    if not tables:
        return ""
    return (
        f"whether the data of {', '.join(tables)} have these columns (member and time too) with these types: "
        "--data TABLE=PATH, --pinot or --spark compares them"
    )


def _plain_data(report: DataReport | PromiseReport) -> dict[str, Any]:
    kept = [{**asdict(each), "is_kept": each.is_kept} for each in report.promises]
    return {**asdict(report), "promises": kept}


def _print_data(console: Console, report: DataReport) -> None:
    console.print()
    say(
        console,
        "data",
        f"{report.table}: {format_count(report.rows, 'row')}; true counts, for the owner alone",
    )
    say(console, "left out", f"{format_count(report.rows_in_no_question, 'row')} that cannot be read as text")
    grid = Grid(show_edge=False, header_style="bold")
    for head in ("column", "rows", "with", "left out of"):
        grid.add_column(head)
    for each in report.left_out:
        grid.add_row(*(Text(printable(cell)) for cell in (each.column, str(each.rows), each.reason, each.of)))
    if report.left_out:
        console.print(grid)
    for clipped in report.clipped:
        say(console, "clipped", _format_clipped(clipped))
    for clamped in report.clamped:
        say(console, "clamped", _format_clamped(clamped))
    _print_promises(console, report.promises)


def _format_clipped(clipped: Clipped) -> str:
    """Return how many rows clipping leaves out of a question."""
    share = 100 * clipped.cut / clipped.rows if clipped.rows else 0.0
    asked = f"by {clipped.column}" if clipped.column else "for one total"
    return f"{clipped.cut} of {format_count(clipped.rows, 'row')} ({share:.3g} %) left out of events counted {asked}"


def _format_clamped(clamped: Clamped) -> str:
    """Return how many rows, or members' totals, count with an end of their bounds."""
    cut = clamped.below + clamped.above
    share = 100 * cut / clamped.counted if clamped.counted else 0.0
    if clamped.by is None:
        what = format_count(clamped.counted, "row")
    else:
        asked = f"by {clamped.by}" if clamped.by else "of all rows"
        what = f"{format_count(clamped.counted, 'member total')} {asked}"
    return (
        f"{cut} of {what} ({share:.3g} %) count with an end of the bounds of {clamped.column}: {clamped.below} with "
        f"the lower, {clamped.above} with the upper"
    )


def _print_promises(console: Console, promises: Sequence[Promise]) -> None:
    for promise in promises:
        say(console, "promise", _format_promise(promise))


def _format_promise(promise: Promise) -> str:
    """Return whether the data keep a promise of the policy."""
    if is_size(promise.key):
        return _format_size(promise)
    what = f"rows in one element of {promise.column}"
    if promise.key.endswith("delta"):
        what = "values"
    elif promise.key == ONE_VALUE:
        what = f"values of {promise.column}"
    elif promise.key.startswith("contributions"):
        what = f"elements of {promise.column}"
    held = f"{promise.key} {promise.promised}: no member has more than {promise.found} {what}"
    if promise.is_kept:
        return f"{held}; kept by these data, and to be kept by those to come"
    return (
        f"BROKEN, {held}, and {_format_breaking(promise.members)} more than {promise.promised}: the guarantee "
        "does not hold for them"
    )


def _format_size(promise: Promise) -> str:
    """Return whether a table is as small as the policy promises."""
    what = "member" if promise.key.endswith("members") else "row"
    held = f"{promise.key} {promise.promised}: the table has {format_count(promise.found, what)}"
    if promise.is_kept:
        return f"{held}; kept by these data, and to be kept by those to come"
    return f"BROKEN, {held}: sums may be inexact on an engine that sums in doubles"


def _format_breaking(members: int | None) -> str:
    return "some have" if members is None else format_count(members, "member")


def _defaults_by_location(found: Review) -> Iterator[tuple[str, list[str]]]:
    """Yield the defaults that apply, grouped by table and column."""
    located = [(*default.key.rpartition(".")[::2], default.value) for default in found.defaults]
    for location, group in groupby(located, key=lambda each: each[0]):
        yield location or "header", [f"{key} {value}" for _, key, value in group]


def _format_currency(policy: Policy) -> str:
    epsilon, delta = float(policy.currency.epsilon_per), float(policy.currency.delta)
    return f"epsilon_per {epsilon:g}, delta {delta:g}; unit {policy.currency.unit_id}"


def _print_table(console: Console, table: Table) -> None:
    console.print()
    say(console, "table", f"{table.name}; its members are {table.member}")
    say(console, "counts", "; ".join(map(_format_measure, table.measures)))
    say(console, "bounded", _format_contributions(table.contributions))
    for value in table.values:
        say(console, "sums", _format_value(value))
    for column in table.quantiles:
        say(console, "quantiles", _format_quantiles(column))
    say(console, "time", _format_time(table.time) + _format_buckets(table))
    say(console, "asked again", _format_consistency(table))
    grid = Grid(show_edge=False, header_style="bold")
    for head in ("column", "type", "group by", "filter"):
        grid.add_column(head)
    for each in table.usable_columns:
        grid.add_row(*(Text(printable(cell)) for cell in _cells(each, table)))
    console.print(grid)


def _cells(column: Column, table: Table) -> tuple[str, ...]:
    return (
        column.name,
        column.type,
        _format_grouping(column, table),
        ", ".join(sorted(table.operators(column))) or "-",
    )


def _format_grouping(column: Column, table: Table) -> str:
    if not column.group_by:
        return "-"
    mechanism = mechanism_for(table, [column])
    domain = "unknown domain" if column.domain is None else f"domain of {len(column.domain)}"
    if column.publication is not None:
        rho, slack = float(column.publication.rho), float(column.publication.delta)
        domain += f" (published at rho {rho:g}, delta {slack:g})"
    if column.lookup is not None:
        domain += (
            f" (looked up by {column.lookup.key.name}, of {format_count(len(column.lookup.entries), 'key')})"
        )
    delta = column.delta_within(restricted=True)
    if table.contributions is not None:
        delta = min(table.contributions.delta_0, len(column.domain or ()) or table.contributions.delta_0)
    reach = "any number" if delta is None else f"at most {delta}"
    return f"{mechanism}: {domain}, {reach} of a member"


def _format_measure(offered: OfferedMeasure) -> str:
    how = {None: "", TauIs.ASSUMED: ", which is assumed", TauIs.CLIPPED: ", by clipping"}[offered.tau_is]
    return f"{offered.measure.replace('_', ' ')}, a member changes a count by at most {offered.tau}{how}"


def _format_contributions(stated: Contributions | None) -> str:
    """Return how contributions are bounded, empty if they are not."""
    if stated is None:
        return ""
    periods = f" in each {stated.periods}" if isinstance(stated.periods, Refresh) else ""
    if isinstance(stated.periods, int) and stated.periods > 1:
        periods = f" in each of {stated.periods} periods"
    how = {
        BoundedBy.IN_QUERY: "by the query",
        BoundedBy.PREPARED: f"as a copy that was prepared by {', '.join(stated.elements)}",
        BoundedBy.ASSUMED: "which is assumed",
    }[stated.bounded_by]
    return (
        f"a member counts in at most {format_count(stated.delta_0, 'element')}{periods}, {how}; a question costs "
        f"{stated.units} information; elements count from {stated.min_count} on{_format_names(stated.names)}"
        f"{'; counts of small known domains are released relative to their total' if stated.shift else ''}"
        f"{f'; a sharpening takes at most {stated.sharpening} information' if stated.sharpening else ''}"
        f"{_format_totals(stated.totals)}{_format_choice(stated.choice)}"
    )


def _format_totals(totals: Totals | None) -> str:
    """Return what totals take, empty if there are none."""
    if totals is None:
        return ""
    promised = f", and a member has one value of {', '.join(totals.one_value)}" if totals.one_value else ""
    return f"; totals beside two columns take {totals.share} of the units{promised}"


def _format_choice(choice: Choice | None) -> str:
    """Return between what the service chooses, empty if it does not."""
    if choice is None:
        return ""
    ways = ", ".join(each.value.replace("_", " ") for each in choice.among)
    units = ", ".join(map(str, choice.units))
    columns = ", ".join(each.column for each in choice.expected) or "no column"
    return (
        f"; the service chooses the cheapest of {ways}, for {units} information, that is expected to find all "
        f"elements, by what is expected of {columns}"
    )


def _format_value(value: ValueColumn) -> str:
    """Return how rows and members' totals of a value column are rounded and clamped."""
    quantum, rows, totals = value.bounds.quantum.size, value.bounds.rows, value.bounds.totals
    row_lower, row_upper, lower, upper = (
        format_exact(end * quantum) for end in (rows.low, rows.high, totals.low, totals.high)
    )
    return (
        f"{value.name}: rows count with {row_lower} to {row_upper}, and a member's total in an element with {lower} to "
        f"{upper}{_format_publication(value)}, in steps of {format_exact(quantum)}{_format_value_nulls(value)}"
    )


def _format_publication(value: ValueColumn) -> str:
    return "" if value.publication is None else f" (published at rho {float(value.publication.rho):g})"


def _format_quantiles(column: QuantileColumn) -> str:
    """Return which value of a member counts, and among which cells it is."""
    quantum, rows, grid = column.bounds.quantum.size, column.bounds.rows, column.grid
    row_lower, row_upper, lower, upper = (
        format_exact(end * quantum) for end in (rows.low, rows.high, grid.low, grid.high)
    )
    return (
        f"{column.name}: rows count with {row_lower} to {row_upper}, and of a member the {column.rule} of them, among "
        f"{len(PublicGrid.of(grid))} public cells between {lower} and {upper}, in steps of {format_exact(quantum)}"
    )


def _format_value_nulls(value: ValueColumn) -> str:
    if value.nulls is ValueNulls.KEEP and value.null_value is not None:
        return f"; a missing value counts as {format_exact(value.null_value)}"
    if value.nulls is ValueNulls.OWN_COUNT:
        return "; rows without a value count, and its sums and averages are of the others, with a count of their own"
    return "; rows without a value count in no question that sums it"


def _format_names(names: Names | None) -> str:
    """Return what the first of two looks does, empty if there is one look."""
    if names is None:
        return ""
    return (
        f"; of columns of unknown values a first look names at most {format_count(names.max_names, 'element')}, for "
        f"{names.share} of the units and with a member in at most {names.delta_1}"
    )


def _format_buckets(table: Table) -> str:
    if not table.buckets:
        return ""
    most = None if table.contributions is None else table.contributions.buckets
    bound = "" if most is None else f", a member in at most {most} of them"
    return f"; in buckets of a {', '.join(table.buckets)}{bound}"


def _format_time(time: TimeColumn | None) -> str:
    if time is None:
        return "no time column"
    if time.closed is None:
        return f"{time.name}, zone {time.zone}; rows count as they arrive"
    closed = time.closed
    return (
        f"{time.name}, zone {time.zone}; rows count when their {closed.refresh} has been over for "
        f"{format_count(closed.delay_minutes, 'minute')}{_format_stream(time.stream)}"
    )


def _format_stream(stream: Stream | None) -> str:
    if stream is None:
        return ""
    promises = (
        "; rows of closed periods are never replaced, by promise" if stream.replaced_until_closed else ""
    )
    if stream.replaced_by_same_member:
        promises += "; rows are replaced by those of the same member, by promise"
    if stream.offline_days_are_whole:
        promises += "; its offline part holds whole days, by promise"
    match stream.complete_by:
        case CompleteBy.OFFSETS:
            return f"; takes in a stream, complete by its offsets{promises}"
        case CompleteBy.DELAY:
            return f"; takes in a stream, complete by that time, by promise{promises}"


def _format_consistency(table: Table) -> str:
    version = "of the declared version" if table.data_version else "of one version"
    return f"{table.consistency}, on data {version}"


def _plain(file: PolicyFile, found: Review) -> dict[str, Any]:
    policy = file.policy
    return {
        "policy": file.document.source,
        "currency": {
            "epsilon_per": str(policy.currency.epsilon_per),
            "delta": str(policy.currency.delta),
            "unit_id": policy.currency.unit_id,
        },
        "count_noise": policy.count_noise,
        "tables": [_plain_table(table) for table in policy.tables],
        "defaults": [{"key": default.key, "value": default.value} for default in found.defaults],
        "warnings": [_location(warning) for warning in found.warnings],
    }


def _plain_table(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "member": table.member,
        "measures": [
            {"measure": each.measure, "tau": each.tau, "tau_is": each.tau_is} for each in table.measures
        ],
        "time": None
        if table.time is None
        else _plain_time(table.time) | ({"buckets": list(table.buckets)} if table.buckets else {}),
        "consistency": table.consistency,
        **(
            {}
            if table.contributions is None
            else {"contributions": _plain_contributions(table.contributions)}
        ),
        "columns": [_plain_column(column, table) for column in table.usable_columns],
        **({"values": [_plain_value(value) for value in table.values]} if table.values else {}),
        **({"quantiles": list(map(_plain_quantiles, table.quantiles))} if table.quantiles else {}),
    }


def _plain_quantiles(column: QuantileColumn) -> dict[str, Any]:
    quantum, rows, grid = column.bounds.quantum.size, column.bounds.rows, column.grid
    return {
        "name": column.name,
        "type": column.type,
        "quantum": str(quantum),
        "member_value": column.rule,
        "grid": {
            "scale": grid.scale,
            "from": str(grid.low * quantum),
            "to": str(grid.high * quantum),
            "cells": len(PublicGrid.of(grid)),
        },
        "row_lower": str(rows.low * quantum),
        "row_upper": str(rows.high * quantum),
        "max_rows": column.max_rows,
        "nulls": column.nulls,
        "null_value": None if column.null_value is None else str(column.null_value),
    }


def _plain_value(value: ValueColumn) -> dict[str, Any]:
    quantum, rows, totals = value.bounds.quantum.size, value.bounds.rows, value.bounds.totals
    return {
        "name": value.name,
        "type": value.type,
        "quantum": str(quantum),
        "row_lower": str(rows.low * quantum),
        "row_upper": str(rows.high * quantum),
        "lower": str(totals.low * quantum),
        "upper": str(totals.high * quantum),
        "weight": value.weight,
        "nulls": value.nulls,
        "null_value": None if value.null_value is None else str(value.null_value),
    }


def _plain_contributions(stated: Contributions) -> dict[str, Any]:
    found = asdict(stated)
    if stated.names is not None:
        found["names"]["share"] = str(stated.names.share)
    if stated.choice is not None:
        kept_names = stated.choice.kept_names
        found["choice"]["kept"] = str(stated.choice.kept)
        found["choice"]["kept_names"] = None if kept_names is None else str(kept_names)
    if stated.sums is None:
        del found["sums"]
    else:
        found["sums"]["share"] = str(stated.sums.share)
    if stated.totals is None:
        del found["totals"]
    else:
        found["totals"]["share"] = str(stated.totals.share)
    return found


def _plain_time(time: TimeColumn) -> dict[str, Any]:
    closed = time.closed
    return {
        "column": time.name,
        "zone": time.zone,
        "refresh": None if closed is None else closed.refresh,
        "delay_minutes": None if closed is None else closed.delay_minutes,
        **_plain_stream(time.stream),
    }


def _plain_stream(stream: Stream | None) -> dict[str, Any]:
    if stream is None:
        return {}
    return {
        "complete_by": stream.complete_by,
        "replaced_rows": "until_closed" if stream.replaced_until_closed else None,
        "replaced_by": "same_member" if stream.replaced_by_same_member else None,
        "offline_part": "whole_days" if stream.offline_days_are_whole else None,
    }


def _plain_column(column: Column, table: Table) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "mechanism": mechanism_for(table, [column]) if column.group_by else None,
        "domain_size": None if column.domain is None else len(column.domain),
        "delta": column.delta_within(restricted=True),
        "published": _plain_publication(column),
        "filter": sorted(table.operators(column)),
        **({} if column.lookup is None else {"looked_up_by": column.lookup.key.name}),
    }


def _plain_publication(column: Column) -> dict[str, str] | None:
    price = column.publication
    return None if price is None else {"rho": str(price.rho), "delta": str(price.delta)}


def _location(problem: Problem) -> dict[str, Any]:
    return {"line": problem.line, "key": problem.key, "message": problem.message}
