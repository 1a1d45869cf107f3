"""`gris plan`: pictures, progress, what is said of wrong flags, and the commands of the guide."""

from __future__ import annotations

import itertools
import shlex
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples import simulated_month
from gris_cli.__main__ import main
from gris_cli.bound.query_progress import query_progress
from gris_data.sheets import percent, plainly, upwards
from gris_lab.progress import progress
from tests.support.command_line import run_plan
from tests.support.examples import long_but, long_rows_but

ROOT = Path(__file__).resolve().parents[2]
FEEDBACK = ROOT / "examples" / "cofacts" / "feedback.parquet"
ARTICLES = ("--data", str(FEEDBACK), "--by", "article_id", "--member", "member_id")
EPSILONS = ("--epsilon-per", "0.1", "--epsilon-per", "0.2")
COHORTS = ("--data", str(FEEDBACK), "--by", "cohort", "--member", "member_id", "--delta-l0", "1")
CHARGES = """account,day,information,calls
a,0,21,1
a,0,21,1
a,2,21,0
b,1,100,1
c,2,1,0
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "arguments"),
    # Each picture once, and each format; another format of a picture is written by the same lines.
    long_rows_but(
        lambda suffix, arguments: (suffix == ".png") == (arguments[0] == "compose"),
        itertools.product(
            (".png", ".svg"),
            (
                ("compose", "--count", "30"),
                ("curve", *ARTICLES, "--trials", "2", "--d-bar", "60", "--seed", "1"),
                ("found", *COHORTS, "--trials", "2", "--seed", "1", *EPSILONS),
            ),
        ),
    ),
)
def test_pictures_are_drawn_and_can_be_repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], suffix: str
) -> None:
    """The same numbers give the same file, byte for byte; an SVG has the axes' words in it."""
    first, again = tmp_path / f"first{suffix}", tmp_path / f"again{suffix}"
    for path in (first, again):
        run_plan(capsys, *arguments, "--out", str(path))
    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes().startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert len(first.read_bytes()) > 10_000


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
        (("table", "--epsilon-per", "0"), "epsilon_per must be"),
        (("solve", "--epsilon", "1", "--delta", "1e-9", "--epsilon-per", "11"), "epsilon_per must be"),
        (("table", "--information", "0"), "information"),
        (("table", "--information", "1000000"), "information must be smaller"),
        (("table", "--information", "1", "--directory", "/proc/nowhere"), "directory must be one"),
        (("table", "--policy", str(ROOT / "examples/policy.yaml"), "--epsilon-per", "1"), "cannot be given"),
        (("attacks", "--answers", "0"), "answers"),
        (("compose", "--out", "figure.gif"), "--out"),
        (("compose", "--count", "0"), "--count"),
        (("curve",), "--counts"),
        (("curve", "--data", str(FEEDBACK)), "--by"),
        (("curve", "--data", str(FEEDBACK), "--by", "nothing", "--member", "member_id"), "--by"),
        (("curve", *ARTICLES, "--d-bar", "10"), "d_bar"),
        (("curve", *ARTICLES, "--counts", __file__), "--counts"),
        (("curve", "--counts", __file__), "one whole count"),
        (("found", "--out", "figure.png"), "--out"),
        (("compose", *(("--epsilon-per", "0.1") * 7), "--out", "figure.png"), "six"),
        (("curve", *ARTICLES, *(("--d-bar", "60") * 7), "--out", "figure.png"), "six"),
        (("found", "--delta-l0", "0"), "delta_l0"),
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


def test_a_picture_is_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its folder is looked for first: a million runs would take hours."""
    counts = tmp_path / "counts"
    counts.write_text("5\n")
    out = tmp_path / "nowhere" / "curve.svg"
    flags = ("--counts", str(counts), "--trials", "1000000", "--out", str(out))
    assert main(["plan", "curve", *flags]) == 2
    assert f"--out: there is no folder {out.parent}" in capsys.readouterr().err


def test_a_long_simulation_says_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, after the first second, on standard error, and only if it is more than ten."""
    seconds = itertools.count(step=0.5)
    for total, said in ((100, "counting takes about 50 seconds\n"), (10, "")):
        with progress("counting", total, lambda: next(seconds)) as advance:
            for _ in range(total):
                advance()
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("shown", [partial(progress, "counting", 3), query_progress], ids=["plan", "bound"])
def test_what_shows_no_progress_leaves_nothing_running(
    shown: Callable[[], AbstractContextManager[object]],
) -> None:
    """Where standard error is no terminal, nobody refreshes a bar, least of all when the work is over."""
    before = set(threading.enumerate())
    with shown():
        assert set(threading.enumerate()) == before
    assert set(threading.enumerate()) == before


def commands_of_the_guide() -> list[list[str]]:
    """Return the commands that docs/choosing-parameters.md tells to run, as words."""
    guide = (ROOT / "docs" / "choosing-parameters.md").read_text()
    blocks = guide.split("```sh\n")[1:]
    return [shlex.split(line) for block in blocks for line in block.split("```")[0].splitlines()]


def takes_minutes(words: list[str]) -> bool:
    """Return whether a command works out an adaptive bound of thousands of units, some for a search."""
    return "500" in words or has_a_bound(words)


def has_a_bound(words: list[str]) -> bool:
    """Return whether a command tells the adaptive bound of a budget, which --quick leaves out."""
    return words[2] in ("guarantee", "deployments", "solve")


def tried() -> list[Any]:
    """Return the guide's commands as they are written, and with --quick those that would work out such a bound."""
    quick = [[*words, "--quick"] for words in commands_of_the_guide() if has_a_bound(words)]
    return [*long_but(lambda words: not takes_minutes(words), commands_of_the_guide()), *quick]


@pytest.mark.slow
@pytest.mark.parametrize("command", tried(), ids=" ".join)
def test_the_guides_commands_run(
    command: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are written, but for the number of runs, and with files in a directory of their own."""
    monkeypatch.chdir(ROOT)
    words = [
        str(tmp_path / Path(word).name) if word.endswith((".svg", ".png", ".csv")) else word
        for word in command
    ]
    if words[0] == "python":
        simulated_month.main(["--analysts", "2", words[-1]])
        return
    charges = [word for word in words if word.endswith(".csv")]
    for each in charges:
        Path(each).write_text(CHARGES)
    runs = ["--trials", "2"] if "--seed" in words else []
    assert words[:2] == ["gris", "plan"]
    assert main([*words[1:], *runs]) == 0
    assert capsys.readouterr().out
    pictures = [word for word in words if word.endswith((".svg", ".png"))]
    assert all(Path(each).stat().st_size > 10_000 for each in pictures)
    assert {Path(each).name for each in pictures} <= {
        each.name for each in (ROOT / "docs" / "figures").iterdir()
    }
