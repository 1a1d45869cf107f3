"""`gris plan guarantee`, `solve` and `attacks`: their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gris_cli.__main__ import main
from tests.support.command_line import run_plan
from tests.support.publishing import domain_file, policy_of


def test_the_guarantee_of_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    """One epsilon, at delta 7e-9."""
    (found,) = run_plan(capsys, "guarantee")["guarantees"]
    assert (33.78, 7e-9) == (round(found["epsilon"], 2), round(found["delta"], 20))
    (one,) = run_plan(capsys, "guarantee", "--information", "1", "--calls", "0")["guarantees"]
    assert 0.15 == pytest.approx(one["epsilon"])


def test_a_policy_counts_what_it_has_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its currency and its count noise; what flags name is added, and what is solved for leaves room for it."""
    header = "count_noise: gaussian\nepsilon_per: 0.1\ndelta: 1e-11\n"
    policy = str(policy_of(tmp_path, domain_file("one", "5", "1e-9"), header=header))
    rows = run_plan(capsys, "guarantee", "--policy", policy, "--domain", "0.5:1e-9")["guarantees"]
    flags = ("--epsilon-per", "0.1", "--delta", "1e-11", "--domain", "5:1e-9", "--domain", "0.5:1e-9")
    assert rows == run_plan(capsys, "guarantee", *flags, "--gaussian")["guarantees"]
    wanted = ("--epsilon", "34.9", "--delta", "7e-9", "--epsilon-per", "0.1")
    (solved,) = run_plan(capsys, "solve", *wanted, "--policy", policy)["solutions"]
    assert [solved] == run_plan(capsys, "solve", *wanted, "--domain", "5:1e-9", "--gaussian")["solutions"]


def test_a_guarantee_for_people_is_rounded_up(capsys: pytest.CaptureFixture[str]) -> None:
    """33.782 is written 33.79, and no line is wider than 100 columns."""
    assert main(["plan", "guarantee"]) == 0
    printed = capsys.readouterr().out
    assert "(33.79, 7e-09)-DP" in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize("flags", [("--gaussian",), ("--domain", "0.1:1e-9", "--domain", "0.1:1e-9")])
def test_gaussian_noise_and_domains_count(capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    """And domains cost."""
    (row,) = run_plan(capsys, "guarantee", *flags)["guarantees"]
    assert (row["epsilon"] > 33.8) == ("--domain" in flags)


def test_epsilon_per_is_solved_for(capsys: pytest.CaptureFixture[str]) -> None:
    """By the paper's split of delta and by the one with the lowest threshold."""
    paper, best = run_plan(capsys, "solve", "--epsilon", "34.9", "--delta", "7e-9")["solutions"]
    assert 0.156911 == paper["epsilon_per"]
    assert best["height"] < paper["height"] < 1.01 * best["height"]


def test_units_are_solved_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The paper's parameters leave room for its own budget, and a little more information."""
    (row,) = run_plan(
        capsys,
        *("solve", "--epsilon", "34.9", "--delta", "7e-9", "--epsilon-per", "0.15"),
        *("--call-delta", "1e-10", "--slack", "1e-9"),
    )["solutions"]
    assert 30 == row["calls"]
    assert 3000 < row["information"] < 3500


def test_attacks_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of section 8.3, and those that hold for what is built."""
    found = run_plan(capsys, "attacks")
    assert [11.55, 11.69, 11.31, 12.08] == [round(100 * row["probability"], 2) for row in found["averaging"]]
    assert [738, 711] == [row["elements"] for row in found["differencing"]]
    assert [387, 333, 333] == [round(row["one_in"] / 1e6) for row in found["unique_member"]][:3]


def test_a_delta_of_one_is_no_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither that of a call, nor what all calls add up to: both are refused by name."""
    for flags, said in (
        (("--delta", "2"), "delta must be an exact number strictly between 0 and 1"),
        (("--delta", "0.002"), "delta of 0.002, with 300 calls"),
        (("--calls", "100000000000"), "adds up to 1 or more, which promises nothing"),
    ):
        assert main(["plan", "guarantee", *flags]) == 2
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
