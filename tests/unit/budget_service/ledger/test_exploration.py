"""Every interleaving of small worlds, to a depth; the campaign `exploration` goes on to their ends."""

from __future__ import annotations

import pytest

from tests.unit.budget_service.ledger.exploration.__main__ import EXPLORED, main
from tests.unit.budget_service.ledger.exploration.explorer import BrokenError, explored
from tests.unit.budget_service.ledger.exploration.mutants import MUTANTS, put_in
from tests.unit.budget_service.ledger.exploration.worlds import World


@pytest.mark.slow
@pytest.mark.parametrize("world", EXPLORED, ids=[each.name for each in EXPLORED])
def test_no_interleaving_breaks_a_promise(world: World) -> None:
    """Every state is checked; fewer of them would mean that acts are not possible any more."""
    *_, found = explored(world, 4)
    assert found.states > 150


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_rule_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shortest history shows it, by what it breaks."""
    world, problem = put_in(mutant, monkeypatch)
    with pytest.raises(BrokenError, match=problem):
        list(explored(next(each for each in EXPLORED if each.name == world), 5))


def test_the_command_says_how_a_promise_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And how much was explored where none is."""
    assert main(["--depth", "1", "--world", "shared"]) == 0
    assert capsys.readouterr().out.startswith("shared: 8 states, 7 edges, depth 1")
    put_in("a retry charges again", monkeypatch)
    assert main(["--depth", "1"]) == 1
    assert "is answered otherwise, after: " in capsys.readouterr().out
