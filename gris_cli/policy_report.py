"""What `gris policy check` prints: faults with their lines, or what a valid policy allows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
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
from dp_service.queries.tables import Column, OfferedMeasure, Policy, Table, TauIs
from dp_service.queries.times import TimeColumn
from gris_cli.formatting import format_count
from gris_cli.printing import console_of_width, print_json, printable, say

if TYPE_CHECKING:
    from gris_cli.policy_data import DataReport, Promise

CODE = "policy"


def print_faults(problems: Sequence[Problem], content: bytes, *, as_json: bool) -> None:
    """Print faults: as JSON on standard output, or each with its line on standard error."""
    if as_json:
        message = f"the policy has {format_count(len(problems), 'fault')}"
        locations = [_location(problem) for problem in problems]
        print_json({"error": {"code": CODE, "message": message, "problems": locations}})
        return
    lines = content.decode(errors="replace").splitlines()
    for problem in problems:
        sys.stderr.write(f"{printable(str(problem))}\n")
        if problem.line <= len(lines):
            sys.stderr.write(f"{problem.line:6} | {printable(lines[problem.line - 1].rstrip())}\n")


def print_report(file: PolicyFile, data: Sequence[DataReport] = (), *, as_json: bool) -> None:
    """Print what a valid policy allows, its defaults, warnings, and what of the data is left out."""
    found = review(file)
    if as_json:
        counted = {"data": [_plain_data(each) for each in data]} if data else {}
        print_json({**_plain(file, found), **counted})
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
    for report in data:
        _print_data(console, report)


def _plain_data(report: DataReport) -> dict[str, Any]:
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
    for promise in report.promises:
        say(console, "promise", _format_promise(promise))


def _format_promise(promise: Promise) -> str:
    """Return whether the data keep a promise of the policy."""
    what = "values" if promise.key.endswith("delta") else f"rows in one element of {promise.column}"
    held = f"{promise.key} {promise.promised}: no member has more than {promise.found} {what}"
    if promise.is_kept:
        return f"{held}; kept by these data, and to be kept by those to come"
    return (
        f"BROKEN, {held}, and {format_count(promise.members, 'member')} more than {promise.promised}: the guarantee "
        "does not hold for them"
    )


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
    say(console, "time", _format_time(table.time))
    say(console, "asked again", _format_consistency(table))
    grid = Grid(show_edge=False, header_style="bold")
    for head in ("column", "type", "group by", "filter"):
        grid.add_column(head)
    for column in table.usable_columns:
        grid.add_row(*(Text(printable(cell)) for cell in _cells(column, table)))
    console.print(grid)


def _cells(column: Column, table: Table) -> tuple[str, ...]:
    return (
        column.name,
        column.type,
        _format_grouping(column),
        ", ".join(sorted(table.operators(column))) or "-",
    )


def _format_grouping(column: Column) -> str:
    if not column.group_by:
        return "-"
    mechanism = mechanism_for([column])
    domain = "unknown domain" if column.domain is None else f"domain of {len(column.domain)}"
    if column.publication is not None:
        rho, slack = float(column.publication.rho), float(column.publication.delta)
        domain += f" (published at rho {rho:g}, delta {slack:g})"
    delta = column.delta_within(restricted=True)
    reach = "any number" if delta is None else f"at most {delta}"
    return f"{mechanism}: {domain}, {reach} of a member"


def _format_measure(offered: OfferedMeasure) -> str:
    how = {None: "", TauIs.ASSUMED: ", which is assumed", TauIs.CLIPPED: ", by clipping"}[offered.tau_is]
    return f"{offered.measure.replace('_', ' ')}, a member changes a count by at most {offered.tau}{how}"


def _format_time(time: TimeColumn | None) -> str:
    if time is None:
        return "no time column"
    if time.closed is None:
        return f"{time.name}, zone {time.zone}; rows count as they arrive"
    closed = time.closed
    return (
        f"{time.name}, zone {time.zone}; rows count when their {closed.refresh} has been over for "
        f"{format_count(closed.delay_minutes, 'minute')}"
    )


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
        "time": None if table.time is None else _plain_time(table.time),
        "consistency": table.consistency,
        "columns": [_plain_column(column, table) for column in table.usable_columns],
    }


def _plain_time(time: TimeColumn) -> dict[str, Any]:
    closed = time.closed
    return {
        "column": time.name,
        "zone": time.zone,
        "refresh": None if closed is None else closed.refresh,
        "delay_minutes": None if closed is None else closed.delay_minutes,
    }


def _plain_column(column: Column, table: Table) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "mechanism": mechanism_for([column]) if column.group_by else None,
        "domain_size": None if column.domain is None else len(column.domain),
        "delta": column.delta_within(restricted=True),
        "published": _plain_publication(column),
        "filter": sorted(table.operators(column)),
    }


def _plain_publication(column: Column) -> dict[str, str] | None:
    price = column.publication
    return None if price is None else {"rho": str(price.rho), "delta": str(price.delta)}


def _location(problem: Problem) -> dict[str, Any]:
    return {"line": problem.line, "key": problem.key, "message": problem.message}
