"""`gris plan`: the numbers of each command, its pictures, and what is said of wrong flags."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.accounting.epsilon_table import table_from
from dp_service.mechanisms import Currency, Histogram, UnkGumb
from examples import simulated_month
from gris_cli.__main__ import main
from gris_cli.bound.query_progress import query_progress
from gris_lab.histograms import NamedHistogram
from gris_lab.progress import progress
from gris_lab.sheets import percent, plainly, upwards
from gris_lab.simulation import Draws, curve
from tests.support.examples import long_but, long_rows_but
from tests.support.publishing import domain_file, policy_of

ROOT = Path(__file__).resolve().parents[2]
FEEDBACK = ROOT / "examples" / "cofacts" / "feedback.parquet"
ARTICLES = ("--data", str(FEEDBACK), "--by", "article_id", "--member", "member_id")
EPSILONS = ("--epsilon-per", "0.1", "--epsilon-per", "0.2")
COHORTS = ("--data", str(FEEDBACK), "--by", "cohort", "--member", "member_id", "--delta-l0", "1")


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Runs a command with --json and returns the object it prints, which must be all that it prints there."""
    assert main(["plan", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert all(" takes about " in line for line in printed.err.splitlines())
    return json.loads(printed.out)


def test_the_guarantee_of_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    """Each bound's epsilon at delta 7e-9, and which is the best."""
    rows = reported(capsys, "guarantee", "--quick")["guarantees"]
    assert {"basic": 450, "dong_durfee_rogers": 34.88, "durfee_rogers": 60.13, "zcdp": 33.78} == {
        row["bound"]: round(row["epsilon"], 2) for row in rows
    }
    assert ["zcdp"] == [row["bound"] for row in rows if row["best"]]
    assert {7e-9} == {round(row["delta"], 20) for row in rows}


@pytest.mark.long
@pytest.mark.slow
def test_the_guarantee_of_the_defaults_is_the_adaptive_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """32.45, after its table has been made; the text says that no bound is below 32.43."""
    rows = reported(capsys, "guarantee")["guarantees"]
    assert ["adaptive"] == [row["bound"] for row in rows if row["best"]]
    assert 32.45 == round(rows[-1]["epsilon"], 2)
    assert main(["plan", "guarantee", "--delta-once"]) == 0
    printed = capsys.readouterr().out
    assert "(32.45, 4e-09)-DP" in printed
    assert "some mechanisms need 32.43" in printed


def kept_tables() -> list[Path]:
    """Returns the tables in the cache of these tests."""
    return sorted((Path(os.environ["XDG_CACHE_HOME"]) / "gris").glob("*"))


@pytest.mark.slow
def test_the_table_of_a_currency_is_made_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Until then --quick leaves the bound out; a table with fewer units is extended, one with more is read."""
    flags = ("guarantee", "--epsilon-per", "0.3", "--information")
    assert "zcdp" == reported(capsys, *flags, "40", "--quick")["guarantees"][-1]["bound"]
    made = reported(capsys, *flags, "40")["guarantees"][-1]
    (path,) = [path for path in kept_tables() if "3-10" in path.name]
    first = path.read_bytes()
    assert made == reported(capsys, *flags, "40", "--quick")["guarantees"][-1]
    assert "adaptive" == made["bound"]
    assert reported(capsys, *flags, "30")["guarantees"][-1]["epsilon"] < made["epsilon"]
    assert path.read_bytes() == first
    reported(capsys, *flags, "50")
    assert path.read_bytes() != first
    # What is damaged is made again.
    path.write_bytes(first[:-20])
    assert made == reported(capsys, *flags, "40")["guarantees"][-1]
    assert path.read_bytes() == first


def test_a_table_is_made_for_a_service(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In the folder that dp_service looks in, for the currency of its policy; who reads it may be somebody else."""
    header = "epsilon_per: 0.3\ndelta: 1e-10\n"
    policy = policy_of(tmp_path, domain_file("one", "5", "1e-9"), header=header)
    folder = tmp_path / "tables"
    flags = ("--policy", str(policy), "--information", "20", "--directory", str(folder))
    (row,) = reported(capsys, "table", *flags)["table"]
    path = Path(row["file"])
    assert (0.3, 20, folder) == (row["epsilon_per"], row["information"], path.parent)
    table = table_from(path.read_bytes())
    assert (Fraction("0.3"), 20) == (table.epsilon_per, table.units)
    assert row["epsilon"] == table.epsilon(20, Fraction("1e-9"))
    assert 0o644 == path.stat().st_mode & 0o777
    assert [path] == list(folder.iterdir())


def test_a_cache_that_cannot_be_written_costs_time_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The number is the same."""
    (tmp_path / "gris").write_text("no directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = reported(capsys, "guarantee", "--epsilon-per", "0.3", "--information", "5")["guarantees"]
    assert "adaptive" == rows[-1]["bound"]


def test_a_table_that_would_take_hours_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    """The other bounds are there."""
    rows = reported(capsys, "guarantee", "--information", "1000000")["guarantees"]
    assert ["zcdp"] == [row["bound"] for row in rows if row["best"]]
    assert "adaptive" not in {row["bound"] for row in rows}


@pytest.mark.parametrize("epsilon_per", ["1e-5", "1e-12"])
@pytest.mark.parametrize("quick", [(), ("--quick",)])
def test_a_table_with_too_many_points_is_not_begun(
    capsys: pytest.CaptureFixture[str], epsilon_per: str, quick: tuple[str, ...]
) -> None:
    """Its first row alone would take gigabytes; the other bounds are there."""
    flags = ("--epsilon-per", epsilon_per, "--information", "10", *quick)
    assert "adaptive" not in {row["bound"] for row in reported(capsys, "guarantee", *flags)["guarantees"]}
    wanted = ("--epsilon", "1e-3", "--delta", "7e-9", "--epsilon-per", epsilon_per)
    assert reported(capsys, "solve", *wanted, *quick)["solutions"][0]["information"] > 0


def test_a_policy_counts_what_it_has_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its currency and its count noise; what flags name is added, and what is solved for leaves room for it."""
    header = "count_noise: gaussian\nepsilon_per: 0.1\ndelta: 1e-11\n"
    policy = str(policy_of(tmp_path, domain_file("one", "5", "1e-9"), header=header))
    (row,) = reported(capsys, "guarantee", "--policy", policy, "--domain", "0.5:1e-9")["guarantees"]
    flags = ("--epsilon-per", "0.1", "--delta", "1e-11", "--domain", "5:1e-9", "--domain", "0.5:1e-9")
    assert [row] == reported(capsys, "guarantee", *flags, "--gaussian")["guarantees"]
    wanted = ("--epsilon", "34.9", "--delta", "7e-9", "--epsilon-per", "0.1")
    (solved,) = reported(capsys, "solve", *wanted, "--policy", policy)["solutions"]
    assert [solved] == reported(capsys, "solve", *wanted, "--domain", "5:1e-9", "--gaussian")["solutions"]


@pytest.mark.usefixtures("no_tables")
def test_a_guarantee_for_people_is_rounded_up(capsys: pytest.CaptureFixture[str]) -> None:
    """33.782 is written 33.79, and no line is wider than 100 columns."""
    assert main(["plan", "guarantee", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "(33.79, 7e-09)-DP" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_delta_may_be_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    """On request: 30 calls of 1e-10 and the slack of 1e-9 are 4e-9."""
    rows = reported(capsys, "guarantee", "--delta-once", "--quick")["guarantees"]
    assert {4e-9} == {round(row["delta"], 20) for row in rows}


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("flags", [("--gaussian",), ("--domain", "0.1:1e-9", "--domain", "0.1:1e-9")])
def test_gaussian_noise_and_domains_leave_one_bound(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    """And domains cost."""
    (row,) = reported(capsys, "guarantee", *flags, "--quick")["guarantees"]
    assert "zcdp" == row["bound"]
    assert (row["epsilon"] > 33.8) == ("--domain" in flags)


def test_epsilon_per_is_solved_for(capsys: pytest.CaptureFixture[str]) -> None:
    """By the paper's split of delta and by the one with the lowest threshold."""
    paper, best = reported(capsys, "solve", "--epsilon", "34.9", "--delta", "7e-9", "--quick")["solutions"]
    assert 0.156911 == paper["epsilon_per"]
    assert best["height"] < paper["height"] < 1.01 * best["height"]


@pytest.mark.slow
def test_the_adaptive_bound_allows_for_a_larger_epsilon_per(capsys: pytest.CaptureFixture[str]) -> None:
    """As large as its guarantee allows, for both splits; Gaussian noise has none, and what takes hours is not begun."""
    wanted = ("solve", "--epsilon", "2", "--delta", "7e-9", "--information", "40")
    quick, found = (reported(capsys, *wanted, *more)["solutions"] for more in (("--quick",), ()))
    for before, after in zip(quick, found, strict=True):
        assert before["epsilon_per"] < after["epsilon_per"]
        currency = ("--epsilon-per", str(after["epsilon_per"]), "--delta", str(after["delta"]))
        budget = ("--slack", str(after["slack"]), "--information", "40")
        worth = reported(capsys, "guarantee", *currency, *budget)["guarantees"][-1]
        assert "adaptive" == worth["bound"]
        assert 1.9998 < worth["epsilon"] <= 2
    gaussian = [reported(capsys, *wanted, "--gaussian", *more)["solutions"] for more in (("--quick",), ())]
    assert gaussian[0] == gaussian[1]
    long = ("solve", "--epsilon", "2", "--delta", "7e-9", "--information", "1000000")
    assert reported(capsys, *long)["solutions"] == reported(capsys, *long, "--quick")["solutions"]


def test_units_are_solved_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The paper's parameters leave room for its own budget, and a little more information."""
    (row,) = reported(
        capsys,
        *("solve", "--epsilon", "34.9", "--delta", "7e-9", "--epsilon-per", "0.15"),
        *("--call-delta", "1e-10", "--slack", "1e-9", "--quick"),
    )["solutions"]
    assert 30 == row["calls"]
    assert 3000 < row["information"] < 3500


def test_the_adaptive_bound_allows_for_more_units(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as its guarantee allows: one more would be too many."""
    wanted = ("solve", "--epsilon", "2", "--delta", "7e-9", "--epsilon-per", "0.3", "--call-delta", "1e-10")
    (quick,), (row,) = (
        reported(capsys, *wanted, "--slack", "1e-9", *more)["solutions"] for more in (("--quick",), ())
    )
    assert quick["information"] < row["information"]
    for units, is_enough in ((row["information"], True), (row["information"] + 1, False)):
        flags = ("--epsilon-per", "0.3", "--information", str(units))
        found = reported(capsys, "guarantee", *flags)["guarantees"][-1]
        assert ("adaptive", is_enough) == (found["bound"], found["epsilon"] <= 2)


def test_attacks_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of section 8.3, and those that hold for what is built."""
    found = reported(capsys, "attacks")
    assert [11.55, 11.69, 11.31, 12.08] == [round(100 * row["probability"], 2) for row in found["averaging"]]
    assert [738, 711] == [row["elements"] for row in found["differencing"]]
    assert [387, 333, 333] == [round(row["one_in"] / 1e6) for row in found["unique_member"]][:3]


def test_deployments_end_with_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Seven published ones and the budget of the flags."""
    rows = reported(capsys, "deployments", "--information", "100", "--quick")["deployments"]
    assert 8 == len(rows)
    assert "this budget" == rows[-1]["name"]
    assert "(34.9, 7e-09)" == rows[-2]["monthly"] != rows[-1]["monthly"]


@pytest.mark.slow
def test_composition_bounds_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """The known values at e = 0.1 and delta 1e-6."""
    hundred, thousand = reported(capsys, "compose")["composition"]
    names = ("basic", "durfee_rogers", "dong_durfee_rogers", "zcdp", "adaptive", "fixed_batch")
    assert (10.0, 3.13, 2.75, 2.42, 2.25, 2.25) == tuple(round(hundred[name], 2) for name in names)
    assert 8.30 == round(thousand["fixed_batch"], 2)
    assert 19.4 == thousand["general_dp"]


@pytest.mark.slow
def test_a_curve_rises_and_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """More privacy loss finds more articles, and so do more fetched rows; the seed fixes every run."""
    flags = (
        "--epsilon-per",
        "0.05",
        "--epsilon-per",
        "0.15",
        "--d-bar",
        "60",
        "--d-bar",
        "1000",
        "--trials",
        "20",
    )
    first = reported(capsys, "curve", *ARTICLES, *flags, "--seed", "1")["points"]
    means = [row["mean"] for row in first]
    assert means[0] < means[1] < means[3]
    assert means[2] < means[3]
    assert all(row["lower"] <= row["mean"] + 1 and row["mean"] <= row["upper"] + 1 for row in first)
    assert first == reported(capsys, "curve", *ARTICLES, *flags, "--seed", "1")["points"]
    assert first != reported(capsys, "curve", *ARTICLES, *flags, "--seed", "2")["points"]


def test_elements_are_found_as_often_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """UnkLap's closed form, for every cohort: five standard deviations of 500 runs with a fixed seed."""
    rows = reported(capsys, "found", *COHORTS, "--epsilon-per", "0.1", "--trials", "500", "--seed", "7")[
        "found"
    ]
    assert 26 == len(rows)
    assert {1.0} == {row["share"] for row in rows[:8]}
    for row in rows:
        deviation = (row["expected"] * (1 - row["expected"]) / 500) ** 0.5
        assert row["share"] == pytest.approx(row["expected"], abs=5 * deviation + 1e-3)
    assert (rows[0]["element"], rows[0]["count"]) == ("2018-12", 3411)


def test_what_lies_beyond_d_bar_raises_the_threshold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Fetched are d_bar + 1 rows, and the chance counts from the last of them."""
    counts = tmp_path / "counts.txt"
    counts.write_text("\n".join(["1000", "900", "800", "600", "590"]))
    flags = ("--delta-l0", "1", "--d-bar", "3", "--epsilon-per", "0.15", "--trials", "400", "--seed", "3")
    rows = reported(capsys, "found", "--counts", str(counts), *flags)["found"]
    assert [1000, 900, 800] == [row["count"] for row in rows]
    assert rows[0]["expected"] > 0.9
    assert rows[1]["expected"] < 0.2
    for row in rows:
        deviation = (row["expected"] * (1 - row["expected"]) / 400) ** 0.5
        assert row["share"] == pytest.approx(row["expected"], abs=5 * deviation + 1e-3)


def test_a_curves_band_holds_the_middle_half_of_the_runs() -> None:
    """A quarter of the same runs, made here one by one, lies at or below either end, as quantiles of samples do."""
    counts = Histogram.from_element_order([90, 80, 70, 60, 50, 40, 30, 20])
    named = NamedHistogram(tuple("abcdefgh"), counts, "h")
    mechanism = UnkGumb(Currency(Fraction("0.15"), Fraction("1e-3")), 6, 8, 1, with_counts=False)
    (point,) = curve(named, [mechanism], Draws(5), trials=101, advance=lambda: None)
    again = Draws(5)
    sizes = sorted(
        mechanism.run(named.histogram, again.noise("3/20", "8", str(trial))).indices.size
        for trial in range(101)
    )
    assert (sizes[25], sizes[75]) == (point.lower, point.upper)
    assert sizes[25] < sizes[75]
    assert sum(sizes) / 101 == pytest.approx(point.mean)


def test_without_data_only_the_closed_forms_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Which counts are found, and how exact they are."""
    found = reported(capsys, "found", "--epsilon-per", "0.15")
    (row,) = found["needed"]
    assert ("UnkGumb", 201, 221, 40, 26) == (
        row["mechanism"],
        row["found_half"],
        row["found_mostly"],
        row["half_width"],
        row["gaussian_half_width"],
    )
    assert "found" not in found


def test_counts_come_from_a_file_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One on each line; elements are called by their lines."""
    counts = tmp_path / "counts.txt"
    counts.write_text("3\n\n5000\n40\n")
    rows = reported(capsys, "found", "--counts", str(counts), "--k", "3", "--trials", "5", "--seed", "1")[
        "found"
    ]
    assert [("line 2", 5000, 1.0), ("line 3", 40, 0.0), ("line 1", 3, 0.0)] == [
        (row["element"], row["count"], row["share"]) for row in rows
    ]
    assert abs(rows[0]["noisy_count"] - 5000) < 500
    assert rows[1]["noisy_count"] is None


CHARGES = """account,day,information,calls
a,0,21,1
a,0,21,1
a,2,21,0
b,1,100,1
c,2,1,0
"""


def test_usage_tells_who_would_have_used_up_a_budget(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Three accounts: a is above 42 on the third day only, b above 99 on the second, c never; none is above 100."""
    charges = tmp_path / "charges.csv"
    charges.write_text(CHARGES)
    flags = ("--information", "41", "--information", "42", "--information", "99", "--information", "100")
    rows = reported(capsys, "usage", str(charges), *flags, "--calls", "0", "--calls", "1")["usage"]
    thirds = {
        (row["unit"], row["limit"]): [round(3 * row[key]) for key in ("first_day", "first_week", "window")]
        for row in rows
    }
    assert {
        ("information", 41): [1, 2, 2],
        ("information", 42): [0, 2, 2],
        ("information", 99): [0, 1, 1],
        ("information", 100): [0, 0, 0],
        ("calls", 0): [1, 2, 2],
        ("calls", 1): [1, 1, 1],
    } == thirds


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("account,day\n", "must name"),
        (CHARGES.splitlines()[0], "no charge"),
        (CHARGES + "d,x,1,1\n", "line 7"),
        (CHARGES + "d,1,1\n", "line 7"),
        (CHARGES + "d,400,1,1\n", "line 7"),
        (CHARGES + "d,1,-1,1\n", "line 7"),
    ],
)
def test_broken_charges_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, named: str
) -> None:
    """The line, and never what is in it."""
    charges = tmp_path / "charges.csv"
    charges.write_text(content)
    assert main(["plan", "usage", str(charges)]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.slow
def test_the_simulated_month_can_be_repeated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same seed gives the same file, whose charges `usage` reads; another seed another."""
    files = [tmp_path / name for name in ("first.csv", "again.csv", "other.csv")]
    for path, seed in zip(files, ("1", "1", "2"), strict=True):
        simulated_month.main(["--analysts", "3", "--seed", seed, str(path)])
    first, again, other = (path.read_bytes() for path in files)
    assert first == again != other
    assert reported(capsys, "usage", str(files[0]))["usage"][0]["window"] <= 1


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
        reported(capsys, *arguments, "--out", str(path))
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


def test_a_delta_of_one_is_no_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither that of a call, nor what all calls add up to: both are refused by name."""
    for flags, said in (
        (("--delta", "2"), "delta must be an exact number strictly between 0 and 1"),
        (("--delta", "0.02"), "delta of 0.02, with 30 calls"),
        (("--calls", "10000000000"), "adds up to 1 or more, which promises nothing"),
    ):
        for command in ("guarantee", "deployments"):
            assert main(["plan", command, "--quick", *flags]) == 2
            printed = capsys.readouterr()
            assert printed.out == ""
            assert said in printed.err


def test_a_question_on_data_has_an_expected_price_below_the_worst_case(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of ten that are asked for, one is far above the rest: 4 units, where 21 are reserved."""
    counts = tmp_path / "counts"
    counts.write_text("\n".join(map(str, [1000, *[20] * 1500])))
    flags = ("found", "--counts", str(counts), "--k", "10", "--trials", "200", "--seed", "7")
    (row,) = reported(capsys, *flags)["expected"]
    assert (21, 1) == (row["worst_case"], row["calls"])
    assert row["information"] == pytest.approx(4, abs=0.2)
    assert row["recall"] == pytest.approx(0.1, abs=0.01)
    assert row["error"] == pytest.approx(13.3, abs=4)


@pytest.mark.slow
def test_a_known_domain_shows_all_that_are_asked_for_at_the_price_of_the_worst_case(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """KnownGumb ranks by the exponential mechanism: two counts at its gap are in order in 95 % of the runs."""
    gap = 20
    counts = tmp_path / "counts"
    counts.write_text(f"{1000 + gap}\n1000\n0\n")
    flags = ("found", "--known", "--counts", str(counts), "--trials", "2000", "--seed", "7")
    reports = reported(capsys, *flags, "--k", "1")
    ((needed,), (expected,)) = (reports["needed"], reports["expected"])
    assert ("KnownGumb", gap, 40, 26) == (
        needed["mechanism"],
        needed["ordered_mostly"],
        needed["half_width"],
        needed["gaussian_half_width"],
    )
    assert (2, 2.0, 0) == (expected["worst_case"], expected["information"], expected["calls"])
    # 2000 runs are within 0.03 of 95 % but for a chance below 1e-8.
    assert expected["recall"] == pytest.approx(0.95, abs=0.03)
    (row,) = reports["found"]
    assert (1000 + gap, row["share"]) == (row["count"], expected["recall"])
    # A larger k asks for all of the domain, of which nothing is left out.
    whole = reported(capsys, *flags, "--k", "100")
    assert [1.0, 1.0, 1.0] == [row["share"] for row in whole["found"]]
    assert (6, 1.0) == (whole["expected"][0]["worst_case"], whole["expected"][0]["recall"])


@pytest.mark.slow
def test_a_known_domain_with_a_delta_is_counted_by_known_lap(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """All of it for Delta units; the k largest are those of the noisy counts, which err by Laplace noise."""
    counts = tmp_path / "counts"
    counts.write_text("\n".join(map(str, [1000, 963, 0, 0])))
    flags = (
        "found",
        "--known",
        "--delta-l0",
        "3",
        "--counts",
        str(counts),
        "--trials",
        "2000",
        "--seed",
        "7",
    )
    reports = reported(capsys, *flags, "--k", "1")
    ((needed,), (expected,)) = (reports["needed"], reports["expected"])
    assert ("KnownLap", 3, 3.0) == (
        needed["mechanism"],
        expected["worst_case"],
        expected["information"],
    )
    assert [None] == [needed["gaussian_half_width"]]
    # Two counts 37 apart; at the gap it would be 95 %, within 0.03 but for a chance below 1e-8.
    assert needed["ordered_mostly"] > 37
    assert 0.8 < expected["recall"] < 0.95
    whole = reported(capsys, *flags, "--k", "4")
    assert whole["expected"][0]["error"] == pytest.approx(13.3, abs=0.7)


def test_members_are_counted_as_questions_see_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No value of a column that is not asked about stops a plan, and a text that is not UTF-8 leaves out its row."""
    path = tmp_path / "pairs.parquet"
    at = pa.array([0, 2**63 - 2, -(2**63)], pa.int64()).view(pa.timestamp("ms"))
    pages = pa.array([b"x", b"x", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"who": [1, 2, 3], "page": pages, "at": at}), path, version="2.6")
    columns = ("--data", str(path), "--by", "page", "--member", "who")
    (row,) = reported(capsys, "found", "--known", *columns, "--trials", "2")["found"]
    assert ("x", 2) == (row["element"], row["count"])


@pytest.mark.parametrize(
    ("by", "member", "expected"),
    [
        ("pag", "who", "--by: there is no column pag; there are who, page"),
        ("page", "whom", "--member: there is no column whom; there are who, page"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_its_flag(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, by: str, member: str, expected: str
) -> None:
    """Not by the name of an error of DuckDB's; so is a file that is none of a table."""
    path, rows = tmp_path / "pairs.parquet", tmp_path / "pairs.csv"
    pq.write_table(pa.table({"who": [1], "page": ["x"]}), path)
    rows.write_text("who,page\n1,x\n")
    assert main(["plan", "found", "--data", str(path), "--by", by, "--member", member]) == 2
    assert expected in capsys.readouterr().err
    assert main(["plan", "found", "--data", str(rows), "--by", by, "--member", member]) == 2
    assert "--data: a data file must be Parquet" in capsys.readouterr().err


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


def test_a_long_simulation_says_how_long_it_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, after the first second, on standard error, and only if it is more than ten."""
    clock = itertools.count()
    monkeypatch.setattr("gris_lab.progress.time.monotonic", lambda: next(clock) * 0.5)
    for total, said in ((100, "counting takes about 50 seconds\n"), (10, "")):
        with progress("counting", total) as advance:
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
