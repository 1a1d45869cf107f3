"""PrivOLAP: what counts as useful, whom traps catch, and a short run of the whole."""

from __future__ import annotations

import datetime
import json
import os
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from research.privolap import __main__ as command
from research.privolap import verdicts
from research.privolap.neighbours import distinguished
from research.privolap.questions import Answer, Budget, Data, Kind, Question, Session, System
from research.privolap.results import Results, Setting
from research.privolap.scoring import is_useful
from research.privolap.scripts import QUESTIONS, SCRIPTS
from research.privolap.systems import dpsqlplus, tumult
from research.privolap.systems.gris import Gris, planned
from research.privolap.systems.smartnoise import COMMAND, PYTHON, SmartNoise
from research.privolap.systems.suppressing import Suppressing
from research.privolap.systems.tumult import Tumult
from research.privolap.systems.worker import Worker
from research.privolap.traps import TRAPS, Trap

RESEARCH = Path(__file__).parents[2]
PAGE, FIGURE = RESEARCH / "docs/privolap.md", RESEARCH / "docs/privolap.svg"
DAYS = datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)
TRUE = {f"item {place}": 100.0 - place for place in range(20)}
TOP = {name: TRUE[name] for name in list(TRUE)[:10]}
IN_SHORT = {"NaN", "a repeat", "two at once"}
LONG = {"a member with 10^5 rows", "a retry after a crash"}
ABOUT_CHARGES = {"a repeat", "a retry after a crash", "two at once"}


def traps(long: set[str]) -> list[ParameterSet]:
    """Return all traps, of which some are left to long tests."""
    marks = {trap.name: [pytest.mark.long] if trap.name in long else [] for trap in TRAPS}
    return [pytest.param(trap, marks=marks[trap.name], id=trap.slug) for trap in TRAPS]


class Careless(System):
    """Gives another answer each time, and charges for none."""

    name = "careless"

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[Careless]:
        """Open nothing."""
        yield self

    def price(self, question: Question) -> float:
        """Half of the budget, in words."""
        return 0.5

    def left(self) -> float:
        """All of it, always."""
        return 1.0

    def ask(self, question: Question) -> Answer:
        """Return a number that has nothing to do with the data."""
        return {0: random.random()}


class Claiming(System):
    """Gives exact answers, and says how much of the budget is left after each: at first five budgets less."""

    name = "claiming"

    def __init__(self, left: tuple[float, ...] = (1.0, -4.0)) -> None:
        self.said = left

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[Claimed]:
        """Open what shows all."""
        with Suppressing(0).open(data, budget, state) as session:
            yield Claimed(session, self.said)


class Claimed:
    """What is said to be left."""

    def __init__(self, session: Session, said: tuple[float, ...]) -> None:
        self._session, self._said, self._answers = session, said, 0

    def price(self, question: Question) -> float:
        """A fortieth."""
        return 1 / QUESTIONS

    def left(self) -> float:
        """What is said, and in the end the same again and again."""
        return self._said[min(self._answers, len(self._said) - 1)]

    def ask(self, question: Question) -> Answer:
        """Show all."""
        self._answers += 1
        return self._session.ask(question)


@pytest.mark.parametrize(
    ("kind", "answer", "true", "useful"),
    [
        (Kind.TOP, TOP, TRUE, True),
        (Kind.TOP, {name: 1.09 * value for name, value in TOP.items()}, TRUE, True),
        (Kind.TOP, {name: 1.2 * value for name, value in TOP.items()}, TRUE, False),
        # One wrong name of ten is allowed, two are not, and no more names than were asked for.
        (Kind.TOP, {**dict(list(TOP.items())[:9]), "item 19": 81.0}, TRUE, True),
        (Kind.TOP, {**dict(list(TOP.items())[:8]), "item 18": 82.0, "item 19": 81.0}, TRUE, False),
        (Kind.TOP, TRUE, TRUE, False),
        (Kind.TOP, {}, TRUE, False),
        (Kind.MEMBERS, {0: 109.0}, {0: 100.0}, True),
        (Kind.MEMBERS, {0: 111.0}, {0: 100.0}, False),
        (Kind.MEMBERS, {}, {0: 100.0}, False),
        # What a series leaves out is off by all of it.
        (Kind.SERIES, {"2020-01": 10.0}, {"2020-01": 10.0, "2020-02": 10.0}, False),
    ],
)
def test_an_answer_is_useful_by_its_names_and_numbers(
    kind: Kind, answer: Answer, true: Answer, useful: bool
) -> None:
    """95 % of the names, and a tenth of the numbers on average."""
    assert is_useful(Question(kind, *DAYS, k=10), answer, true) is useful


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_has_forty_questions_of_which_none_comes_twice(script: str, tmp_path: Path) -> None:
    """A repeat would be free for some systems and not for others; that is a trap of its own."""
    make, questions = SCRIPTS[script]
    data = make(tmp_path)
    for run in range(20):
        asked = questions(data, random.Random(run))
        assert len(asked) == len(set(asked)) == QUESTIONS
    for weighted in (False, True):
        budget = Budget(1, 1e-6, tuple(asked))
        assert sum(budget.share(each, weighted=weighted) for each in asked) == pytest.approx(1)


