"""What commands print of questions, answers and budgets: tables for people, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table

from gris_cli.budget_formatting import (
    format_guarantee,
    format_more_questions,
    format_own_guarantee,
    format_questions_left,
    format_share,
)
from gris_cli.failures import Failure
from gris_cli.terminal import grid, print_json, printable, say, say_all, show
from pinot_connector import formats
from pinot_connector.budgets import Level, balance_of
from pinot_connector.catalog import BlocksEntry
from pinot_connector.explanation_rows import PRICE, VERDICT, leading
from pinot_connector.guarantees import AccountGuarantee
from pinot_connector.json_values import to_json
from pinot_connector.notebooks.cells import cells, heads, total_in_words, value_cells
from pinot_connector.parameters import Quantiles
from pinot_connector.results import Explanation, PrivateResult
from pinot_connector.statements import METHOD, Statement

MAX_ROWS = 40


def print_guarantee(guarantee: AccountGuarantee, *, as_json: bool) -> None:
    """Print the guarantee for everything that an account is shown and, if it shares a budget, for its own results."""
    if as_json:
        print_json(guarantee.to_dict())
        return
    say("guarantee", format_guarantee(guarantee))
    if guarantee.holds.guarantee is not None and guarantee.delta < 1:
        say("", guarantee.holds.guarantee.meaning)
    say("own budget", format_own_guarantee(guarantee))


def print_result(result: PrivateResult, more: int | None, *, as_json: bool, verbose: bool = False) -> None:
    """Print a paid result, and for how many `more` questions at its price the budget lasts.

    Without `verbose` nothing is said of how the numbers are made, and of all limits there is only the account's own.
    """
    if as_json:
        print_json({**result.to_dict(), "questions_left": more})
        return
    show(_table(result))
    if len(result.rows) > MAX_ROWS:
        say("", f"the first {MAX_ROWS} of {_elements(result)}; --json has all of these")
    say("total", "" if result.total is None else total_in_words(result.total))
    _say_statements(each for each in result.statements if verbose or not each.says_how)
    say("cost", f"{formats.cost(result.cost)}; charged now: {formats.cost(result.charged)}")
    if verbose and result.release_id:
        say("release", f"{result.release_id[:16]}, made with the noise key {result.key_id}")
    for level in result.remaining if verbose else result.remaining[-1:]:
        say("left", formats.level(level))
    say("", format_more_questions(more))


def _say_statements(statements: Iterable[Statement]) -> None:
    """Print what is said, grouped by what it is of; how numbers are made comes last."""
    of: dict[str, list[str]] = {}
    for each in statements:
        of.setdefault(each.subject, []).append(each.text)
    for subject in sorted(of, key=METHOD.__eq__):
        say_all(subject, of[subject])


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
    show("1")
    say("", "no service was asked, and nothing charged; gris catalog tests the connection to dp_service")


def print_levels(levels: Sequence[Level], blocks: BlocksEntry | None = None, *, as_json: bool) -> None:
    """Print what is left of a budget, of blocks too, which `blocks` names, and which of its units runs out first."""
    balances = [balance_of(level.spent, level.limit) for level in levels]
    if as_json:
        print_json({"remaining": to_json(levels), "balances": to_json(balances)})
        return
    for level, balance in zip(levels, balances, strict=True):
        say("left", formats.level(level))
        for left in formats.left_of_blocks(level, blocks):
            say("", left)
        say("", formats.balance(balance))
    if not levels:
        say("left", "no limit applies to this account")


def print_written(path: Path, *, as_json: bool) -> None:
    """Print where something was written to."""
    if as_json:
        print_json({"written": str(path)})
        return
    say("written", str(path))


def print_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """Print what a question would cost, and what to expect of it."""
    if as_json:
        print_json(explanation.to_dict())
        return
    # Whether it is of use comes first, and then its price.
    first = {each.code: each.text for each in explanation.statements if each.code in (VERDICT, PRICE)}
    for label, code in (("verdict", VERDICT), ("cost", PRICE)):
        say(label, first.get(code, ""))
    if explanation.narrowest is not None:
        say("of budget", format_share(explanation.narrowest))
    say("", format_questions_left(explanation))
    _say_statements(leading(explanation))
    say("more", "--json has all that is said, and the SQL that engines would run")


def print_failure(failure: Failure, *, as_json: bool) -> None:
    """Print an error: JSON on standard output, or a message on standard error."""
    if as_json:
        print_json(failure.to_dict())
        return
    # Each fault of a policy has a line of its own.
    message = "\n".join(map(printable, failure.message.split("\n")))
    sys.stderr.write(f"{failure.code.replace('_', ' ')}: {message}\n")


def _table(result: PrivateResult) -> Table:
    if result.parameters.quantiles is not None:
        return _quantiles_table(result, result.parameters.quantiles)
    titles = ["#", *heads(result)] if result.columns else heads(result)
    names = {column.title for column in result.columns}
    numbers = {place for place, title in enumerate(titles) if title not in names}
    rows = (
        # A total has no rank.
        [*([str(rank)] if row.element else []), *cells(row, result)]
        for rank, row in enumerate(result.rows[:MAX_ROWS], start=1)
    )
    return grid(titles, rows, numbers=numbers)


def _quantiles_table(result: PrivateResult, quantiles: Quantiles) -> Table:
    """Return one line for each element and quantile: there may be many of them, and each has a cell."""
    titles = [*(column.title for column in result.columns), "quantile", "value", "cell"]
    rows = (
        [*map(str, row.element), shown.title, *value_cells(value, digits)]
        for row in result.rows[:MAX_ROWS]
        for shown, value, digits in zip(quantiles.shown, row.values, result.parameters.decimals, strict=True)
    )
    return grid(titles, rows, numbers=range(len(titles) - 2, len(titles)))
