"""`gris plan guarantee`, `solve`, `table`, `attacks`, `deployments` and `compose`: their numbers."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dp_service.accounting.epsilon_table import table_from
from gris_cli.__main__ import main
from gris_lab.accounting.deployments import DEPLOYMENTS
from tests.support.command_line import run_json, run_plan
from tests.support.publishing import domain_file, policy_of


def test_the_guarantee_of_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    """Each bound's epsilon at delta 7e-9, and which is the best."""
    rows = run_plan(capsys, "guarantee", "--quick")["guarantees"]
    assert {"basic": 450, "dong_durfee_rogers": 34.88, "durfee_rogers": 60.13, "zcdp": 33.78} == {
        row["bound"]: round(row["epsilon"], 2) for row in rows
    }
    assert ["zcdp"] == [row["bound"] for row in rows if row["best"]]
    assert {7e-9} == {round(row["delta"], 20) for row in rows}


@pytest.mark.long
@pytest.mark.slow
def test_the_guarantee_of_the_defaults_is_the_adaptive_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """32.45, after its table has been made; the text says that no bound is below 32.43."""
    rows = run_plan(capsys, "guarantee")["guarantees"]
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
@pytest.mark.usefixtures("no_tables")
def test_the_table_of_a_currency_is_made_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Until then --quick leaves the bound out; a table with fewer units is extended, one with more is read."""
    flags = ("guarantee", "--epsilon-per", "0.3", "--information")
    assert "zcdp" == run_plan(capsys, *flags, "40", "--quick")["guarantees"][-1]["bound"]
    made = run_plan(capsys, *flags, "40")["guarantees"][-1]
    (path,) = [path for path in kept_tables() if "3-10" in path.name]
    first = path.read_bytes()
    assert made == run_plan(capsys, *flags, "40", "--quick")["guarantees"][-1]
    assert "adaptive" == made["bound"]
    (said,) = run_plan(capsys, *flags, "40", "--quick")["checks"]
    assert "checked in whole numbers by who made it" in said
    assert run_plan(capsys, *flags, "30")["guarantees"][-1]["epsilon"] < made["epsilon"]
    assert path.read_bytes() == first
    run_plan(capsys, *flags, "50")
    assert path.read_bytes() != first
    # What is damaged is made again, and so are epsilons that are not enough.
    table = table_from(first)
    less = replace(table.rows, enough=table.rows.enough * 3 // 5, needed=table.rows.needed * 3 // 5)
    for wrong in (first[:-20], replace(table, rows=less).to_bytes()):
        path.write_bytes(wrong)
        assert made == run_plan(capsys, *flags, "40")["guarantees"][-1]
        assert path.read_bytes() == first


@pytest.mark.parametrize("noise", [(), ("--gaussian",)], ids=["gumbel", "gaussian"])
def test_a_table_of_somebody_is_made_again_and_compared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, noise: tuple[str, ...]
) -> None:
    """All rows, and what it is extended from; what is printed rests on nothing in the file."""
    flags = ("--epsilon-per", "0.3", "--information", "12", *noise)
    (row,) = run_plan(capsys, "table", *flags, "--directory", str(tmp_path))["table"]
    path = Path(row["file"])
    table = table_from(path.read_bytes())
    checking = ("plan", "guarantee", *flags, "--check-table", path)
    right = run_json(capsys, *checking)
    assert right["checks"][-1] == f"{path}: all of its 13 rows are those of the table that was made again"
    assert noise or "made here, and checked in whole numbers" in right["checks"][0]
    enough, needed = table.rows.enough.copy(), table.rows.needed.copy()
    enough[6] -= 1
    needed[7] += 1
    for rows in (replace(table.rows, enough=enough), replace(table.rows, needed=needed)):
        path.write_bytes(replace(table, rows=rows).to_bytes())
        wrong = run_json(capsys, *checking, code=1)
        assert "of its 13 rows 1 differ" in wrong["checks"][-1]
        assert wrong["guarantees"] == right["guarantees"]
    # Where they are smallest as well.
    values = table.upper.values.copy()
    values[values < values.max() / 2] *= 1 - 1e-7
    path.write_bytes(replace(table, upper=replace(table.upper, values=values)).to_bytes())
    assert "extended to another one" in run_json(capsys, *checking, code=1)["checks"][-1]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--epsilon-per", "0.4"), "it is the table of an epsilon_per of 3/10"),
        (("--epsilon-per", "0.3", "--gaussian"), "it is the table of an epsilon_per of 3/10"),
        (("--epsilon-per", "0.3", "--quick"), "--quick makes no table"),
        (("--epsilon-per", "0.3", "--information", "10000000"), "would take hours"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    """It is of another currency, or no table is to be made; so is a file that is no table."""
    made = ("--epsilon-per", "0.3", "--information", "1", "--directory", str(tmp_path))
    (row,) = run_plan(capsys, "table", *made)["table"]
    assert main(["plan", "guarantee", *flags, "--check-table", row["file"]]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    Path(row["file"]).write_bytes(b"no table")
    assert main(["plan", "guarantee", "--epsilon-per", "0.3", "--check-table", row["file"]]) == 2
    assert "no table of this version" in " ".join(capsys.readouterr().err.split())


def test_a_table_is_made_for_a_service(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In the folder that dp_service looks in, for the currency of its policy; who reads it may be somebody else."""
    header = "epsilon_per: 0.3\ndelta: 1e-10\n"
    policy = policy_of(tmp_path, domain_file("one", "5", "1e-9"), header=header)
    folder = tmp_path / "tables"
    flags = ("--policy", str(policy), "--information", "20", "--directory", str(folder))
    (row,) = run_plan(capsys, "table", *flags)["table"]
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
    rows = run_plan(capsys, "guarantee", "--epsilon-per", "0.3", "--information", "5")["guarantees"]
    assert "adaptive" == rows[-1]["bound"]


