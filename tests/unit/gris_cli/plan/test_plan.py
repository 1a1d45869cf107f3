"""`gris plan`: what is said of wrong flags, and the commands of the guide."""

from __future__ import annotations

import shlex
import threading
from fractions import Fraction

import pytest

from gris_cli.__main__ import main
from gris_cli.bound.query_progress import query_progress
from gris_cli.data.sheets import percent, plainly, upwards
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("guarantee", "--epsilon-per", "0"), "epsilon_per"),
        (("guarantee", "--epsilon-per", "x"), "x is no number"),
        (("guarantee", "--calls", "-1"), "calls"),
        (("guarantee", "--domain", "1"), "RHO:DELTA"),
        (("guarantee", "--policy", "/nowhere.yaml"), "No such file"),
        (("guarantee", "--policy", __file__), "--policy"),
        (
            ("guarantee", "--policy", str(ROOT / "examples/policy.yaml"), "--delta", "1e-9"),
            "cannot be given with it",
        ),
        (("guarantee", "--domain", "1:2"), "delta"),
        (("solve", "--epsilon", "1", "--delta", "2"), "delta"),
        (("solve", "--epsilon", "1", "--delta", "1e-9", "--call-delta", "1e-10"), "--slack"),
        (("solve", "--epsilon", "1"), "--delta"),
        (("solve", "--epsilon", "1", "--delta", "1e-9", "--epsilon-per", "11"), "epsilon_per must be"),
        (("attacks", "--answers", "0"), "answers"),
    ],
)
def test_wrong_flags_are_named(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], named: str
) -> None:
    """Exit code 2 and a message that says which flag, before anything slow."""
    assert main(["plan", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert named in printed.err


def test_numbers_for_people() -> None:
    """Guarantees go up to the next hundredth, and stay where they are one."""
    assert ("33.79", "4.80", "450.00") == (upwards(33.7801), upwards(Fraction("4.8")), upwards(450.0))
    assert ("11.55 %", "", "yes", "0.15") == (
        percent(0.11547),
        plainly(None),
        plainly(True),
        plainly(Fraction("0.15")),
    )


def test_what_shows_no_progress_leaves_nothing_running() -> None:
    """Where standard error is no terminal, nobody refreshes a bar, least of all when the work is over."""
    before = set(threading.enumerate())
    with query_progress():
        assert set(threading.enumerate()) == before
    assert set(threading.enumerate()) == before


def commands_of_the_guide() -> list[list[str]]:
    """Return the commands that docs/choosing-parameters.md tells to run, as words."""
    guide = (ROOT / "docs" / "choosing-parameters.md").read_text()
    blocks = guide.split("```sh\n")[1:]
    return [shlex.split(line) for block in blocks for line in block.split("```")[0].splitlines()]


@pytest.mark.usefixtures("examples_at_hand")
@pytest.mark.parametrize("command", commands_of_the_guide(), ids=" ".join)
def test_the_guides_commands_run(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As they are written."""
    assert command[:2] == ["gris", "plan"]
    assert main(command[1:]) == 0
    assert capsys.readouterr().out
