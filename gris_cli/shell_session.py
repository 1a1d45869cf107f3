"""The prompt of `gris shell`: lines in, answers out.

At a terminal, `readline` edits lines and remembers those of this session, where Python has it. Lines are written
nowhere: their literals are the analyst's own. Where the input is no terminal, each line is a question that was decided
on: nothing is confirmed, and the first error ends the session with its exit code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress

from gris_cli.budget_formatting import format_share
from gris_cli.clients import blocks_of, remaining_after
from gris_cli.failures import failure_of
from gris_cli.printing import (
    print_check,
    print_explanation,
    print_failure,
    print_levels,
    print_result,
)
from gris_cli.terminal import print_json, printable
from pinot_connector import formats
from pinot_connector.budgets import questions_left
from pinot_connector.errors import GrisError, InvalidQuestion
from pinot_connector.liveness import is_liveness_check
from pinot_connector.questions import sql_question
from pinot_connector.sync_client import GatewayClient, PrivateClient

PROMPT = "gris> "
GOES_ON = " ...> "
COMMANDS = ("catalog", "explain", "help", "quit", "remaining")
HELP = """\
SELECT ..          shows the price of a question, and asks it if you say so
explain SELECT ..  says more of the price, and asks nothing
catalog [TABLE]    lists what may be asked
remaining          shows what is left of the budget
quit, or Ctrl-D    ends the session
A question without FROM goes on in the next line, until one that ends in ; or is empty.
"""
# The first line of a question that has more of them.
_BEGUN = re.compile(r"(?!.*\bfrom\b)(?:explain\s+)?select\b(?!\s*1\s*;?$)", re.IGNORECASE | re.DOTALL)


class ShellSession:
    """Reads lines and answers them until there are no more.

    Args:
        client: Answers questions; the caller closes it.
        as_json: Whether each answer is one line of JSON.
    """

    def __init__(self, client: PrivateClient | GatewayClient, *, as_json: bool) -> None:
        self._client = client
        self._as_json = as_json
        self._interactive = sys.stdin.isatty()

    def run(self) -> None:
        """Answer lines until `quit` or the end of the input.

        Raises:
            GrisError: The input is no terminal, and a line could not be answered.
        """
        if self._interactive:
            with suppress(ModuleNotFoundError):
                import readline  # noqa: F401 - lines are edited by it from then on
        for line in self._lines():
            try:
                self._answer(line)
            except GrisError as error:
                if not self._interactive:
                    raise
                print_failure(failure_of(error), as_json=self._as_json)
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                sys.stderr.write("no longer waited for; what was charged meanwhile stays charged\n")

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = self._whole(self._read(PROMPT).strip())
            except EOFError:
                return
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                # As in other shells: the line is dropped, the session stays.
                sys.stdout.write("\n")
                continue
            if line.casefold() == "quit":
                return
            if line:
                yield line

    def _whole(self, line: str) -> str:
        """Return a question with its further lines, where it has some and a person types them."""
        if not self._interactive or line.endswith(";") or _BEGUN.match(line) is None:
            return line
        lines = [line]
        while lines[-1] and not lines[-1].endswith(";"):
            lines.append(self._read(GOES_ON).strip())
        return " ".join(lines).strip()

    def _read(self, prompt: str) -> str:
        """Return the next line; somebody who types is prompted, but never amid JSON that a program reads."""
        if not self._interactive:
            return input()
        if self._as_json and not sys.stdout.isatty():
            sys.stderr.write(prompt)
            sys.stderr.flush()
            return input()
        return input(prompt)

    def _answer(self, line: str) -> None:
        word, rest = (*line.split(maxsplit=1), "")[:2]
        match word.casefold():
            case "help" if self._as_json:
                print_json({"help": HELP.splitlines()})
            case "help":
                sys.stdout.write(HELP)
            case "remaining":
                levels = self._client.remaining()
                print_levels(levels, blocks_of(levels, self._client), as_json=self._as_json)
            case "catalog":
                self._catalog(rest.strip())
            case "explain":
                print_explanation(self._client.explain(line), as_json=self._as_json)
            case _ if is_liveness_check(line):
                print_check(as_json=self._as_json)
            case "select":
                self._ask(line)
            case _:
                raise InvalidQuestion("sql", f"expected SELECT .., or one of {', '.join(COMMANDS)}")

    def _catalog(self, table: str) -> None:
        from gris_cli.catalog_tables import print_catalog

        print_catalog(self._client.catalog(table), as_json=self._as_json)

    def _ask(self, sql: str) -> None:
        question = sql_question(sql)
        if self._interactive and not self._confirmed(sql):
            return
        result = self._client.ask(question)
        levels = remaining_after(result.remaining, self._client)
        print_result(result, questions_left(levels, result.cost), as_json=self._as_json)

    def _confirmed(self, sql: str) -> bool:
        """Return whether the question may be asked, once its price has been seen."""
        explanation = self._client.explain(sql)
        share = "" if explanation.narrowest is None else f"; {format_share(explanation.narrowest)}"
        price = printable(f"at most {formats.cost(explanation.worst_case_cost)}{share}")
        (sys.stderr if self._as_json else sys.stdout).write(f"{price}\n")
        try:
            return self._read("ask? [y/N] ").strip().casefold() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            # Nothing has been asked, and the session stays.
            sys.stderr.write("\n")
            return False
