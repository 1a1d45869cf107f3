"""`gris plan bound`: its sums are those of the definition, its runs those of the mechanisms, its reasons are said."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dp_service.bounding.contributions import Contributions
from dp_service.mechanisms import Currency, Histogram
from dp_service.mechanisms.bounded import TwoLooks
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.queries import table_contributions
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.policy import parse_policy
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.choosing import chosen
from dp_service.terms import Answering
from gris_cli.__main__ import main
from gris_data.bound.source import Columns
from gris_data.domain.canonical_pairs import Source
from gris_data.domain.member_data import read_pairs
from gris_data.errors import InputError
from gris_lab.bound.contributions import BoundedCounts, DataFile, counts_of_file
from gris_lab.bound.looks import BothLooks, OneLook, Question, Sketch, Trials, Worth
from gris_lab.bound.proposal import TradeOff, Tried, proposal
from gris_lab.bound.search import USEFUL, Quality, best
from gris_lab.bound.stated import Stated, counts_of_stated
from gris_lab.simulation import Draws
from tests.support.command_line import run_json, run_text

ROOT = Path(__file__).resolve().parents[2]
FEEDBACK = ROOT / "examples" / "cofacts" / "feedback.parquet"
ARTICLES = Columns("member_id", ("article_id",))
CURRENCY = Currency(Fraction("0.15"), Fraction("1e-10"))
QUESTION = Question(CURRENCY, 50, 1, 1000)
OF_COFACTS = ["--input", str(FEEDBACK), "--member", "member_id", "--elements", "article_id", "--other-period"]
STATED = ["--members", "9000", "--element-count", "500", "--per-member", "2,10,40,200"]
QUICK = ["--trials", "4", "--seed", "1", "--units", "5", "--units", "20"]


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run the command with --json and return what it prints."""
    return run_json(capsys, "plan", "bound", *arguments)


@pytest.fixture(scope="module")
def cofacts() -> BoundedCounts:
    """What bounds leave of the articles."""
    return counts_of_file(DataFile(FEEDBACK, ARTICLES, False, "1GB"), 50, 75)


def test_a_bound_leaves_the_sum_of_the_chances(tmp_path: Path) -> None:
    """Of each member that holds an element: Delta_0 out of all its elements, or out of those among the M largest."""
    chosen, held = random.Random(1), defaultdict(set)
    for _ in range(3000):
        held[f"m{int(chosen.paretovariate(0.8)) % 70}"].add(f"é{int(chosen.paretovariate(0.5)) % 50}")
    path = tmp_path / "rows.csv"
    rows = [
        f"{member},{element},{place % 2}"
        for member, own in held.items()
        for element in own
        for place in range(2)
    ]
    path.write_text("\n".join(["who,what,more", *rows]), encoding="utf-8")
    found = counts_of_file(DataFile(path, Columns("who", ("what",)), False, "1GB"), 3, 4)
    counts: dict[str, int] = defaultdict(int)
    for element in itertools.chain.from_iterable(held.values()):
        counts[element] += 1
    assert found.counts.tolist() == sorted(counts.values(), reverse=True)
    names = {element for element, _ in sorted(counts.items(), key=lambda each: -each[1])[:4]}
    assert sorted(counts.values())[-5] < sorted(counts.values())[-4]
    assert found.heaviness.pairs == sum(counts.values())
    assert found.bounds[-1] >= max(map(len, held.values())) > found.bounds[-2]
    for bound in found.bounds:
        left: dict[str, float] = defaultdict(float)
        within: dict[str, float] = defaultdict(float)
        for own in held.values():
            for element in own:
                left[element] += min(1.0, bound / len(own))
                within[element] += min(1.0, bound / len((own & names) | {element}))
        assert sorted(found.under(bound)) == pytest.approx(sorted(left.values()))
        few = sorted(within[element] for element in names)
        assert sorted(found.within_names(bound)[:4]) == pytest.approx(few)
        assert found.within_names(bound)[:16].sum() <= found.counts[:16].sum()


def contributions_of_cofacts() -> Contributions:
    """Return the pairs in the order of a salted hash."""
    with read_pairs(Source(FEEDBACK, "member_id", "article_id"), delta_0=1, salt=b"another") as pairs:
        return pairs.contributions