def test_a_table_that_would_take_hours_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    """The other bounds are there."""
    rows = run_plan(capsys, "guarantee", "--information", "1000000")["guarantees"]
    assert ["zcdp"] == [row["bound"] for row in rows if row["best"]]
    assert "adaptive" not in {row["bound"] for row in rows}


@pytest.mark.parametrize("epsilon_per", ["1e-5", "1e-12"])
@pytest.mark.parametrize("quick", [(), ("--quick",)])
def test_a_table_with_too_many_points_is_not_begun(
    capsys: pytest.CaptureFixture[str], epsilon_per: str, quick: tuple[str, ...]
) -> None:
    """Its first row alone would take gigabytes; the other bounds are there."""
    flags = ("--epsilon-per", epsilon_per, "--information", "10", *quick)
    assert "adaptive" not in {row["bound"] for row in run_plan(capsys, "guarantee", *flags)["guarantees"]}
    wanted = ("--epsilon", "1e-3", "--delta", "7e-9", "--epsilon-per", epsilon_per)
    assert run_plan(capsys, "solve", *wanted, *quick)["solutions"][0]["information"] > 0


def test_a_policy_counts_what_it_has_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its currency and its count noise; what flags name is added, and what is solved for leaves room for it."""
    header = "count_noise: gaussian\nepsilon_per: 0.1\ndelta: 1e-11\n"
    policy = str(policy_of(tmp_path, domain_file("one", "5", "1e-9"), header=header))
    rows = run_plan(capsys, "guarantee", "--policy", policy, "--domain", "0.5:1e-9", "--quick")["guarantees"]
    flags = ("--epsilon-per", "0.1", "--delta", "1e-11", "--domain", "5:1e-9", "--domain", "0.5:1e-9")
    assert rows == run_plan(capsys, "guarantee", *flags, "--gaussian", "--quick")["guarantees"]
    wanted = ("--epsilon", "34.9", "--delta", "7e-9", "--epsilon-per", "0.1", "--quick")
    (solved,) = run_plan(capsys, "solve", *wanted, "--policy", policy)["solutions"]
    assert [solved] == run_plan(capsys, "solve", *wanted, "--domain", "5:1e-9", "--gaussian")["solutions"]


@pytest.mark.usefixtures("no_tables")
def test_a_guarantee_for_people_is_rounded_up(capsys: pytest.CaptureFixture[str]) -> None:
    """33.782 is written 33.79, and no line is wider than 100 columns."""
    assert main(["plan", "guarantee", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "(33.79, 7e-09)-DP" in printed
    assert "by a proof on paper" in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.long
@pytest.mark.slow
def test_gaussian_noise_has_an_adaptive_bound_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """4.519 for 100 units, which zCDP has at 4.73; `--gaussian` makes a table of its own."""
    flags = ("--information", "100", "--gaussian")
    rows = run_plan(capsys, "guarantee", *flags)["guarantees"]
    assert ["zcdp", "adaptive"] == [row["bound"] for row in rows]
    assert (4.73, 4.519) == (round(rows[0]["epsilon"], 2), round(rows[1]["epsilon"], 3))
    (made,) = run_plan(capsys, "table", *flags, "--directory", str(tmp_path))["table"]
    assert table_from(Path(made["file"]).read_bytes()).gaussian
    assert made["epsilon"] <= rows[1]["epsilon"]


def test_delta_may_be_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    """On request: 300 calls of 1e-11 and the slack of 1e-9 are 4e-9."""
    rows = run_plan(capsys, "guarantee", "--delta-once", "--quick")["guarantees"]
    assert {4e-9} == {round(row["delta"], 20) for row in rows}


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("flags", [("--gaussian",), ("--domain", "0.1:1e-9", "--domain", "0.1:1e-9")])
def test_gaussian_noise_and_domains_leave_one_bound(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    """And domains cost."""
    (row,) = run_plan(capsys, "guarantee", *flags, "--quick")["guarantees"]
    assert "zcdp" == row["bound"]
    assert (row["epsilon"] > 33.8) == ("--domain" in flags)


def test_epsilon_per_is_solved_for(capsys: pytest.CaptureFixture[str]) -> None:
    """By the paper's split of delta and by the one with the lowest threshold."""
    paper, best = run_plan(capsys, "solve", "--epsilon", "34.9", "--delta", "7e-9", "--quick")["solutions"]
    assert 0.156911 == paper["epsilon_per"]
    assert best["height"] < paper["height"] < 1.01 * best["height"]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(), ("--gaussian",)], ids=["gumbel", "gaussian"])
