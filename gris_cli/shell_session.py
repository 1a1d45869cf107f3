"""The prompt of `gris shell`: lines in, answers out.

At a terminal, `readline` edits lines, remembers those of this session, and completes words of SQL and names of the
catalogue. Lines are written nowhere: their literals are the analyst's own. Where the input is no terminal, each line is
a question that was decided on: nothing is confirmed, and the first error ends the session with its exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

from gris_cli.expectations import expectation_of
from gris_cli.failures import failure_of
from gris_cli.formatting import format_cost, format_share
from gris_cli.printing import (
    print_check,
    print_explanation,
    print_failure,
    print_levels,
    print_result,
    printable,
)
from pinot_connector.budgets import questions_left
from pinot_connector.catalog import Catalog
from pinot_connector.errors import GrisError
from pinot_connector.questions import is_liveness_check, sql_question
from pinot_connector.sync_client import GatewayClient, PrivateClient

PROMPT = "gris> "
COMMANDS = ("catalog", "explain", "help", "quit", "remaining")
HELP = """\
SELECT ..          shows the price of a question, and asks it if you say so
explain SELECT ..  says more of the price, and asks nothing
catalog [TABLE]    lists what may be asked
remaining          shows what is left of the budget
quit, or Ctrl-D    ends the session
"""
_SQL = ("SELECT", "COUNT(DISTINCT", "COUNT(*)", "FROM", "WHERE", "AND", "IN", "NOT IN", "BETWEEN")
_SQL_ENDS = ("GROUP BY", "ORDER BY", "DESC", "LIMIT")


class ShellSession:
    """Reads lines and answers them until there are no more.

    Args:
        client: Answers questions; the caller closes it.
        as_json: Whether each answer is one line of JSON.
    """

    def __init__(self, client: PrivateClient | GatewayClient, *, as_json: bool) -> None:
        self._client = client
        self._as_json = as_json
        self._interactive = sys.stdin.isatty() and not as_json

    def run(self) -> None:
        """Answer lines until `quit` or the end of the input.

        Raises:
            GrisError: The input is no terminal, and a line could not be answered.
        """
        if self._interactive:
            complete_from(completions(self._client.catalog()))
        for line in self._lines():
            try:
                self._answer(line)
            except GrisError as error:
                if not self._interactive:
                    raise
                print_failure(failure_of(error), as_json=False)
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                sys.stderr.write("no longer waited for; what was charged meanwhile stays charged\n")

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = input(PROMPT if self._interactive else "").strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                # As in other shells: the line is dropped, the session stays.
                sys.stdout.write("\n")
                continue
            if line.casefold() in ("quit", "exit"):
                return
            if line:
                yield line

    def _answer(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word.casefold():
            case "help":
                sys.stdout.write(HELP)
            case "remaining":
                print_levels(self._client.remaining(), as_json=self._as_json)
            case "catalog":
                self._catalog(rest.strip())
            case "explain":
                explanation = self._client.explain(rest.strip())
                print_explanation(explanation, expectation_of(explanation.parameters), as_json=self._as_json)
            case _ if is_liveness_check(line):
                print_check(as_json=self._as_json)
            case _:
                self._ask(line)

    def _catalog(self, table: str) -> None:
        from gris_cli.catalog_tables import print_catalog  # noqa: PLC0415 - only this command needs it

        print_catalog(self._client.catalog(table), as_json=self._as_json)

    def _ask(self, sql: str) -> None:
        question = sql_question(sql)
        if self._interactive and not self._confirmed(sql):
            return
        result = self._client.ask(question)
        levels = result.remaining or self._client.remaining()
        print_result(result, questions_left(levels, result.cost), as_json=self._as_json)

    def _confirmed(self, sql: str) -> bool:
        """Return whether the question may be asked, once its price has been seen."""
        explanation = self._client.explain(sql)
        share = "" if explanation.narrowest is None else f"; {format_share(explanation.narrowest)}"
        sys.stdout.write(printable(f"at most {format_cost(explanation.worst_case_cost)}{share}") + "\n")
        return input("ask? [y/N] ").strip().casefold() in ("y", "yes")


def completions(catalog: Catalog) -> list[str]:
    """Return the words that a line can be completed by: commands, words of SQL, names of the catalogue."""
    names = {
        name
        for table in catalog.tables
        for name in (table.name, table.member, *(column.name for column in table.columns))
    }
    return sorted({*COMMANDS, *_SQL, *_SQL_ENDS, *names})


def matching(words: Sequence[str], begun: str) -> list[str]:
    """Return the words that begin so, in capitals or not."""
    return [word for word in words if word.casefold().startswith(begun.casefold())]


def complete_from(words: Sequence[str]) -> None:
    """Have the terminal complete words by the tab key, where Python can."""
    with suppress(ModuleNotFoundError):
        import readline  # noqa: PLC0415 - not on Windows

        def completed(begun: str, number: int) -> str | None:
            return next(iter(matching(words, begun)[number:]), None)

        readline.set_completer(completed)
        readline.set_completer_delims(" \t\n,()='")
        readline.parse_and_bind("tab: complete")
