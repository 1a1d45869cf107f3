"""What `gris policy check` prints: faults with their lines, or what a valid policy allows."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dp_service.queries.errors import Problem
from dp_service.queries.policy import PolicyFile
from dp_service.queries.policy_review import Review, review
from gris_cli.policy.data_text import print_data, print_promises
from gris_cli.policy.json_report import data_json, policy_json, problem_json
from gris_cli.policy.table_text import format_currency, print_table
from gris_cli.printing import console_of_width, print_json, printable, say
from pinot_connector import formats

if TYPE_CHECKING:
    from gris_data.policy.data import DataReport
    from gris_data.policy.promises import PromiseReport

CODE = "policy"


def print_faults(problems: Sequence[Problem], content: bytes, *, as_json: bool) -> None:
    """Print faults: as JSON on standard output, or each with its line on standard error."""
    if as_json:
        message = f"the policy has {formats.counted(len(problems), 'fault')}"
        locations = [problem_json(problem) for problem in problems]
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
        counted = {"data": [data_json(each) for each in data]} if data else {}
        kept = {"promises": [data_json(each) for each in engines]} if engines else {}
        print_json({**policy_json(file, found), "not_compared": unseen, **counted, **kept})
        return
    console = console_of_width()
    policy = file.policy
    say(console, "policy", f"{file.document.source} is sound")
    say(console, "currency", format_currency(policy))
    say(console, "count noise", policy.count_noise)
    for table in policy.tables:
        print_table(console, table)
    console.print()
    for location, values in _defaults_by_location(found):
        say(console, "default", f"{location}: {', '.join(values)}")
    for warning in found.warnings:
        say(console, "warning", str(warning))
    say(console, "not checked", _format_unseen(unseen))
    for report in data:
        print_data(console, report)
    for each in engines:
        console.print()
        say(console, "data", f"{each.table}, as the engine has it; true counts, for the owner alone")
        print_promises(console, each.promises)


def _format_unseen(tables: Sequence[str]) -> str:
    """Return what was taken from the policy as it stands, empty if nothing was."""
    if not tables:
        return ""
    return (
        f"whether the data of {', '.join(tables)} have these columns (member and time too) with these types: "
        "--data TABLE=PATH, --pinot or --spark compares them"
    )


def _defaults_by_location(found: Review) -> Iterator[tuple[str, list[str]]]:
    """Yield the defaults that apply, grouped by table and column."""
    located = [(*default.key.rpartition(".")[::2], default.value) for default in found.defaults]
    for location, group in groupby(located, key=lambda each: each[0]):
        yield location or "header", [f"{key} {value}" for _, key, value in group]
