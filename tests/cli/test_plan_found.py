"""`gris plan curve`, `found` and `usage`: their numbers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.mechanisms import Currency, Histogram, UnkGumb
from examples import simulated_month
from gris_cli.__main__ import main
from gris_lab.histograms import NamedHistogram
from gris_lab.simulation import Draws, curve
from tests.support.command_line import run_plan

ROOT = Path(__file__).resolve().parents[2]
FEEDBACK = ROOT / "examples" / "cofacts" / "feedback.parquet"
ARTICLES = ("--data", str(FEEDBACK), "--by", "article_id", "--member", "member_id")
COHORTS = ("--data", str(FEEDBACK), "--by", "cohort", "--member", "member_id", "--delta-l0", "1")
CHARGES = """account,day,information,calls
a,0,21,1
a,0,21,1
a,2,21,0
b,1,100,1
c,2,1,0
"""


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
    first = run_plan(capsys, "curve", *ARTICLES, *flags, "--seed", "1")["points"]
    means = [row["mean"] for row in first]
    assert means[0] < means[1] < means[3]
    assert means[2] < means[3]
    assert all(row["lower"] <= row["mean"] + 1 and row["mean"] <= row["upper"] + 1 for row in first)
    assert first == run_plan(capsys, "curve", *ARTICLES, *flags, "--seed", "1")["points"]
    assert first != run_plan(capsys, "curve", *ARTICLES, *flags, "--seed", "2")["points"]


def test_elements_are_found_as_often_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """UnkLap's closed form, for every cohort: five standard deviations of 500 runs with a fixed seed."""
    rows = run_plan(capsys, "found", *COHORTS, "--epsilon-per", "0.1", "--trials", "500", "--seed", "7")[
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
    counts.write_text("\n".join(["1040", "920", "800", "600", "590"]))
    flags = ("--delta-l0", "1", "--d-bar", "3", "--epsilon-per", "0.15", "--trials", "400", "--seed", "3")
    rows = run_plan(capsys, "found", "--counts", str(counts), *flags)["found"]
    assert [1040, 920, 800] == [row["count"] for row in rows]
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
    found = run_plan(capsys, "found", "--epsilon-per", "0.15")
    (row,) = found["needed"]
    assert ("UnkGumb", 216, 236, 40, 26) == (
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
    rows = run_plan(capsys, "found", "--counts", str(counts), "--k", "3", "--trials", "5", "--seed", "1")[
        "found"
    ]
    assert [("line 2", 5000, 1.0), ("line 3", 40, 0.0), ("line 1", 3, 0.0)] == [
        (row["element"], row["count"], row["share"]) for row in rows
    ]
    assert abs(rows[0]["noisy_count"] - 5000) < 500
    assert rows[1]["noisy_count"] is None


def test_usage_tells_who_would_have_used_up_a_budget(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Three accounts: a is above 42 on the third day only, b above 99 on the second, c never; none is above 100."""
    charges = tmp_path / "charges.csv"
    charges.write_text(CHARGES)
    flags = ("--information", "41", "--information", "42", "--information", "99", "--information", "100")
    rows = run_plan(capsys, "usage", str(charges), *flags, "--calls", "0", "--calls", "1")["usage"]
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
    assert run_plan(capsys, "usage", str(files[0]))["usage"][0]["window"] <= 1


def test_a_question_on_data_has_an_expected_price_below_the_worst_case(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of ten that are asked for, one is far above the rest: 4 units, where 21 are reserved."""
    counts = tmp_path / "counts"
    counts.write_text("\n".join(map(str, [1000, *[20] * 1500])))
    flags = ("found", "--counts", str(counts), "--k", "10", "--trials", "200", "--seed", "7")
    (row,) = run_plan(capsys, *flags)["expected"]
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
    reports = run_plan(capsys, *flags, "--k", "1")
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
    whole = run_plan(capsys, *flags, "--k", "100")
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
    reports = run_plan(capsys, *flags, "--k", "1")
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
    whole = run_plan(capsys, *flags, "--k", "4")
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
    (row,) = run_plan(capsys, "found", "--known", *columns, "--trials", "2")["found"]
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