def test_the_adaptive_bound_allows_for_a_larger_epsilon_per(
    capsys: pytest.CaptureFixture[str], noise: tuple[str, ...]
) -> None:
    """As large as its guarantee allows, for both splits; what takes hours is not begun."""
    wanted = ("solve", "--epsilon", "2", "--delta", "7e-9", "--information", "40", *noise)
    quick, found = (run_plan(capsys, *wanted, *more)["solutions"] for more in (("--quick",), ()))
    for before, after in zip(quick, found, strict=True):
        assert before["epsilon_per"] < after["epsilon_per"]
        currency = ("--epsilon-per", str(after["epsilon_per"]), "--delta", str(after["delta"]))
        budget = ("--slack", str(after["slack"]), "--information", "40")
        worth = run_plan(capsys, "guarantee", *currency, *budget, *noise)["guarantees"][-1]
        assert "adaptive" == worth["bound"]
        assert 1.9998 < worth["epsilon"] <= 2
    long = ("solve", "--epsilon", "2", "--delta", "7e-9", "--information", "1000000", *noise)
    assert run_plan(capsys, *long)["solutions"] == run_plan(capsys, *long, "--quick")["solutions"]


def test_units_are_solved_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The paper's parameters leave room for its own budget, and a little more information."""
    (row,) = run_plan(
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
        run_plan(capsys, *wanted, "--slack", "1e-9", *more)["solutions"] for more in (("--quick",), ())
    )
    assert quick["information"] < row["information"]
    for units, is_enough in ((row["information"], True), (row["information"] + 1, False)):
        flags = ("--epsilon-per", "0.3", "--information", str(units))
        found = run_plan(capsys, "guarantee", *flags)["guarantees"][-1]
        assert ("adaptive", is_enough) == (found["bound"], found["epsilon"] <= 2)


def test_attacks_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of section 8.3, and those that hold for what is built."""
    found = run_plan(capsys, "attacks")
    assert [11.55, 11.69, 11.31, 12.08] == [round(100 * row["probability"], 2) for row in found["averaging"]]
    assert [738, 711] == [row["elements"] for row in found["differencing"]]
    assert [387, 333, 333] == [round(row["one_in"] / 1e6) for row in found["unique_member"]][:3]


def test_deployments_end_with_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """The published ones and the budget of the flags."""
    rows = run_plan(capsys, "deployments", "--information", "100", "--quick")["deployments"]
    assert [*(each.name for each in DEPLOYMENTS), "this budget"] == [each["name"] for each in rows]
    (linkedin,) = (each for each in rows if each["name"].startswith("LinkedIn"))
    assert "(34.9, 7e-09)" == linkedin["monthly"] != rows[-1]["monthly"]


@pytest.mark.slow
def test_composition_bounds_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """The known values at e = 0.1 and delta 1e-6."""
    hundred, thousand = run_plan(capsys, "compose")["composition"]
    names = ("basic", "durfee_rogers", "dong_durfee_rogers", "zcdp", "adaptive", "fixed_batch")
    assert (10.0, 3.13, 2.75, 2.42, 2.25, 2.25) == tuple(round(hundred[name], 2) for name in names)
    assert 8.30 == round(thousand["fixed_batch"], 2)
    assert 19.4 == thousand["general_dp"]


def test_a_delta_of_one_is_no_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither that of a call, nor what all calls add up to: both are refused by name."""
    for flags, said in (
        (("--delta", "2"), "delta must be an exact number strictly between 0 and 1"),
        (("--delta", "0.002"), "delta of 0.002, with 300 calls"),
        (("--calls", "100000000000"), "adds up to 1 or more, which promises nothing"),
    ):
        for command in ("guarantee", "deployments"):
            assert main(["plan", command, "--quick", *flags]) == 2
            printed = capsys.readouterr()
            assert printed.out == ""
            assert said in printed.err


@pytest.mark.parametrize(
    "flags",
    [
        ("--epsilon-per", "1e999999999"),
        ("--domain", "1e999:1e-9"),
        ("--domain", "0.1:1e-999"),
        ("--delta", "9" * 101),
    ],
)
def test_a_number_of_more_digits_than_anybody_reads_is_refused(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, str]
) -> None:
    """Before it is made, and in one line."""
    assert main(["plan", "guarantee", *flags]) == 2
    said = capsys.readouterr().err
    assert "is no number of at most 100 characters" in said
    assert len(said) < 250
