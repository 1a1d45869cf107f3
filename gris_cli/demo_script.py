"""The demonstration: what is asked, in which order, for whom."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gris_api.dp.v1 import question_pb2

from gris_cli.demo_report import ANALYST, SMALL_ANALYST, DemoQuestion, DemoReport, NoiseKey
from gris_cli.examples import COFACTS, Examples
from pinot_connector.embedded import KEY_FILE, EmbeddedServices
from pinot_connector.engines.base import Engine
from pinot_connector.errors import BudgetExhausted
from pinot_connector.questions import sql_question, structured_question
from pinot_connector.results import PrivateResult
from pinot_connector.sync_client import PrivateClient

MONTHS_TO_TRY = 12
PINOT = "pinot"

_SQL = f"""SELECT article_id, COUNT(DISTINCT member_id) FROM {COFACTS}
WHERE score = 1 AND day >= '2019-01-01' AND day < '2019-04-01'
GROUP BY article_id ORDER BY 2 DESC LIMIT 10"""  # noqa: S608 - this is the question, and no engine ever sees it


DEMO_QUESTIONS = (
    DemoQuestion(
        "The ten articles that most members gave an opinion on",
        structured_question(COFACTS, "article_id", k=10),
    ),
    DemoQuestion(
        "Members by the month of their first opinion", structured_question(COFACTS, "cohort", k=None)
    ),
    DemoQuestion("The two opinions that most members have given", structured_question(COFACTS, "score", k=2)),
    DemoQuestion("Members by the program they used", structured_question(COFACTS, "app", k=None)),
    DemoQuestion("As SQL: the ten most useful answers, January to March 2019", sql_question(_SQL)),
)


COMPARED_K = 50
COMPARED = DemoQuestion(
    "The fifty articles that most members gave an opinion on, without and with bounded contributions",
    structured_question(COFACTS, "article_id", k=COMPARED_K),
)


class DemoScript:
    """Runs the demonstration on one engine, and both services with it."""

    def __init__(self, examples: Examples, engine: Engine, report: DemoReport) -> None:
        self._examples = examples
        self._engine = engine
        self._report = report

    def run(self, directory: Path | None) -> bool:
        """Run the demonstration, and return whether the repeated answer was identical.

        Args:
            directory: Where noise key and ledger are kept for the next time; None for temporary ones.

        Raises:
            GrisError: A service or the engine is not available, or an answer cannot be had.
        """
        with _kept_or_temporary(directory) as folder:
            key = folder / KEY_FILE
            self._report.begins(NoiseKey(str(key), made=not key.exists(), kept=directory is not None))
            with EmbeddedServices(
                policy=self._examples.policy,
                budget_config=self._examples.budget,
                directory=folder,
            ) as services:
                with self._client(services, ANALYST) as client:
                    identical = self._ask_all(client)
                    # Pinot cannot bound members in a query, and the example is no prepared copy.
                    compared = None if self._engine.dialect == PINOT else client.ask(COMPARED.question)
                with self._client(services, SMALL_ANALYST) as client:
                    self._ask_until_refused(client)
            if compared is not None:
                self._report.compared(COMPARED, [compared, self._ask_bounded(folder / "bounded")])
        self._report.ends()
        return identical

    def _ask_bounded(self, folder: Path) -> PrivateResult:
        """Ask under the policy that bounds contributions; it has a currency, and so a ledger, of its own."""
        policy, budget = self._examples.bounded_policy, self._examples.budget
        with (
            EmbeddedServices(policy=policy, budget_config=budget, directory=folder) as services,
            self._client(services, ANALYST) as client,
        ):
            return client.ask(COMPARED.question)

    def _client(self, services: EmbeddedServices, account: str) -> PrivateClient:
        return PrivateClient(
            dp=services.dp_address, budget=services.budget_address, account=account, engine=self._engine
        )

    def _ask_all(self, client: PrivateClient) -> bool:
        results = []
        for number, question in enumerate(DEMO_QUESTIONS, start=1):
            results.append(client.ask(question.question))
            self._report.answered(number, question, results[-1])
            if number == 1:
                self._report.promised(client.guarantee())
        again = client.ask(DEMO_QUESTIONS[0].question)
        same = (again.rows, again.release_id) == (results[0].rows, results[0].release_id)
        self._report.repeated(again, identical=same)
        return same

    def _ask_until_refused(self, client: PrivateClient) -> None:
        refusal = None
        answered = 0
        for question in _monthly_questions():
            try:
                client.ask(question)
            except BudgetExhausted as error:
                refusal = error
                break
            answered += 1
        self._report.refused(answered, refusal)


def _monthly_questions() -> Iterator[question_pb2.Question]:
    """Yield a different question each time, because a question that was paid for is free."""
    for month in range(1, MONTHS_TO_TRY):
        days = datetime.date(2018, month, 1), datetime.date(2018, month + 1, 1)
        yield structured_question(COFACTS, "article_id", k=10, time_range=days)


@contextmanager
def _kept_or_temporary(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="gris-demo-") as folder:
        yield Path(folder)
