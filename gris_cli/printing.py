"""What commands print: tables for people, or JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gris_cli.alternatives import alternatives_table
from gris_cli.budget_formatting import (
    format_guarantee,
    format_more_questions,
    format_own_guarantee,
    format_questions_left,
    format_share,
)
from gris_cli.failures import Failure
from gris_cli.formatting import format_aggregate, format_total
from gris_cli.totals_table import totals_table
from pinot_connector import formats
from pinot_connector.budgets import Level
from pinot_connector.formats import written
from pinot_connector.guarantees import AccountGuarantee
from pinot_connector.json_values import to_json
from pinot_connector.notebooks.cells import isolated
from pinot_connector.parameters import Quantiles
from pinot_connector.results import Explanation, PrivateResult, Row
from pinot_connector.shown_values import ShownValue
from pinot_connector.statements import METHOD, Statement

MAX_WIDTH = 100
MAX_ROWS = 40
MAX_SQL = 20_000
PRICE = "method.cost"


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output, in one line of printable characters."""
    # A message may repeat an argument that is no text; it must not become an error of its own.
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    # Elements come from data: as they are, some of their characters would drive a terminal or end the line.
    sys.stdout.write("".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text) + "\n")


def print_guarantee(guarantee: AccountGuarantee, *, as_json: bool) -> None:
    """Print the guarantee for what an account is shown."""
    if as_json:
        print_json(guarantee.to_dict())
        return
    say_guarantee(console_of_width(), guarantee)


def say_guarantee(console: Console, guarantee: AccountGuarantee) -> None:
    """Print the guarantee for everything that an account is shown and, if it shares a budget, for its own results."""
    say(console, "guarantee", format_guarantee(guarantee))
    say(console, "own budget", format_own_guarantee(guarantee))


def print_result(result: PrivateResult, more: int | None, *, as_json: bool) -> None:
    """Print a paid result, and for how many `more` questions at its price the budget lasts."""
    if as_json:
        print_json({**result.to_dict(), "questions_left": more})
        return
    console = console_of_width()
    console.print(_table(result))
    if len(result.rows) > MAX_ROWS:
        say(console, "", f"the first {MAX_ROWS} of {_elements(result)}; --json has all of these")
    if (totals := totals_table(result, MAX_ROWS)) is not None:
        console.print(totals)
        if len(result.totals or ()) > MAX_ROWS:
            say(
                console,
                "",
                f"the first {MAX_ROWS} of {len(result.totals or ())} totals; --json has all of them",
            )
    say(console, "total", format_total(result))
    _say_statements(console, result.statements)
    say(console, "cost", f"{formats.cost(result.cost)}; charged now: {formats.cost(result.charged)}")
    say(console, "release", f"{result.release_id[:16]}, made with the noise key {result.key_id}")
    for level in result.remaining:
        say(console, "left", formats.level(level))
    say(console, "", format_more_questions(more))


def _say_statements(console: Console, statements: Iterable[Statement]) -> None:
    """Print what is said, grouped by what it is of; how numbers are made comes last."""
    of: dict[str, list[str]] = {}
    for each in statements:
        of.setdefault(each.subject, []).append(each.text)
    for subject in sorted(of, key=METHOD.__eq__):
        for number, text in enumerate(of[subject]):
            say(console, "" if number else subject, text)


def _elements(result: PrivateResult) -> str:
    """Return how many elements a result has, and of how many where the result itself is cut."""
    shown, size = len(result.rows), result.parameters.domain_size
    if result.parameters.k is None or size is None or size <= shown:
        return f"{shown} elements"
    return f"{shown} elements in the result, which is cut: the domain has {size}"


def print_check(*, as_json: bool) -> None:
    """Print the answer to `SELECT 1`, which this command gives itself."""
    if as_json:
        print_json({"rows": [{"element": [1], "noisy_count": None, "interval": None}], "cost": None})
        return
    console = console_of_width()
    console.print("1")
    say(
        console,
        "",
        "no service was asked, and nothing charged; gris catalog tests the connection to dp_service",
    )


def print_levels(levels: Sequence[Level], *, as_json: bool) -> None:
    """Print what is left of a budget."""
    if as_json:
        print_json({"remaining": to_json(levels)})
        return
    console = console_of_width()
    for level in levels:
        say(console, "left", formats.level(level))
    if not levels:
        say(console, "left", "no limit applies to this account")


