"""The programs of examples/rpc."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from pinot_connector.embedded import EmbeddedServices
from tests.support.paths import ROOT
from tests.support.rings import needs

EXAMPLES = ROOT / "examples" / "rpc"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


@pytest.fixture(scope="module")
@needs("process")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Both services with the demo's policy and budgets."""
    with EmbeddedServices(
        policy=ROOT / "examples" / "policy.yaml",
        budget_config=ROOT / "examples" / "budget.yaml",
        directory=tmp_path_factory.mktemp("rpc"),
    ) as embedded:
        yield {"GRIS_DP": embedded.dp_address, "GRIS_BUDGET": embedded.budget_address}


def test_there_is_a_program_for_each_step_of_a_question() -> None:
    """From the price to the charge."""
    assert {each.stem for each in PROGRAMS} == {
        *("check_budget", "reserve_budget", "update_budget", "get_budget", "translate_query", "add_noise")
    }


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.stem)
def test_a_program_runs(
    program: Path,
    addresses: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A reader who copies it gets an answer from the services that the demo starts."""
    for name, address in addresses.items():
        monkeypatch.setenv(name, address)
    called = runpy.run_path(str(program))
    assert capsys.readouterr().out.strip()
    assert hasattr(called["service"], program.stem.title().replace("_", ""))