def counted(contributions: Contributions) -> Any:
    """Return the counts of all elements."""
    return np.bincount(contributions.elements, minlength=contributions.element_count)


def test_the_hash_leaves_what_is_expected(cofacts: BoundedCounts) -> None:
    """Within five standard deviations for each of the largest elements; a count of half the chances would not be."""
    contributions = contributions_of_cofacts()
    order = np.argsort(-counted(contributions), kind="stable")[:200]
    for bound in (1, 4, 16):
        expected = cofacts.under(bound)[:200]
        real = np.sort(counted(contributions.bounded(bound))[order])
        deviation = np.sqrt(np.maximum(expected, 1))
        # Equal counts are in another order here and there.
        assert np.all(np.abs(real - np.sort(expected)) <= 5 * np.sort(deviation))


def worth_by_hash(looks: BothLooks, runs: int) -> tuple[float, float]:
    """Return what two looks find, and their error, where the hash bounds members anew within the names."""
    contributions = contributions_of_cofacts()
    counts = counted(contributions)
    top = np.argsort(-counts, kind="stable")[: QUESTION.k]
    mechanism: TwoLooks = looks.mechanism(QUESTION)
    first = Histogram.from_element_order(counted(contributions.bounded(looks.names_bound)))
    found, errors = 0, []
    for run in range(runs):
        noise = [KeyedNoise(KeyedStream(bytes([look, run] + 30 * [0]))) for look in (1, 2)]
        names = np.sort(mechanism.draw_names(first, noise[0]))
        others = np.ones(contributions.element_count, dtype=np.bool_)
        others[names] = False
        within = counted(contributions.bounded(looks.counts_bound, others))[names]
        drawn = mechanism.draw_counts(Histogram.from_element_order(within), noise[1])
        shown = names[drawn.indices[: QUESTION.k]]
        assert drawn.noisy_counts is not None
        errors.append(np.abs(drawn.noisy_counts[: QUESTION.k] - counts[shown]).mean())
        found += np.isin(shown, top).sum()
    return found / runs, float(np.mean(errors))


@pytest.mark.slow
@pytest.mark.parametrize(
    "looks", [BothLooks(10, 2, 8, Fraction(3, 8)), BothLooks(20, 4, 2, Fraction(1, 4))], ids=str
)
def test_two_looks_are_worth_what_they_are_with_the_hash(cofacts: BoundedCounts, looks: BothLooks) -> None:
    """Fixed seeds: one element and a twentieth of the error apart at most, also where Delta_2 cuts much."""
    worth = Trials(cofacts, QUESTION, Draws(1), 200).two_looks(looks)
    found, error = worth_by_hash(looks, 200)
    assert worth.found == pytest.approx(found, abs=1)
    assert worth.error == pytest.approx(error, rel=0.05)


@pytest.mark.slow
def test_a_sketch_is_worth_what_the_mechanisms_are(cofacts: BoundedCounts) -> None:
    """Normal noise and a threshold by it: one element and a tenth of the error apart at most, fixed seeds."""
    sketch, trials = Sketch(cofacts, QUESTION, 1), Trials(cofacts, QUESTION, Draws(1), 30)
    ones = dict(sketch.one_looks(10))
    twos = dict(sketch.both_looks(10, (Fraction(3, 8),)))
    for look in (OneLook(10, 1), OneLook(10, 32), OneLook(10, 256)):
        worth = trials.one_look(look)
        assert ones[look].found == pytest.approx(worth.found, abs=1)
        assert ones[look].shown == pytest.approx(worth.shown, abs=1)
        assert ones[look].error == pytest.approx(worth.error, rel=0.1)
    for looks in (BothLooks(10, 1, 2, Fraction(3, 8)), BothLooks(10, 32, 64, Fraction(3, 8))):
        worth = trials.two_looks(looks)
        assert twos[looks].found == pytest.approx(worth.found, abs=1)
        assert twos[looks].error == pytest.approx(worth.error, rel=0.1)


def worth(found: float, error: float | None, units: float = 10, *, counts: float = 200) -> Worth:
    """Return what a setting is worth, if counts are so large."""
    return Worth(units, found, found, error, 0.0 if error is None else error / counts)