def print_written(path: Path, *, as_json: bool) -> None:
    """Print where something was written to."""
    if as_json:
        print_json({"written": str(path)})
        return
    say(console_of_width(), "written", str(path))


def print_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """Print what a question would cost, and what to expect of it."""
    if as_json:
        print_json(explanation.to_dict())
        return
    console = console_of_width()
    # Its price comes first.
    for price in (each for each in explanation.statements if each.code == PRICE):
        say(console, "cost", price.text)
    for share in explanation.shares:
        say(console, "of budget", format_share(share))
    say(console, "", format_questions_left(explanation))
    _say_statements(console, (each for each in explanation.statements if each.code != PRICE))
    if (table := alternatives_table(explanation)) is not None:
        console.print(table)
    for query in explanation.queries:
        look = f", look {query.look}" if query.look else ""
        say(console, f"SQL, {query.dialect}{look}", shown_sql(query.sql))


def shown_sql(sql: str) -> str:
    """Return a query as a person is shown it: the keys of a lookup can make it longer than anybody reads."""
    if len(sql) <= MAX_SQL:
        return sql
    half = MAX_SQL // 10
    return f"{sql[:half]} ... {sql[-half:]} ({len(sql):,} characters; --json has them all)"


def print_failure(failure: Failure, *, as_json: bool) -> None:
    """Print an error: JSON on standard output, or a message on standard error."""
    if as_json:
        print_json(failure.to_dict())
        return
    sys.stderr.write(f"{failure.code.replace('_', ' ')}: {printable(failure.message)}\n")


def console_of_width() -> Console:
    """Return a console as wide as the terminal, up to a width that is good to read."""
    width = shutil.get_terminal_size((MAX_WIDTH, 24)).columns
    return Console(width=min(width, MAX_WIDTH), highlight=False)


def say(console: Console, label: str, text: str) -> None:
    """Print a line with a label; nothing if the text is empty."""
    if text:
        line = Table.grid(padding=(0, 2))
        line.add_column(min_width=12, style="dim")
        line.add_column()
        line.add_row(label, Text(printable(text)))
        console.print(line)


def _quantiles_table(result: PrivateResult, quantiles: Quantiles) -> Table:
    """Return one line for each element and quantile: there may be many of them, and each has a cell."""
    table = Table(show_edge=False, header_style="bold")
    for head in (*(column.title for column in result.columns), "quantile"):
        table.add_column(Text(printable(head)))
    for head in ("value", "cell"):
        table.add_column(head, justify="right")
    for row in result.rows[:MAX_ROWS]:
        for shown, value in zip(quantiles.shown, row.values, strict=True):
            cells = [*map(str, row.element), shown.title, *(() if value is None else _value_cells(value))]
            table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _table(result: PrivateResult) -> Table:
    if result.parameters.quantiles is not None:
        return _quantiles_table(result, result.parameters.quantiles)
    table = Table(show_edge=False, header_style="bold")
    if result.columns:
        table.add_column("#", justify="right")
    for column in result.columns:
        table.add_column(Text(printable(column.title)))
    # An empty list has its columns, too.
    if result.parameters.noise_scale is not None:
        table.add_column("noisy count", justify="right")
        table.add_column(f"{formats.confidence(result.confidence)} interval", justify="right")
    for aggregate in result.parameters.aggregates:
        table.add_column(Text(printable(format_aggregate(aggregate))), justify="right")
        table.add_column("interval", justify="right")
    for rank, row in enumerate(result.rows[:MAX_ROWS], start=1):
        table.add_row(*_cells(rank, row))
    return table


def _cells(rank: int, row: Row) -> list[Text]:
    # A total has neither a rank nor values.
    cells = [str(rank), *(str(value) for value in row.element)] if row.element else []
    if row.interval is not None:
        lower, upper = row.interval
        cells += [str(row.noisy_count), f"{lower} to {upper}"]
    for value in row.values:
        cells += ["-", "-"] if value is None else _value_cells(value)
    return [Text(printable(cell)) for cell in cells]


def _value_cells(value: ShownValue) -> list[str]:
    number, lower, upper = written(value.value, value.interval)
    return [number, f"{lower} to {upper}"]


def printable(text: str) -> str:
    """Return a text without characters that drive a terminal, and that does not turn what is beside it around."""
    # Elements come from data; a control character among them must not drive the terminal.
    return isolated(
        "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    )
