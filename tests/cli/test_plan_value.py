"""`gris plan value`: what bounds cut and what noise they bring, from what is known of values."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gris_cli.__main__ import main
from gris_lab.value.spread import Known, Spread, released, stated
from tests.support.command_line import run_json


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Return the JSON of the command."""
    return run_json(capsys, "plan", "value", *arguments)


@settings(deadline=None)
@given(
    totals=st.lists(st.integers(0, 60), min_size=1, max_size=30),
    parts=st.sets(st.integers(1, 9), min_size=1),
    upper=st.integers(1, 70),
    is_bounded=st.booleans(),
)
def test_what_is_cut_lies_between_what_is_stated(
    totals: list[int], parts: set[int], upper: int, *, is_bounded: bool
) -> None:
    """For every set of totals of which the stated quantiles are true: members above, their loss, and the mean."""
    n, bound = len(totals), Fraction(upper)
    points = {Fraction(part, 10): sorted(totals)[min(n - 1, part * n // 10)] for part in parts}
    known: dict[Fraction, Known] = {}
    for value in sorted(set(points.values())):
        # What is true of these totals, known a tenth too little and too much.
        part = Fraction(sum(total <= value for total in totals), n)
        known[Fraction(value)] = Known(
            Fraction(value),
            max(part - Fraction(1, 10), Fraction(0)),
            min(part + Fraction(1, 10), Fraction(1)),
        )
    spread = Spread(n, tuple(known.values()), Fraction(max(totals)) if is_bounded else None)
    above, cut, mean = spread.above(bound), spread.cut(bound), spread.mean()
    assert above[0] <= Fraction(sum(total > upper for total in totals), n) <= above[1]
    assert cut[0] <= sum(max(total - upper, 0) for total in totals)
    assert mean[0] <= Fraction(sum(totals), n)
    assert (cut[1] is None) <= (not is_bounded)
    if cut[1] is not None:
        assert sum(max(total - upper, 0) for total in totals) <= cut[1]
    if mean[1] is not None:
        assert Fraction(sum(totals), n) <= mean[1]


def test_noise_is_that_of_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    """The figures of the documentation of sums: 5 units, 4,372 members, totals up to 3,000."""
    rows = reported(
        capsys, "--members", "4372", "--at", "0.5:300", "--at", "0.95:2900", "--largest", "90000",
        "--upper", "3000", "--upper", "30000", "--units", "5",
    )["bounds"]  # fmt: skip
    assert [row["upper"] for row in rows] == [3000, 30000, 90000]
    assert round(rows[0]["sum_noise"]) == 17894
    assert math.isclose(rows[1]["sum_noise"], 10 * rows[0]["sum_noise"])
    # At most: 5 % have more than 2900, each 90000 at most.
    assert (rows[0]["members_cut_least"], rows[0]["members_cut_most"]) == (0, 0.05)
    assert math.isclose(rows[0]["sum_cut_most"], 4372 * 0.05 * 87000)
    assert (rows[2]["sum_cut_most"], rows[2]["sum_error_most"]) == (0, rows[2]["sum_noise"])
    assert [row["best"] for row in rows] == [False, False, True]


def test_without_a_largest_value_nothing_is_best(capsys: pytest.CaptureFixture[str]) -> None:
    """What is cut could be anything; a bound is up to the owner then."""
    found = reported(capsys, "--members", "100", "--at", "0.9:50")
    (row,) = found["bounds"]
    assert (row["sum_cut_most"], row["sum_error_most"], row["best"]) == (None, None, False)
    assert math.isclose(row["members_cut_most"], 0.1)
    assert [row["cells"] for row in found["grids"]] == [100, 500, 2000]
    assert math.isclose(found["grids"][1]["linear_width"], 0.1)


def test_the_coarsest_quantum_that_nobody_sees_is_best(capsys: pytest.CaptureFixture[str]) -> None:
    """Finer ones cost nothing but exactness: with so many rows a cent would pass 2^53."""
    sizes = ("--max-members", "1000000", "--max-rows", "1000000000000")
    rows = reported(capsys, "--members", "100", "--at", "0.9:5000", "--largest", "5000", *sizes)["quanta"]
    by_quantum = {row["quantum"]: row for row in rows}
    assert max(by_quantum) == 1000
    assert not by_quantum[0.01]["exact"]
    assert by_quantum[1]["exact"]
    assert math.isclose(by_quantum[1]["rounding"], math.sqrt(1e12 / 12))
    assert [row["quantum"] for row in rows if row["best"]] == []
    small = reported(
        capsys,
        "--members",
        "100",
        "--at",
        "0.9:5000",
        "--largest",
        "5000",
        "--max-members",
        "100",
        "--max-rows",
        "1200",
    )["quanta"]
    (best,) = [row for row in small if row["best"]]
    noise = reported(capsys, "--members", "100", "--at", "0.9:5000", "--largest", "5000")["bounds"][0][
        "sum_noise"
    ]
    assert 10 * best["quantum"] * 10 > noise * 0.1 >= best["rounding"]


def answer(values: list[tuple[str, str, str]], errors: list[str]) -> str:
    """Return what `gris ask --json` prints for quantiles, as far as it is read: q, and the ends of the cell."""
    shown = [{"function": "quantile", "q": q, "cuts": []} for q, _, _ in values]
    row = {"element": [], "values": [{"value": low, "interval": [low, high]} for _, low, high in values]}
    parameters = {"quantiles": {"column": {"quantum": "1"}, "shown": shown}}
    return json.dumps({"parameters": parameters, "rows": [row], "rank_errors": errors})


def test_a_paid_release_says_what_it_says_and_no_more() -> None:
    """Each end of a cell is known to the rank error, and points whose noise crossed are made to rise."""
    found = released(
        answer([("1/2", "10", "12"), ("9/10", "10", "12"), ("3/4", "30", "39")], ["5", "5", "10"]), 100
    )
    tenth, one = Fraction(1, 10), Fraction(1)
    assert found == (
        Known(Fraction(9), Fraction(0), Fraction(11, 20)),
        Known(Fraction(12), Fraction(17, 20), 1 - Fraction(3, 20)),
        Known(Fraction(29), Fraction(17, 20), Fraction(17, 20)),
        Known(Fraction(39), Fraction(17, 20), one),
    )
    assert Spread(100, found).above(Fraction(39))[1] == tenth + Fraction(1, 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--at or --answer"),
        (("--at", "0.9:5", "--answer", "x.json"), "one of the two"),
        (("--answer", "nowhere.json"), "No such file"),
        (("--at", "0.9"), "PART:VALUE"),
        (("--at", "1:5"), "strictly between 0 and 1"),
        (("--at", "0.5:9", "--at", "0.9:5"), "larger ones for larger parts"),
        (("--at", "0.5:-9"), "0 or more"),
        (("--at", "0.9:5", "--largest", "4"), "--largest"),
        (("--at", "0.9:5", "--upper", "0"), "--upper must be above 0"),
        (("--at", "0.9:5", "--max-rows", "4"), "--max-members and --max-rows"),
        (("--at", "0.9:5", "--share", "1"), "share"),
    ],
)
def test_wrong_flags_are_refused_by_name(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """With exit code 2, and before anything is computed."""
    assert main(["plan", "value", "--members", "100", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_another_answer_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as that to a count, or one with several elements."""
    for text in ("{}", "no json", '{"parameters": {"quantiles": null}, "rows": []}'):
        (tmp_path / "answer.json").write_text(text)
        assert main(["plan", "value", "--members", "9", "--answer", str(tmp_path / "answer.json")]) == 2
        assert "an answer with quantiles of one total" in " ".join(
            capsys.readouterr().err.replace("│", " ").split()
        )


def test_stated_points_are_exact() -> None:
    """They are the owner's knowledge, and carry no noise."""
    random.seed(7)
    points = [(Fraction(part, 10), Fraction(part**2)) for part in random.sample(range(1, 10), 9)]
    assert [(each.least, each.most) for each in stated(points)] == [
        (Fraction(part, 10),) * 2 for part in range(1, 10)
    ]