@pytest.mark.parametrize(
    ("tried", "bound"),
    [
        ([worth(40, 10), worth(45, 90)], 2),
        ([worth(44.5, 10), worth(45, 90)], 1),
        ([worth(44.5, 10), worth(45, 10.9)], 2),
        ([worth(44.5, 10), worth(45, 11.1)], 1),
        ([worth(0, None), worth(0.5, 50)], 2),
        ([worth(0, None), worth(0, None)], 1),
        ([worth(45, 10), worth(45, 10)], 1),
        ([worth(46.5, 10), worth(47, 19)], 2),
        ([worth(46.5, 10), worth(47, 21)], 1),
    ],
)
def test_the_best_finds_nearly_as_many_and_is_exact(tried: list[Worth], bound: int) -> None:
    """One element of 50 is nearly as many, and a tenth more error nearly as exact; useful ones come before others."""
    looks = [(OneLook(10, place + 1), each) for place, each in enumerate(tried)]
    assert best(looks, 50, USEFUL) == OneLook(10, bound)


TWO = BothLooks(20, 4, 8, Fraction(1, 4))


@pytest.mark.parametrize(
    ("quality", "units", "reason"),
    [
        (
            USEFUL,
            20,
            "the fewest of these units that find 47 of 50 with counts that are off by 10 % on average",
        ),
        (Quality(Fraction("0.9"), Fraction("0.13")), 10, "the fewest of these units that find 45 of 50"),
        (Quality(Fraction("0.9"), Fraction("0.05")), 40, "the fewest of these units"),
        # Nobody finds all 50: at most 47.2, of which 46.2 are nearly as many.
        (Quality(Fraction(1), Fraction("0.1")), 20, "none of these units find 50 of 50"),
        # Nobody is off by less than 4.5 %, of which 5 % is nearly as exact.
        (Quality(Fraction("0.9"), Fraction("0.01")), 40, "none of these units"),
    ],
)
def test_the_fewest_units_whose_answers_are_useful_are_proposed(
    cofacts: BoundedCounts, quality: Quality, units: int, reason: str
) -> None:
    """Or, if none are, the fewest that come nearly as close as any; and it says so."""
    tried = (
        Tried(OneLook(10, 8), worth(45, 24)),
        Tried(OneLook(20, 8), worth(45, 23)),
        Tried(TWO, worth(47, 12)),
        Tried(OneLook(40, 8), worth(47.2, 9)),
    )
    made = proposal(TradeOff(tried, worth(34, 13)), cofacts, QUESTION, quality)
    assert made.proposed.look.units == units
    assert reason in made.reasons[0]
    if units == 20:
        assert made.proposed.look == TWO
        assert "For as many units one look with Delta_0 = 8 and 20 units finds 45.0" in " ".join(made.reasons)


def test_where_nothing_is_shown_the_fewest_units_are_proposed(cofacts: BoundedCounts) -> None:
    """Whatever the price: no setting is better than another."""
    tried = (Tried(OneLook(10, 8), worth(0, None)), Tried(TWO, worth(0, None)))
    made = proposal(TradeOff(tried, worth(0, None)), cofacts, QUESTION)
    assert made.proposed == tried[0]
    assert "none of these units" in made.reasons[0]


