"""What `gris check` prints: faults with their lines, or what a valid policy allows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from dp_service.queries.errors import Problem
from dp_service.queries.policy import PolicyFile
from dp_service.queries.policy_review import Review, review
from dp_service.queries.policy_schema import AudienceSchema, OfferedTableSchema
from gris_cli.catalog_tables import print_table
from gris_cli.formatting import format_currency
from gris_cli.policy.comparing import Compared
from gris_cli.policy.data_text import print_data, print_promises
from gris_cli.policy.json_report import data_json, policy_json, problem_json
from gris_cli.policy.offered import offered_by
from gris_cli.policy.worst_case import WorstCase, worst_cases
from gris_cli.terminal import print_json, printable, say, show
from pinot_connector import formats

CODE = "policy"

MOST_QUOTED = 120
"""Of a line so many characters are quoted."""


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
            quoted = _quoted(lines[problem.line - 1].rstrip(), problem.key)
            sys.stderr.write(f"{problem.line:6} | {printable(quoted)}\n")


def _quoted(line: str, key: str) -> str:
    """Return a line, or of a long one the part where its last key stands, or else the beginning."""
    if len(line) <= MOST_QUOTED:
        return line
    found = line.find(key.rpartition(".")[2])
    first = max(0, min(found - MOST_QUOTED // 4, len(line) - MOST_QUOTED))
    before, after = (".. " if first else ""), (" .." if first + MOST_QUOTED < len(line) else "")
    return f"{before}{line[first : first + MOST_QUOTED]}{after}"


def print_report(file: PolicyFile, compared: Compared, *, as_json: bool) -> None:
    """Print what a valid policy allows, its defaults, warnings, and what of the data is left out."""
    found = review(file)
    unseen = [table.name for table in file.policy.tables if table.name not in compared.tables]
    if as_json:
        counted = {
            "data": list(map(data_json, compared.files)),
            "promises": list(map(data_json, compared.engines)),
        }
        facts = {name: reports for name, reports in counted.items() if reports}
        print_json({**policy_json(file, found), "not_compared": unseen, **facts})
        return
    policy, currency = file.policy, file.policy.currency
    say("policy", f"{file.document.source} is sound")
    say("currency", format_currency(currency.epsilon_per, currency.delta, currency.unit_id))
    say("count noise", policy.count_noise)
    for table, offered in zip(policy.tables, offered_by(policy).tables, strict=True):
        print_table(offered)
        for case in worst_cases(table, policy):
            say("worst case", _format_worst(case))
    show()
    for name, audience in file.schema.audiences.items():
        say("audience", f"{name}: {_offered(audience)}")
    for location, values in _defaults_by_location(found):
        say("default", f"{location}: {', '.join(values)}")
    for warning in found.warnings:
        say("warning", str(warning))
    say("not checked", _format_unseen(unseen))
    for report in compared.files:
        print_data(report)
    for each in compared.engines:
        show()
        say("data", f"{each.table}, as the engine has it; true counts, for the owner alone")
        print_promises(each.promises)


def _format_worst(case: WorstCase) -> str:
    by = f" by {', '.join(case.columns)}" if case.columns else ""
    return (
        f"{case.measure.replace('_', ' ')}{by}: costs at most {case.information} information, and a count is off by "
        f"{case.mean_error:.3g} on average"
    )


def _offered(audience: AudienceSchema) -> str:
    """Return what an audience is offered, table by table."""
    if not audience.tables:
        return "all tables, as they are"
    return "; ".join(f"{name} ({_part_of(each)})" for name, each in audience.tables.items())


def _part_of(table: OfferedTableSchema) -> str:
    stated = "columns" in table.model_fields_set
    columns = (", ".join(table.columns) or "no column") if stated else "all columns"
    rows = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in table.where.items()
    ]
    return columns if not rows else f"{columns}; only rows with {' and '.join(rows)}"


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