@pytest.mark.parametrize("trap", traps(LONG))
def test_a_trap_catches_who_falls_into_it(trap: Trap, tmp_path: Path) -> None:
    """Exact numbers, and of traps about charges a system that charges nothing for answers that differ."""
    system = Careless() if trap.name in ABOUT_CHARGES else Suppressing(0)
    assert trap.verdict(system, tmp_path / "trap").startswith("caught")


@pytest.mark.parametrize("trap", traps(LONG))
def test_every_trap_catches_who_charges_more_than_there_is(trap: Trap, tmp_path: Path) -> None:
    """Exact answers for five budgets each would be worth what is charged."""
    caught = "caught: more is charged than there is: -4 of the budget is left"
    assert trap.verdict(Claiming(), tmp_path / "trap").startswith(
        caught[: 40 if trap.name == "two at once" else None]
    )


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((1.0, -1e-8), "more is charged than there is: -1e-08 of the budget is left"),
        ((1.5,), "1.5 of the budget is left, where 1 is all of it"),
        ((1.0, float("nan")), "nan of the budget is left, where 1 is all of it"),
        ((1.0, 0.5, 0.6), "0.6 of the budget is left, after 0.5"),
    ],
    ids=["below nothing", "above all", "no number", "rising"],
)
def test_what_is_left_has_to_be_possible(left: tuple[float, ...], said: str, tmp_path: Path) -> None:
    """After every answer, from all to nothing."""
    repeat = next(trap for trap in TRAPS if trap.name == "a repeat")
    assert repeat.verdict(Claiming(left), tmp_path / "trap") == f"caught: {said}"