@pytest.mark.parametrize("flags", [("--right", "0"), ("--right", "1.01"), ("--error", "0")])
def test_a_quality_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, str]
) -> None:
    """A part of the names, and an error above 0: by the option, with what it got."""
    assert main(["plan", "bound", *STATED, *QUICK, *flags]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{flags[0]}: expected a part above 0" in said
    assert said.endswith(f"got {flags[1]}")


@pytest.mark.slow
def test_the_command_proposes_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each setting and one for UnkGumb; powers of two; two looks are better; and what data may tell."""
    printed = run_text(capsys, "plan", "bound", *OF_COFACTS, *QUICK)
    assert "outside of the guarantee" in printed
    assert "of another period" in printed
    assert "Bounds are powers of two" in printed
    found = reported(capsys, *OF_COFACTS, *QUICK)
    rows, proposed = found["trade_off"], found["proposal"]
    assert ["one look", "two looks", "one look", "two looks", "UnkGumb"] == [row["mechanism"] for row in rows]
    assert all(row["bound"].bit_count() == 1 for row in rows[:-1])
    assert rows[3]["error"] < rows[2]["error"]
    assert rows[3]["found"] > 46
    assert rows[4]["found"] < 37
    assert (proposed["mechanism"], proposed["units"], proposed["most_names"]) == ("two looks", 20, 75)
    assert [Fraction(proposed["names_share"]) * 8 % 1] == [0]
    assert any("outside of the guarantee" in reason for reason in proposed["reasons"])
    assert "contributions: {bound: in_query, delta_0: " in printed
    names = contributions_of(proposed["policy"]).names
    assert names is not None
    assert (names.share, names.max_names) == (Fraction(proposed["names_share"]), 75)


@pytest.mark.slow
def test_a_block_lets_the_service_choose(cofacts: BoundedCounts, capsys: pytest.CaptureFixture[str]) -> None:
    """What it expects is a little less than what is so; a policy with it gives a top 1 to UnkGumb, and a top 50 not."""
    proposed = reported(capsys, *OF_COFACTS, *QUICK, "--choose")["proposal"]
    block = contributions_of(proposed["policy"])
    choice = block.choice
    assert choice is not None
    assert choice.among == [Answering.UNBOUNDED, Answering.TWO_LOOKS, Answering.ONE_LOOK]
    assert choice.units == [5, 20]
    top = slice(None, 50)
    for kept, bound in ((choice.kept, block.delta_0), (choice.kept_names, proposed["delta_1"])):
        assert kept is not None
        left = cofacts.under(bound)[top].sum() / cofacts.counts[top].sum()
        assert left / 2 < kept <= left
        assert len(str(float(kept)).replace("0", "").replace(".", "")) == 1
    (expected,) = choice.expected.values()
    assert [each.rank for each in expected.root] == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1001]
    for each in expected.root:
        assert cofacts.counts[each.rank - 1] / 2 < each.count <= cofacts.counts[each.rank - 1]
        assert len(str(each.count).rstrip("0")) == 1
    assert any("rounded down to one digit" in reason for reason in proposed["reasons"])
    for k in (1, 50):
        query = HistogramQuery("t", ("article_id",), Measure.DISTINCT_MEMBERS, k=k)
        found = chosen(query, parse_policy(policy_of(proposed["policy"])), now=0)
        (taken,) = [each for each in found.among if each.resolution == found.resolution]
        assert taken.finds_all
        assert (taken.answering is Answering.UNBOUNDED) is (k == 1)


def test_a_choice_of_one_look_has_no_second_look(capsys: pytest.CaptureFixture[str]) -> None:
    """A single unit is never shared by two looks; of stated members the column only names what is expected."""
    few = ["--units", "1", "--trials", "2", "--seed", "1"]
    proposed = reported(capsys, *STATED, *few, "--choose", "--elements", "article_id")["proposal"]
    choice = contributions_of(proposed["policy"]).choice
    assert choice is not None
    assert choice.among == [Answering.UNBOUNDED, Answering.ONE_LOOK]
    assert (choice.units, choice.kept_names) == ([1], None)
    # There are 500 elements, fewer than UnkGumb would fetch.
    assert choice.expected["article_id"].root[-1].rank == 500


def contributions_of(block: str) -> table_contributions.Contributions:
    """Return what the block of a policy says."""
    found = parse_policy(policy_of(block)).tables[0].contributions
    assert found is not None
    return found


def policy_of(block: str) -> str:
    """Return a policy with this block."""
    return f"""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: m
    {block}
    measures: {{distinct_members: true}}
    columns:
      article_id: {{type: string, group_by: true}}
"""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same table, and the same picture to the byte."""
    found = []
    for name in ("first.svg", "second.svg"):
        out = tmp_path / name
        found.append((reported(capsys, *STATED, *QUICK, "--out", str(out)), out.read_bytes()))
    assert found[0] == found[1]
    assert b"<svg" in found[0][1]


@pytest.mark.slow
def test_bounds_that_are_given_are_tried_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever they are, and it is not said that they were rounded."""
    found = reported(capsys, *OF_COFACTS, *QUICK, "--bound", "7", "--bound", "100000")
    assert {row["bound"] for row in found["trade_off"][:-1]} == {7}
    reasons = " ".join(found["proposal"]["reasons"])
    assert "those that were given" in reasons
    assert "powers of two" not in reasons


def test_a_single_unit_is_never_shared(capsys: pytest.CaptureFixture[str]) -> None:
    """There are no two looks then."""
    found = reported(capsys, *STATED, "--units", "1", "--trials", "2", "--seed", "1", "--k", "3")
    assert [row["mechanism"] for row in found["trade_off"]] == ["one look", "UnkGumb"]


@pytest.mark.slow
def test_stated_members_are_as_heavy_as_stated() -> None:
    """Median, 90 %, 99 % and the largest, and as many members; ten times the members are ten times the counts."""
    few = counts_of_stated(Stated(20_000, 5000, (4, 30, 200, 1000), 1.0), 50, 75)
    many = counts_of_stated(Stated(2_000_000, 5000, (4, 30, 200, 1000), 1.0), 50, 75)
    for found in (few, many):
        _, median, _, most, nearly_all, largest = found.heaviness.quantiles
        for got, wanted in ((median, 4), (most, 30), (nearly_all, 200), (largest, 1000)):
            assert got == pytest.approx(wanted, rel=0.15, abs=1)
    assert few.heaviness.members == 20_000
    assert many.heaviness.members == pytest.approx(2_000_000, rel=1e-6)
    assert many.counts[:50] == pytest.approx(100 * few.counts[:50], rel=0.1)


@pytest.mark.slow
def test_popularity_falls_by_the_power_that_is_stated() -> None:
    """With few elements a member the count of rank r is in proportion to r^-exponent; 0 makes all alike."""
    steep = counts_of_stated(Stated(10**6, 10_000, (1, 1, 1, 1), 1.0), 50, 75)
    flat = counts_of_stated(Stated(10**6, 100, (1, 1, 1, 1), 0.0), 50, 75)
    assert steep.counts[0] / steep.counts[9] == pytest.approx(10, rel=0.1)
    assert flat.counts[0] == pytest.approx(flat.counts[-1], rel=0.1)


@pytest.mark.slow
def test_members_who_hold_nearly_everything_need_a_bound_of_all_names() -> None:
    """As with words: Delta_2 is then about M, and not what is right for members with few elements."""
    question = Question(CURRENCY, 20, 1, 1000)
    chosen = {}
    for name, sizes in (("light", (1, 2, 3, 10)), ("heavy", (300, 800, 900, 990))):
        counts = counts_of_stated(Stated(20_000, 1000, sizes, 1.0), question.k, question.most_names)
        sketch = Sketch(counts, question, 1)
        looks = best(sketch.both_looks(20, (Fraction(1, 4),)), question.k, USEFUL)
        chosen[name] = looks.counts_bound
    assert chosen["light"] <= 4
    assert chosen["heavy"] == 32


@pytest.mark.parametrize("place", ["", "*/*.parquet"])
def test_a_folder_or_pattern_is_planned_for_as_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """With what its folders say, by both commands that read data; a row without a value is refused in it, too."""
    rows = (
        "SELECT i AS who, 'n' || i % 3 AS what, ['AT', 'FR'][1 + i % 2] AS country FROM range(60) AS rows(i)"
    )
    folder = tmp_path / "visits"
    duckdb.execute(f"COPY ({rows}) TO '{folder}' (FORMAT parquet, PARTITION_BY (country))")
    of_folder = ("--member", "who", "--elements", "what,country", "--other-period", "--k", "6", *QUICK)
    assert reported(capsys, "--input", str(folder / place), *of_folder)["proposal"]
    own = ("--data", str(folder / place), "--by", "country", "--member", "who", "--trials", "2")
    found = run_json(capsys, "plan", "found", *own, "--k", "2")["found"]
    assert [("AT", 30), ("FR", 30)] == sorted((row["element"], row["count"]) for row in found)
    duckdb.execute(
        f"COPY (SELECT 1::BIGINT AS who, NULL::VARCHAR AS what) TO '{folder / 'country=FR/z.parquet'}'"
    )
    assert main(["plan", "bound", "--input", str(folder / place), *of_folder]) == 2
    assert "a row: expected a value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected the names"),
        ("who,what\n", "there is nobody to plan for"),
        ("who,what\na,x\nb,\n", "line 3, column what: expected a value"),
        ("who,what\na,x\nb\n", "line 3, column what: the row has too few columns"),
        ("who,what\na,x\nb,y\n", "there are 2 different elements: fewer than the 3"),
        ("who,that\na,x\n", "there is no column what"),
    ],
)
def test_data_that_cannot_be_planned_for_are_refused(tmp_path: Path, content: str, message: str) -> None:
    """By line and column, and no value is repeated."""
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        counts_of_file(DataFile(path, Columns("who", ("what",)), False, "1GB"), 3, 5)
    assert caught.value.__context__ is None


def test_rows_without_values_are_left_out_if_asked(tmp_path: Path) -> None:
    """As `gris bound` leaves them out."""
    path = tmp_path / "rows.csv"
    path.write_text("who,what\na,x\n,x\nb,\na,y\n")
    found = counts_of_file(DataFile(path, Columns("who", ("what",)), True, "1GB"), 2, 3)
    assert found.counts.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --input, or --members"),
        ([*OF_COFACTS, *STATED], "give either --input, or --members"),
        (OF_COFACTS[:-1], "--input needs --other-period"),
        (OF_COFACTS[:2], "--input needs --member and --elements"),
        ([*OF_COFACTS, "--k", "7000"], "'--k'"),
        ([*OF_COFACTS, "--k", "0"], "'--k'"),
        ([*OF_COFACTS, "--units", "0"], "'--units'"),
        ([*OF_COFACTS, "--units", "-5"], "'--units'"),
        ([*OF_COFACTS, "--bound", "0"], "'--bound'"),
        ([*OF_COFACTS, "--bound", "1000001"], "'--bound'"),
        ([*OF_COFACTS, "--min-count", "0"], "'--min-count'"),
        ([*OF_COFACTS, "--epsilon-per", "nan"], "nan is no number"),
        ([*OF_COFACTS, "--epsilon-per", "0"], "epsilon_per must be"),
        ([*OF_COFACTS, "--delta", "1"], "delta must be"),
        ([*OF_COFACTS, "--delta", "-1"], "delta must be"),
        ([*OF_COFACTS, "--epsilon-per", "1e-20", *QUICK], "epsilon_per"),
        ([*OF_COFACTS, "--d-bar", "0"], "d_bar must be"),
        ([*OF_COFACTS, "--d-bar", "20000"], "d_bar must be"),
        ([*OF_COFACTS, "--memory", "much"], "--memory: expected a size"),
        ([*OF_COFACTS, "--out", "plan.txt"], "--out: expected a file named"),
        ([*OF_COFACTS, "--member", "nobody"], "there is no column nobody"),
        ([*STATED, "--choose"], "--choose needs --elements with one column"),
        (
            [*OF_COFACTS, "--elements", "article_id,day", "--choose"],
            "--choose needs --elements with one column",
        ),
        (STATED[:4], "are given together"),
        ([*STATED, "--members", "-1"], "--members: expected"),
        ([*STATED, "--element-count", "30"], "nobody can have 200 of 30"),
        ([*STATED, "--per-member", "1,2,3"], "--per-member: expected four numbers"),
        ([*STATED, "--per-member", "1,2,nan,4"], "--per-member: expected four numbers"),
        ([*STATED, "--per-member", "0,2,3,4"], "--per-member: expected four numbers"),
        ([*STATED, "--per-member", "4,3,2,1"], "numbers that do not fall"),
        ([*STATED, "--exponent", "-1"], "--exponent: expected"),
        ([*STATED, "--exponent", "1e400"], "'--exponent': 1e400 is no number"),
        ([*STATED, "--exponent", "nan"], "nan is no number"),
        (["--members", "9", "--element-count", "5", "--per-member", "1,1,1,1"], "fewer than the 50"),
    ],
)
def test_wrong_flags_are_refused_by_name(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """With exit code 2, before anything slow."""
    assert main(["plan", "bound", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
