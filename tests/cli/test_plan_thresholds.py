"""`gris plan thresholds`: whom it finds, against a slow count of every pair of questions, and what it says of Gris."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.mechanisms import Currency, Histogram, KnownLap
from gris_cli.__main__ import main
from gris_data.thresholds import singled_out
from gris_lab.simulation import Draws
from gris_lab.thresholds import attack
from tests.support.command_line import run_json, run_text

ROOT = Path(__file__).resolve().parents[2]
PURCHASES = ROOT / "examples" / "online_retail" / "purchases.parquet"
DELTA, SLACK = Fraction("1e-11"), Fraction("1e-9")
Row = tuple[int, ...]


def written(path: Path, rows: Sequence[tuple[int | None, ...]], names: str) -> Path:
    """Write rows of a member and columns that are called by one letter each."""
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
    return path


def differing(rows: Sequence[Row], width: int, k: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Ask both questions of every pair, exactly; yield those that differ by the rows of one member."""
    for size in range(width):
        for groups in itertools.combinations(range(1, width + 1), size):
            for without in set(range(1, width + 1)) - set(groups):
                for value in {tuple(row[each] for each in (*groups, without)) for row in rows}:
                    first = [row for row in rows if tuple(row[each] for each in groups) == value[:-1]]
                    second = [row for row in first if row[without] != value[-1]]
                    shown = all(len({row[0] for row in each}) >= k for each in (first, second))
                    gone = {row[0] for row in first if row not in second}
                    if shown and len(gone) == 1:
                        yield groups, without, gone.pop()


@pytest.mark.parametrize("seed", range(4))
def test_those_are_found_whom_two_allowed_questions_single_out(tmp_path: Path, seed: int) -> None:
    """As many pairs of questions and members as by asking all of them, for every threshold."""
    drawn = random.Random(seed)
    rows = [(drawn.randrange(25), *(drawn.randrange(size) for size in (3, 4, 9))) for _ in range(60)]
    path = written(tmp_path / "t.parquet", rows, "mabc")
    for k in (2, 5, 9):
        found = singled_out(path, "m", ["a", "b", "c"], k, [2, 5, 9])
        expected = list(differing(rows, 3, k))
        assert expected
        for pair in found.by_pair:
            groups, without = tuple("mabc".index(each) for each in pair.groups), "mabc".index(pair.without)
            own = [member for *asked, member in expected if asked == [groups, without]]
            assert (pair.cells, pair.members) == (len(own), len(set(own)))
        assert found.by_threshold[k] == len({member for *_, member in expected})
        assert found.members == len({row[0] for row in rows})


def test_who_makes_the_second_group_too_small_is_not_singled_out(tmp_path: Path) -> None:
    """Three in a group, of whom one has a day alone: without that day two are left, and of three the rule is broken."""
    rows = [(1, 0, 0), (2, 0, 0), (3, 0, 1)]
    path = written(tmp_path / "t.parquet", rows, "mgd")
    assert {2: 1, 3: 0} == singled_out(path, "m", ["g", "d"], 2, [3]).by_threshold
    # Who has rows on other days as well stays in the second group.
    path = written(tmp_path / "more.parquet", [*rows, (3, 0, 0)], "mgd")
    assert {2: 1, 3: 1} == singled_out(path, "m", ["g", "d"], 2, [3]).by_threshold


def test_rows_without_a_member_or_a_value_are_left_out(tmp_path: Path) -> None:
    """They are of nobody, and of no group."""
    path = written(
        tmp_path / "t.parquet", [(1, 0, 0), (2, 0, 0), (3, 0, 1), (None, 0, 1), (4, 0, None)], "mgd"
    )
    found = singled_out(path, "m", ["g", "d"], 2, [])
    assert (3, {2: 1}) == (found.members, found.by_threshold)


def test_a_table_without_members_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A share of nobody is no number."""
    path = written(tmp_path / "nobody.parquet", [(1, None), (None, 2)], "mg")
    assert 2 == main(["plan", "thresholds", "--data", str(path), "--member", "m", "--by", "g"])
    assert "nobody.parquet: expected rows with a value in each of m, g" in capsys.readouterr().err


@pytest.mark.slow
def test_a_real_table_and_its_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """96 % of a shop's customers, by product, country and day; the picture can be repeated."""
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"
    words = (
        "plan",
        "thresholds",
        "--data",
        PURCHASES,
        "--member",
        "member_id",
        "--by",
        "stock_code,country,day",
    )
    found = run_json(capsys, *words, "--out", first)
    shares = {row["k"]: row["share"] for row in found["thresholds"]}
    assert 0.960 == round(shares[50], 3)
    assert (4372, 50) == (found["all_members"], found["k"])
    best = found["pairs"][0]
    assert ("stock_code", "day", 4070) == (best["groups"], best["without"], best["members"])
    said = run_text(capsys, *words, "--out", again)
    assert (
        "two such answers single out 4,199 of 4,372 members (96.04 %); true counts, for the owner alone"
        in said
    )
    assert first.read_bytes() == again.read_bytes()
    assert len(first.read_bytes()) > 10_000


@pytest.mark.parametrize("epsilon_per", ["0.15", "2"])
def test_a_guess_is_right_as_often_as_two_answers_make_it(epsilon_per: str) -> None:
    """The difference of two totals that KnownLap draws, and a coin: five standard deviations, with a fixed seed."""
    draws, runs, right = Draws(4), 3000, 0
    mechanism = KnownLap(Currency(Fraction(epsilon_per), DELTA), delta_l0=1, tau=1)

    def total(count: int, *labels: str) -> int:
        drawn = mechanism.run(Histogram.from_element_order([count]), draws.noise(*labels)).noisy_counts
        assert drawn is not None
        return int(drawn[0])

    for run in range(runs):
        is_there = run % 2
        difference = total(50 + is_there, str(run), "with") - total(50, str(run), "without")
        right += (difference >= 1) == is_there
    found = attack(Fraction(epsilon_per), DELTA, SLACK)
    assert right / runs == pytest.approx(found.right, abs=5 * 0.5 / math.sqrt(runs))
    assert 0.5 < found.right < found.right_at_most < 1
    assert found.odds == pytest.approx(math.exp(2 * float(Fraction(epsilon_per))), rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"--by": "g,x"}, "--by: there is no column x; there are m, g, d"),
        ({"--by": "g,g"}, "--by: expected 1 to 4 different columns"),
        ({"--by": "g,m"}, "--by: expected 1 to 4 different columns, and not that of members"),
        ({"--member": "x"}, "--member: there is no column x"),
        ({"--data": "/nowhere.parquet"}, "--data: there is no file /nowhere.parquet"),
        ({"--out": "picture.pdf"}, "--out: expected a file named .png or .svg"),
        ({"--k": "1"}, "--k"),
        ({"--epsilon-per": "0"}, "epsilon_per"),
    ],
)
def test_a_flag_that_cannot_be_meant_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changed: dict[str, str], named: str
) -> None:
    """With what was expected, and no value of the data."""
    path = written(tmp_path / "t.parquet", [(1, 0, 0), (2, 0, 0), (3, 0, 1)], "mgd")
    flags = {"--data": str(path), "--member": "m", "--by": "g,d", **changed}
    assert main(["plan", "thresholds", *itertools.chain.from_iterable(flags.items())]) == 2
    assert named in " ".join(capsys.readouterr().err.split())
