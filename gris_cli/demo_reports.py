"""The demonstration as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gris_cli.budget_formatting import format_shortfall
from gris_cli.demo_script import ANALYST, SMALL_ANALYST, DemoQuestion, NoiseKey
from gris_cli.failures import failure_of
from gris_cli.printing import print_guarantee, print_result
from gris_cli.terminal import head, print_json, say, show
from pinot_connector import formats
from pinot_connector.budgets import questions_left
from pinot_connector.errors import BudgetExhausted
from pinot_connector.guarantees import AccountGuarantee
from pinot_connector.results import PrivateResult

DATA = (
    "Real data: readers' opinions on fact-checked articles, published by Cofacts under CC0. "
    "Counts below carry noise; no true count is ever shown."
)


class TextReport:
    """Prints for people, as the demonstration goes on."""

    def begins(self, key: NoiseKey) -> None:
        """Show which data and which key are used."""
        say("data", DATA)
        made = "a new one was made in" if key.made else "the one that is kept in"
        kept = "" if key.kept else "; it is removed at the end, so the next run has other noise"
        say("noise key", f"{made} {key.path}{kept}")
        say("account", ANALYST)

    def answered(self, number: int, question: DemoQuestion, result: PrivateResult) -> None:
        """Show a result."""
        head(f"{number}. {question.title}")
        print_result(result, questions_left(result.remaining, result.cost), as_json=False)

    def promised(self, guarantee: AccountGuarantee) -> None:
        """Show the guarantee for everything that the account is shown."""
        print_guarantee(guarantee, as_json=False)

    def repeated(self, result: PrivateResult, *, identical: bool) -> None:
        """Show that the same answer was free."""
        head("Question 1 again")
        answer = "the identical answer" if identical else "ANOTHER ANSWER, which must not happen"
        say("answer", f"{answer}, release {result.release_id[:16]}")
        say("charged", formats.cost(result.charged))

    def refused(self, answered: int, refusal: BudgetExhausted | None) -> None:
        """Show the refusal."""
        head(f"{SMALL_ANALYST} asks until its budget refuses")
        say("answered", str(answered))
        if refusal is None:
            say("refused", "never; the budget was larger than this demonstration")
            return
        for shortfall in refusal.shortfalls:
            say("refused", format_shortfall(shortfall))

    def compared(self, question: DemoQuestion, results: Sequence[PrivateResult]) -> None:
        """Show how many elements each mechanism found, and what for."""
        head(f"{question.title}")
        for result in results:
            found = f"{len(result.rows)} found for {formats.cost(result.cost)}"
            bounded = [each.text for each in result.statements if each.code == "counts.bounded"]
            say(result.mechanism.value, ". ".join((found, *bounded)))

    def ends(self) -> None:
        """Say that nothing is left running."""
        show()
        say("", "Both services were stopped.")


class JsonReport:
    """Collects everything and prints one JSON object at the end."""

    def __init__(self) -> None:
        self._report: dict[str, Any] = {"questions": []}

    def begins(self, key: NoiseKey) -> None:
        """Record data and key."""
        self._report["data"] = DATA
        self._report["noise_key"] = {"path": str(key.path), "made": key.made, "kept": key.kept}

    def answered(self, number: int, question: DemoQuestion, result: PrivateResult) -> None:
        """Record a result."""
        self._report["questions"].append(
            {"number": number, "title": question.title, "result": result.to_dict()}
        )

    def promised(self, guarantee: AccountGuarantee) -> None:
        """Record the guarantee for everything that the account is shown."""
        self._report["guarantee"] = guarantee.to_dict()

    def repeated(self, result: PrivateResult, *, identical: bool) -> None:
        """Record the repeated answer."""
        self._report["repeated"] = {"identical": identical, "result": result.to_dict()}

    def refused(self, answered: int, refusal: BudgetExhausted | None) -> None:
        """Record the refusal."""
        failure = None if refusal is None else failure_of(refusal).to_dict()
        self._report["small_account"] = {"account": SMALL_ANALYST, "answered": answered, "refusal": failure}

    def compared(self, question: DemoQuestion, results: Sequence[PrivateResult]) -> None:
        """Record both results."""
        shown = [result.to_dict() for result in results]
        self._report["compared"] = {"title": question.title, "results": shown}

    def ends(self) -> None:
        """Print everything that was recorded."""
        print_json(self._report)
