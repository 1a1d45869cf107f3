"""The programs of docs/applications.md run one after the other, as a reader would type them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pinot_connector import errors
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import BudgetExhausted, ErrorCode, GrisError, Shortfall
from tests.support.pages import DOCS, blocks, quoted, rows, section
from tests.support.paths import ROOT

PAGE = "applications.md"
EXAMPLES = ROOT / "examples"


def performed(program: str, namespace: dict[str, Any]) -> None:
    """Run a program of the page."""
    exec(compile(program, PAGE, "exec"), namespace)  # noqa: S102 - our own page


@pytest.mark.usefixtures("starts_processes", "examples_at_hand")
def test_the_programs_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first answer, by asking, asyncio, budgets and errors, to a test of an application."""
    gateway = blocks(section(PAGE, "## Through the gateway"), "python")
    programs = [each for each in blocks((DOCS / PAGE).read_text(), "python") if each not in gateway]
    namespace: dict[str, Any] = {}
    with EmbeddedServices(
        policy=EXAMPLES / "policy.yaml", budget_config=EXAMPLES / "budget.yaml", directory=tmp_path / "served"
    ) as services:
        for program in programs:
            here = program.replace("localhost:50051", services.dp_address)
            here = here.replace("localhost:50052", services.budget_address)
            performed(here.replace('".gris"', repr(str(tmp_path / "embedded"))), namespace)
        namespace["client"].close()
        namespace["engine"].close()
    printed = capsys.readouterr().out
    assert "charged 11 information, 1 calls" in printed
    assert "costs at most 21 of 3000 information of demo/ana" in printed
    assert "ends first: information" in printed
    assert "Mechanism.UNK_LAP" in printed
    assert "refused: information" in printed
    assert {None} == {row.noisy_count for row in namespace["order"].rows}


class Exhausted:
    """A client whose budget is exhausted, with one shortfall for each time of a refresh."""

    def __init__(self, *times: datetime | None) -> None:
        self._shortfalls = tuple(Shortfall(("demo",), "calls", 1, 0, each) for each in times)

    def sql(self, _: str) -> None:
        """Refuse a question."""
        raise BudgetExhausted(self._shortfalls)


SOON, LATER = datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("client", "answer"),
    [
        (Exhausted(SOON, LATER, SOON), f"wait until {LATER}"),
        (Exhausted(SOON, None), "a budget that is never refreshed is spent"),
        (Exhausted(), "the budget is spent"),
    ],
)
def test_the_program_says_when_an_exhausted_budget_is_refreshed(client: Exhausted, answer: str) -> None:
    """The latest refresh counts; there may be none, and the details may be missing."""
    (program,) = blocks(section(PAGE, "## Errors"), "python")
    definition = program.partition("\n\n\nprint(")[0]
    namespace: dict[str, Any] = {"client": client}
    performed(definition, namespace)
    assert answer == namespace["ask"]("SELECT 1")


def test_every_error_is_explained() -> None:
    """By its name, but for those that only stand above others; and nothing else is."""
    kinds = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, GrisError)}
    above = {errors.GrisError, errors.ServiceError, errors.EngineError}
    listed = {
        name: cells[2] for cells in rows(section(PAGE, "## Errors"), "error") for name in quoted(cells[0])
    }
    assert {each.__name__ for each in kinds - above} == listed.keys()
    for kind in kinds - above:
        unavailable = kind.code is ErrorCode.UNAVAILABLE
        assert unavailable == listed[kind.__name__].startswith(("yes", "once", "later")), kind