def test_who_charges_more_than_there_is_has_no_score(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The command ends with why, and keeps nothing."""
    kept = tmp_path / "kept"
    arguments = ["--runs", "1", "--most", "2", "--scripts", "funnel", "--only", "scores", "--kept", str(kept)]
    with pytest.raises(SystemExit, match="1"):
        command.main([*arguments, "--systems", "k >= 50", "--system", f"{__name__}:Claiming"])
    assert "claiming has no score: more is charged than there is: -4 of" in capsys.readouterr().err
    assert [json.loads(line)["system"] for line in kept.read_text().splitlines()] == ["k >= 50"]


@pytest.fixture(scope="module")
def gris(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gris, Path]]:
    """Gris, and a folder that all traps share, so that services start once."""
    system = Gris()
    yield system, tmp_path_factory.mktemp("traps")
    system.close()


@pytest.mark.parametrize("trap", traps({trap.name for trap in TRAPS} - IN_SHORT))
def test_no_trap_catches_gris(trap: Trap, gris: tuple[Gris, Path]) -> None:
    """Fails for a Gris that keeps its promise once in far more than 10^6 runs."""
    system, folder = gris
    assert trap.verdict(system, folder / trap.slug) == "holds"


def test_tables_are_distinguished_only_by_more_than_was_paid() -> None:
    """Twelve of twelve answers of each table show an epsilon of a quarter at least, and not of a half."""
    low, high = [0.0] * 15, [1.0] * 15
    assert distinguished(low, high, 0.25) is not None
    assert distinguished(high, low, 0.25) is not None
    assert distinguished(low, high, 0.5) is None
    assert distinguished(low, low, 0.25) is None
    # Far from the other table's, and each time lower.
    assert distinguished([-1e301] * 15, [float(-place) for place in range(15)], 0.25) is not None


def test_a_plan_is_for_the_longest_lists_that_come_out_useful(tmp_path: Path) -> None:
    """Few units find no useful list of 50, however members are bounded, and many do."""
    make, _ = SCRIPTS["audience"]
    data, delta = make(tmp_path), Fraction("3.125e-9")

    def proposed(*lengths: int, units: int) -> str:
        return planned(data, frozenset(lengths), units, delta)

    assert proposed(10, 50, units=14) == proposed(10, units=14) != proposed(50, units=14)
    assert proposed(10, 50, units=118) == proposed(50, units=118) != proposed(10, units=118)


def test_gris_asks_for_large_sums_with_a_small_budget(tmp_path: Path) -> None:
    """Sums over rows, which nobody asks for, would have more noise than is drawn."""
    kept = tmp_path / "kept"
    arguments = ["--most", "1", "--runs", "1", "--epsilon", "3", "--only", "scores", "--kept", str(kept)]
    command.main([*arguments, "--scripts", "retail", "--systems", "Gris"])
    assert json.loads(kept.read_text())["epsilon"] == 3


def test_a_run_is_kept_and_measured_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of one script, of which two questions are asked; later there is a run more of k >= 50 alone."""
    arguments = ["--most", "2", "--scripts", "funnel", "--only", "scores", "--kept", str(tmp_path / "kept")]
    command.main([*arguments, "--runs", "1", "--systems", "Gris", "k >= 50"])
    found = capsys.readouterr().out.splitlines()
    assert found[-2:] == ["| Gris | 2 | 1 |", "| k >= 50 | 2 | 1 |"]
    kept = (tmp_path / "kept").read_text()
    command.main([*arguments, "--runs", "2", "--systems", "k >= 50"])
    assert capsys.readouterr().out.splitlines()[-1] == "| k >= 50 | 2.0 ± 0.0 | 2 |"
    last, before = (tmp_path / "kept").read_text().removeprefix(kept), kept.splitlines()[-1]
    assert json.loads(last) == {**json.loads(before), "run": 1}
    assert {"version", "measured"} < json.loads(before).keys()


@pytest.mark.parametrize("epsilon", [10, 3])
def test_the_page_shows_what_the_kept_scores_say(epsilon: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of its tables has a row for every system with scores, as the command prints it."""
    setting = Setting(epsilon, 1e-6, tuple(SCRIPTS), QUESTIONS)
    results = Results(RESEARCH / "privolap/scores.jsonl")
    measured = [
        each for each, _ in (*command.SYSTEMS, *command.SLOW) if results.of(each.name, "audience", setting)
    ]
    assert {"Gris", "OpenDP, tuned"} <= {each.name for each in measured}
    command.print_scores(results, measured, setting)
    assert capsys.readouterr().out in PAGE.read_text()


def test_the_page_shows_the_kept_verdicts_of_traps(capsys: pytest.CaptureFixture[str]) -> None:
    """Of every system, as the command prints them."""
    kept = RESEARCH / "privolap/traps.jsonl"
    command.main(["--all", "--runs", "0", "--only", "traps", "--kept-traps", str(kept)])
    table = capsys.readouterr().out
    assert f"\n{table}\n" in PAGE.read_text()
    # Every line has a cell: what is called otherwise by now would have none.
    assert len(kept.read_text().splitlines()) + table.count("| not asked ") == 13 * 13


def test_a_verdict_is_kept_and_a_trap_is_tried_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the system and the trap; what shows that a system is caught is said as it is found."""
    repeat, crash = (trap for trap in TRAPS if trap.name in ("a repeat", "a retry after a crash"))
    monkeypatch.setattr(verdicts, "TRAPS", (repeat,))
    common = ["--only", "traps", "--kept-traps", str(tmp_path / "kept"), "--system", f"{__name__}:Claiming"]
    systems = ["--systems", "k >= 50"]
    command.main([*common, *systems])
    out, err = capsys.readouterr()
    assert "claiming | a repeat | caught: more is charged than there is" in err
    assert out.splitlines()[-1] == "| a repeat | holds | caught |"
    monkeypatch.setattr(verdicts, "TRAPS", (repeat, crash))
    command.main([*common, *systems, "--runs", "0"])
    out, err = capsys.readouterr()
    assert not err
    assert out.splitlines()[-1] == "| a retry after a crash | not asked | not asked |"
    monkeypatch.setattr(verdicts, "TRAPS", (repeat,))
    command.main([*common, *systems])
    assert not capsys.readouterr().err
    lines = [json.loads(line) for line in (tmp_path / "kept").read_text().splitlines()]
    assert [(each["system"], each["verdict"]) for each in lines] == [
        ("k >= 50", "holds"),
        ("claiming", "caught"),
    ]
    assert all({"version", "measured"} < each.keys() for each in lines)


def test_the_picture_shows_what_the_kept_scores_say(tmp_path: Path) -> None:
    """By the words and numbers in it, for every system with scores, by the command that makes it."""
    kept, made = RESEARCH / "privolap/scores.jsonl", tmp_path / "made.svg"
    command.main(["--all", "--runs", "0", "--only", "scores", "--kept", str(kept), "--picture", str(made)])
    words, shown = (re.findall("<!-- (.*) -->", each.read_text()) for each in (made, FIGURE))
    assert words == shown
    assert "Tumult Analytics, tuned" in words
    # What has no score at all has no row.
    some = tmp_path / "scores.jsonl"
    lines = kept.read_text().splitlines(keepends=True)
    some.write_text("".join(line for line in lines if "Tumult Analytics, tuned" not in line))
    command.main(["--all", "--runs", "0", "--only", "scores", "--kept", str(some), "--picture", str(made)])
    assert "<!-- Tumult Analytics, tuned -->" not in made.read_text()


def test_a_system_without_its_interpreter_is_left_out_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that is there, of any kind, is measured beside it, and what is kept of both is shown."""
    systems = (SmartNoise(), tmp_path / "python"), (Suppressing(), "duckdb")
    monkeypatch.setattr(command, "SYSTEMS", systems)
    common = ["--only", "scores", "--most", "1", "--scripts", "funnel", "--kept", str(tmp_path / "kept")]
    command.main(["--runs", "1", *common])
    out, err = capsys.readouterr()
    assert err == f"SmartNoise SQL is left out, for {tmp_path / 'python'} is not installed\n"
    assert "| k >= 50 |" in out
    assert "SmartNoise" not in out
    command.main(["--runs", "0", *common])
    assert "| SmartNoise SQL |" in capsys.readouterr().out


def test_smartnoise_drops_rare_groups_and_an_error_ends_nothing() -> None:
    """A group of one member and an empty question, before one whose noise is less than 2 but once in 10^8 runs."""
    if not PYTHON.exists():
        pytest.skip("make -C research benchmark installs SmartNoise SQL")
    keys = ["often"] * 1000 + ["rare"]
    asked = {
        "rows": {"member": [f"m{place}" for place in range(1001)], "key": keys},
        "measure": "COUNT(DISTINCT member)",
        "bounds": (0, 1),
        "max_ids": 1,
        "censor_dims": True,
        "gaussian": False,
        "epsilon": 10.0,
        "delta": 1e-9,
        "by_key": True,
    }
    lines = "".join(json.dumps(each) + "\n" for each in ({}, asked))
    said = subprocess.run(COMMAND, input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    first, second = map(json.loads, said.splitlines())
    assert "KeyError" in first["error"]
    assert second["found"] == {"often": pytest.approx(1000, abs=2)}


def test_slow_systems_are_measured_where_all_are_or_where_they_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tumult Analytics takes hours."""
    monkeypatch.setattr(command, "SYSTEMS", ((Suppressing(), "duckdb"),))
    monkeypatch.setattr(command, "SLOW", ((Tumult(), "duckdb"),))
    common = ["--runs", "0", "--only", "scores", "--kept", str(tmp_path / "kept")]
    named = ["--systems", "Tumult Analytics"]
    for further, slow, quick in ([], False, True), (["--all"], True, True), (named, True, False):
        command.main([*common, *further])
        out = capsys.readouterr().out
        assert ("| Tumult Analytics |" in out, "| k >= 50 |" in out) == (slow, quick)


@pytest.mark.long
def test_tumult_finds_names_for_a_session_of_their_own_and_an_error_ends_nothing() -> None:
    """A name of one member stays hidden but once in 10^8 runs, and noise of a name that is shown is less than 20."""
    if not tumult.PYTHON.exists():
        pytest.skip("make -C research benchmark installs Tumult Analytics")
    asked = {
        "rows": {
            "member": [f"m{place}" for place in range(1001)],
            "key": ["often"] * 1000 + ["rare"],
        },
        "keys": None,
        "measure": "members",
        "groups": 1,
        "names": {"apart": True, "budget": {"epsilon": 1.0, "delta": 1e-9}, "groups": 1},
        "budget": {"rho": 0.5},
    }
    worker = Worker(tumult.COMMAND)
    try:
        assert "KeyError" in worker.say({})["error"]
        assert worker.say(asked)["found"] == {"often": pytest.approx(1000, abs=20)}
    finally:
        worker.close()


def test_dpsqlplus_hides_rare_groups_and_an_error_ends_nothing() -> None:
    """A group of one member is below a threshold of 100, and noise of another one is less than 20."""
    if not os.environ.get(dpsqlplus.VARIABLE):
        pytest.skip(f"{dpsqlplus.VARIABLE} names an interpreter that has DPSQL+")
    asked = {
        "rows": {
            "member": [f"m{place}" for place in range(1001)],
            "key": ["often"] * 1000 + ["rare"],
        },
        "measure": "COUNT(DISTINCT member)",
        "by_key": True,
        "account": dpsqlplus.INFINITE,
        "params": {"contribution_bound": 1, "sigmas": [1.0], "tau": 100.0, "sigma_for_thresholding": 1.0},
    }
    worker = Worker(dpsqlplus.COMMAND)
    try:
        assert "KeyError" in worker.say({})["error"]
        assert worker.say(asked)["found"] == {"often": pytest.approx(1000, abs=20)}
    finally:
        worker.close()
