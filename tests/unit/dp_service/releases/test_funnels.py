"""How many reached each step: sums of what is drawn, and intervals that cover them, from the exact law of the noise."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.added_noise import added_gaussian_width, added_laplace_width
from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.parameters.release import Listing, ReleaseParameters
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.parts import counts_of
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.releasing import shown
from dp_service.terms import ColumnType
from tests.support.masses import gaussian_mass, laplace_mass
from tests.support.queries.buckets import NOW

POLICY = """
epsilon_per: 0.25
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    {}
    measures: {{distinct_members: true}}
    columns:
      member: {{type: string}}
      event: {{type: string, filter: [in]}}
      land: {{type: string, group_by: true, domain: [at, de]{}}}
"""
BLOCKS = {
    "laplace": ("", ", delta: 1"),
    "gaussian": ("contributions: {bound: in_query, units: 8}", ", typical: 1"),
}
STEPS = "FUNNEL_COUNT(STEPS(event = 'a', event = 'b', event = 'c', event = 'd'), CORRELATE_BY(member))"
TYPES = (ColumnType.STRING, ColumnType.INT64)
# Members by the deepest step of four, in two lands.
DATA = [(900, 300, 80, 5, 400, 90, 20, 0), (0, 0, 0, 0, 0, 0, 0, 0), (3, 0, 40, 1, 0, 0, 0, 700)]


def resolution(block: str, clauses: str = "", *, having: str = "") -> Resolution:
    """Return a funnel by land."""
    under = parse_policy(POLICY.format(*BLOCKS[block]))
    sql = f"SELECT land, {STEPS} AS n FROM t GROUP BY land {having} {clauses}"  # noqa: S608 - its own
    return resolve(parse_sql(sql, under), under, now=NOW)


def drawn(parameters: ReleaseParameters, counts: tuple[int, ...], seed: int) -> MechanismOutput:
    """Draw a release."""
    elements, kind = list(parameters.domain or ()), kind_of(parameters)
    rows = TypedHistogram(TYPES, elements, np.array(counts, dtype=np.int64) * kind.denominator)
    return kind.draw(rows, parameters.domain, KeyedNoise(KeyedStream(seed.to_bytes(32, "big"))))


def truth(counts: tuple[int, ...]) -> list[int]:
    """Return how many reached each step of each land."""
    halves = counts[:4], counts[4:]
    return [sum(half[step:]) for half in halves for step in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("counts", DATA)
def test_intervals_cover_how_many_reached_a_step(block: str, counts: tuple[int, ...]) -> None:
    """Of 300 releases of 8 counts each, under fixed keys, at 95 %."""
    parameters = resolution(block).parameters
    expected = np.array(truth(counts))
    covered = 0
    for seed in range(300):
        view = shown(parameters, drawn(parameters, counts, seed), confidence=0.95)
        assert view.intervals is not None
        assert view.interval_kind is IntervalKind.PLAIN
        covered += int(((view.intervals.lower <= expected) & (expected <= view.intervals.upper)).sum())
    assert 0.93 < covered / (300 * 8) <= 1


@pytest.mark.parametrize("block", BLOCKS)
def test_counts_are_sums_of_those_of_the_deepest_steps(block: str) -> None:
    """Of the same draw, in the order of the steps; a funnel costs what one count costs."""
    asked = resolution(block)
    kind = kind_of(asked.parameters)
    output = drawn(asked.parameters, DATA[0], 1)
    deepest = kind_of_deepest(asked.parameters, DATA[0], 1)
    by_element = np.empty(8, dtype=np.int64)
    by_element[output.selection.indices] = counts_of(output)
    assert by_element.tolist() == truth(tuple(deepest.tolist()))
    assert asked.parameters.listing == Listing(in_element_order=True)
    view = shown(asked.parameters, output, confidence=0.95)
    assert output.selection.indices[list(view.places)].tolist() == list(range(8))
    assert kind.mechanism.worst_case_cost().information == (1 if block == "laplace" else 8)


def kind_of_deepest(parameters: ReleaseParameters, counts: tuple[int, ...], seed: int) -> np.ndarray:
    """Return the noisy counts of the deepest steps, in the order of the domain."""
    output = drawn(replace(parameters, funnel=()), counts, seed)
    found = np.empty(8, dtype=np.int64)
    found[output.selection.indices] = counts_of(output)
    return found


def test_a_list_that_is_cut_in_the_order_of_its_counts_covers_together() -> None:
    """Which steps are shown depends on their noise."""
    asked = resolution("laplace", "ORDER BY n DESC LIMIT 2")
    view = shown(asked.parameters, drawn(asked.parameters, DATA[0], 2), confidence=0.95)
    assert (view.count, view.interval_kind) == (2, IntervalKind.SIMULTANEOUS)
    filtered = resolution("laplace", having="HAVING COUNT(DISTINCT member) > 100")
    view = shown(filtered.parameters, drawn(filtered.parameters, DATA[0], 2), confidence=0.95)
    assert view.interval_kind is IntervalKind.SIMULTANEOUS


@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 1000)])
def test_widths_are_those_of_the_exact_law(draws: int, alpha: Fraction) -> None:
    """Added up value by value, with masses from interval arithmetic: never narrower, and at most 1 wider."""
    scale, variance = Fraction(1, 3), Fraction(7)
    laws = [
        (
            [float(laplace_mass(scale, z).mid) for z in range(-90, 91)],
            added_laplace_width(scale, draws, alpha),
        ),
        (
            [float(gaussian_mass(variance, z).mid) for z in range(-40, 41)],
            added_gaussian_width(variance, draws, alpha),
        ),
    ]
    for masses, width in laws:
        law = np.ones(1)
        for _ in range(draws):
            law = np.convolve(law, masses)
        centre = law.size // 2
        missed = [1 - law[centre - w : centre + w + 1].sum() for w in (width - 2, width)]
        assert missed[1] <= float(alpha) + 1e-9
        assert missed[0] > float(alpha) - 1e-9


def test_no_width_is_wider_than_that_of_each_draw_by_itself() -> None:
    """Where the law has too many values, or alpha is tiny, it is that."""
    for draws, alpha in itertools.product((2, 10), (Fraction(1, 20), Fraction(1, 10**12))):
        for scale in (Fraction(1), Fraction(1, 10**6)):
            assert added_laplace_width(scale, draws, alpha) <= draws * noise_half_width(scale, alpha / draws)
        for variance in (Fraction(3), Fraction(10**12)):
            assert added_gaussian_width(variance, draws, alpha) <= draws * gaussian_half_width(
                variance, alpha / draws
            )
    huge = Fraction(1, 10**6)
    assert added_laplace_width(huge, 3, Fraction(1, 20)) == 3 * noise_half_width(huge, Fraction(1, 60))
