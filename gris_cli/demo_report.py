"""What the demonstration says: to people as it goes on, to programs one JSON object at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gris_api.dp.v1 import question_pb2

from gris_cli.budget_formatting import format_shortfall
from gris_cli.failures import failure_of
from gris_cli.printing import print_guarantee, print_result
from gris_cli.terminal import head, print_json, say, show
from pinot_connector import formats
from pinot_connector.budgets import questions_left
from pinot_connector.errors import BudgetExhausted
from pinot_connector.guarantees import AccountGuarantee
from pinot_connector.results import PrivateResult

ANALYST = "demo/analyst"
SMALL_ANALYST = "demo/small"
DATA = (
    "Real data: readers' opinions on fact-checked articles, published by Cofacts under CC0. "
    "Counts below carry noise; no true count is ever shown."
)


@dataclass(frozen=True)
class DemoQuestion:
    """One question of the demonstration, and its description."""

    title: str
    question: question_pb2.Question


@dataclass(frozen=True)
class NoiseKey:
    """Where the noise key is, whether it was made just now, and whether it stays."""

    path: str
    made: bool
    kept: bool


class DemoReport:
    """Prints for people, or collects everything for one JSON object.

    Args:
        as_json: Whether programs read it.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._facts: dict[str, Any] = {"questions": []}

    def begins(self, key: NoiseKey) -> None:
        """The services are about to start with this key."""
        self._facts |= {"data": DATA, "noise_key": asdict(key)}
        if self._as_json:
            return
        say("data", DATA)
        made = "a new one was made in" if key.made else "the one that is kept in"
        kept = "" if key.kept else "; it is removed at the end, so the next run has other noise"
        say("noise key", f"{made} {key.path}{kept}")
        say("account", ANALYST)

    def answered(self, number: int, question: DemoQuestion, result: PrivateResult) -> None:
        """A question was answered and paid for."""
        if self._as_json:
            found = {"number": number, "title": question.title, "result": result.to_dict()}
            self._facts["questions"].append(found)
            return
        head(f"{number}. {question.title}")
        print_result(result, questions_left(result.remaining, result.cost), as_json=False)

    def promised(self, guarantee: AccountGuarantee) -> None:
        """This is the guarantee for everything that the account is shown."""
        self._facts["guarantee"] = guarantee.to_dict()
        if not self._as_json:
            print_guarantee(guarantee, as_json=False)

    def repeated(self, result: PrivateResult, *, identical: bool) -> None:
        """The first question was asked again."""
        self._facts["repeated"] = {"identical": identical, "result": result.to_dict()}
        if self._as_json:
            return
        head("Question 1 again")
        answer = "the identical answer" if identical else "ANOTHER ANSWER, which must not happen"
        say("answer", f"{answer}, release {result.release_id[:16]}")
        say("charged", formats.cost(result.charged))

    def refused(self, answered: int, refusal: BudgetExhausted | None) -> None:
        """The small account got this many answers and then was refused; None: it never was."""
        failure = None if refusal is None else failure_of(refusal).to_dict()
        self._facts["small_account"] = {"account": SMALL_ANALYST, "answered": answered, "refusal": failure}
        if self._as_json:
            return
        head(f"{SMALL_ANALYST} asks until its budget refuses")
        say("answered", str(answered))
        if refusal is None:
            say("refused", "never; the budget was larger than this demonstration")
            return
        for shortfall in refusal.shortfalls:
            say("refused", format_shortfall(shortfall))

    def compared(self, question: DemoQuestion, results: Sequence[PrivateResult]) -> None:
        """One question was answered under two policies: by UnkGumb, and of bounded contributions."""
        shown = [result.to_dict() for result in results]
        self._facts["compared"] = {"title": question.title, "results": shown}
        if self._as_json:
            return
        head(question.title)
        for result in results:
            found = f"{len(result.rows)} found for {formats.cost(result.cost)}"
            bounded = [each.text for each in result.statements if each.code == "counts.bounded"]
            say(result.mechanism.value, ". ".join((found, *bounded)))

    def ends(self) -> None:
        """Everything was stopped."""
        if self._as_json:
            print_json(self._facts)
            return
        show()
        say("", "Both services were stopped.")
