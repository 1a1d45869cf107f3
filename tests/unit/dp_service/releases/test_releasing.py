"""From a plan and a histogram to a release: the parameters that were resolved are the ones that are drawn with."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import (
    fresh_noise_interval,
    gaussian_noise_interval,
    thresholded_interval,
)
from dp_service.mechanisms.known_gumb import KnownGumb
from dp_service.mechanisms.known_lap import KnownLap
from dp_service.mechanisms.mechanism import Mechanism
from dp_service.mechanisms.parameters import Currency
from dp_service.mechanisms.selection import Selection
from dp_service.mechanisms.unk_gumb import UnkGumb
from dp_service.mechanisms.unk_lap import UnkLap
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import UnusableParametersError, kind_of, require_usable, versions
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.plan import Plan
from dp_service.releases.release_ids import release_seed
from dp_service.releases.releasing import Released, release
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import ColumnType, CountNoise, MechanismName
from tests.support.dp_questions import POLICY
from tests.unit.dp_service.identities import GUMBEL, KEY
from tests.unit.dp_service.plans import PLAN

NAMES = [f"{letter}" for letter in "abcdefgh"]
COUNTS = [900, 870, 820, 790, 88, 85, 3, 1]
CURRENCY = Currency(Fraction(1, 4), Fraction(1, 100))
CONFIDENCE = 0.9
ALPHA = Fraction(1, 10)


def plan_of(mechanism: MechanismName, **changes: Any) -> Plan:
    """Return a plan over one text column, with tau = 2 and Delta = 3."""
    known = mechanism in {MechanismName.KNOWN_LAP, MechanismName.KNOWN_GUMB}
    parameters = dataclasses.replace(
        GUMBEL,
        mechanism=mechanism,
        epsilon_per=CURRENCY.epsilon_per,
        delta=CURRENCY.delta,
        tau=2,
        delta_l0=3,
        d_bar=None if known else 20,
        k=None,
        domain=tuple((name,) for name in [*NAMES, "nobody"]) if known else None,
    )
    parameters = dataclasses.replace(parameters, **changes)
    return dataclasses.replace(
        PLAN,
        columns=(("name", ColumnType.STRING),),
        parameters=parameters,
        row_limit=21,
        drawn_by=versions(parameters),
    )


def histogram() -> TypedHistogram:
    """Return what an engine answered."""
    return checked_histogram((ColumnType.STRING,), [NAMES], COUNTS, row_limit=21)


def drawn(plan: Plan, mechanism: Mechanism) -> tuple[list[str], Selection]:
    """Return the names of the domain, and what the mechanism itself draws from the plan's seed."""
    names, counts = list(NAMES), list(COUNTS)
    whole = histogram()
    if plan.parameters.domain is not None:
        names.append("nobody")
        counts.append(0)
        whole = TypedHistogram(whole.types, [(name,) for name in names], np.array(counts, dtype=np.int64))
    seed = release_seed(KEY, plan.specification, plan.data_version, whole.digest(), plan.fresh)
    return names, mechanism.run(Histogram.from_element_order(counts), KeyedNoise(KeyedStream(seed)))


LaplaceOrGumbel = KnownLap | KnownGumb | UnkLap | UnkGumb


def scale_of(plan: Plan) -> Fraction:
    """Return one over the scale of the noise in the counts of a plan."""
    mechanism = kind_of(plan.parameters).mechanism
    assert isinstance(mechanism, LaplaceOrGumbel)
    return mechanism.count_inverse_scale


MECHANISMS: list[tuple[MechanismName, dict[str, Any], LaplaceOrGumbel]] = [
    (MechanismName.KNOWN_LAP, {}, KnownLap(CURRENCY, delta_l0=3, tau=2)),
    (MechanismName.KNOWN_GUMB, {"k": 4}, KnownGumb(CURRENCY, k=4, tau=2)),
    (MechanismName.UNK_LAP, {}, UnkLap(CURRENCY, delta_l0=3, d_bar=20, tau=2)),
    (MechanismName.UNK_GUMB, {"k": 4}, UnkGumb(CURRENCY, k=4, d_bar=20, tau=2)),
]
GAUSSIAN_COUNTS: dict[str, Any] = {"k": 4, "count_noise": CountNoise.GAUSSIAN}
GAUSSIAN: list[tuple[MechanismName, dict[str, Any], LaplaceOrGumbel]] = [
    (
        MechanismName.KNOWN_GUMB,
        GAUSSIAN_COUNTS,
        KnownGumb(CURRENCY, k=4, tau=2, count_noise=CountNoise.GAUSSIAN),
    ),
    (
        MechanismName.UNK_GUMB,
        GAUSSIAN_COUNTS,
        UnkGumb(CURRENCY, k=4, d_bar=20, tau=2, count_noise=CountNoise.GAUSSIAN),
    ),
]


@pytest.mark.parametrize(("kind", "changes", "mechanism"), [*MECHANISMS, *GAUSSIAN])
def test_a_release_is_what_the_mechanism_draws_with_every_parameter(
    kind: MechanismName, changes: dict[str, Any], mechanism: LaplaceOrGumbel
) -> None:
    """Mechanism, epsilon, delta, tau, Delta, d_bar and k of the plan are those of the draw."""
    plan = plan_of(kind, **changes)
    assert mechanism == kind_of(plan.parameters).mechanism
    names, selection = drawn(plan, mechanism)
    found = release(plan, histogram(), KEY, confidence=CONFIDENCE)
    assert [(names[i],) for i in selection.indices] == found.elements
    assert selection.noisy_counts is not None
    assert found.noisy_counts is not None
    assert selection.noisy_counts.tolist() == found.noisy_counts.tolist()
    assert (selection.bottom, selection.ended_in_bottom) == (found.bottom, found.ended_in_bottom)
    assert mechanism.cost(len(found.elements), found.ended_in_bottom) == found.cost


def intervals_of(found: Released) -> list[tuple[int, int]]:
    """Return the intervals as pairs."""
    assert found.intervals is not None
    return list(zip(found.intervals.lower.tolist(), found.intervals.upper.tolist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "changes", "minimum"),
    [
        (MechanismName.KNOWN_LAP, {}, 0),
        (MechanismName.KNOWN_GUMB, {"k": 9}, 0),
        (MechanismName.UNK_GUMB, {"k": 4}, 1),
    ],
)
def test_counts_that_did_not_select_have_plain_intervals(
    kind: MechanismName, changes: dict[str, Any], minimum: int
) -> None:
    """The plain law at the asked confidence; nobody need have an element of a known domain, somebody has any other."""
    plan = plan_of(kind, **changes)
    found = release(plan, histogram(), KEY, confidence=CONFIDENCE)
    assert found.noisy_counts is not None
    inverse_scale = scale_of(plan)
    plain = fresh_noise_interval(found.noisy_counts, inverse_scale, alpha=ALPHA, minimum=minimum)
    assert IntervalKind.PLAIN is found.interval_kind
    assert list(zip(plain.lower.tolist(), plain.upper.tolist(), strict=True)) == intervals_of(found)


@pytest.mark.parametrize(
    ("kind", "k", "minimum"),
    [(MechanismName.KNOWN_LAP, 3, 0), (MechanismName.UNK_LAP, None, 1), (MechanismName.UNK_LAP, 2, 1)],
)
def test_counts_that_selected_have_intervals_given_that_they_are_shown(
    kind: MechanismName, k: int | None, minimum: int
) -> None:
    """Each count had to reach what came next in the whole release, or bottom: its interval takes that into account."""
    plan = plan_of(kind, k=k)
    found = release(plan, histogram(), KEY, confidence=CONFIDENCE)
    whole = release(plan_of(kind), histogram(), KEY, confidence=CONFIDENCE)
    assert found.noisy_counts is not None
    assert whole.noisy_counts is not None
    shown = len(found.elements)
    needed = [_needed(whole, element, shown) for element in found.elements]
    expected = thresholded_interval(
        found.noisy_counts,
        np.array(needed, dtype=np.int64),
        scale_of(plan),
        alpha=ALPHA,
        minimum=minimum,
    )
    assert IntervalKind.GIVEN_SHOWN is found.interval_kind
    assert list(zip(expected.lower.tolist(), expected.upper.tolist(), strict=True)) == intervals_of(found)


@pytest.mark.parametrize(("kind", "changes", "mechanism"), GAUSSIAN)
def test_gaussian_counts_have_intervals_of_their_own_law(
    kind: MechanismName, changes: dict[str, Any], mechanism: LaplaceOrGumbel
) -> None:
    """The variance is 4 tau^2 / e^2 = 256; Laplace intervals of the same zCDP would be wider."""
    found = release(plan_of(kind, **changes), histogram(), KEY, confidence=CONFIDENCE)
    assert found.noisy_counts is not None
    minimum = 0 if kind is MechanismName.KNOWN_GUMB else 1
    expected = gaussian_noise_interval(found.noisy_counts, Fraction(256), alpha=ALPHA, minimum=minimum)
    scale = mechanism.count_inverse_scale
    laplace = fresh_noise_interval(found.noisy_counts, scale, alpha=ALPHA, minimum=minimum)
    assert IntervalKind.PLAIN is found.interval_kind
    assert list(zip(expected.lower.tolist(), expected.upper.tolist(), strict=True)) == intervals_of(found)
    assert (laplace.upper > expected.upper).all()


@pytest.mark.parametrize("kind", [MechanismName.UNK_LAP, MechanismName.UNK_GUMB])
def test_groups_of_nobody_make_no_other_release(kind: MechanismName) -> None:
    """Engines may or may not answer with an element that no member has; the release is the same."""
    plan = plan_of(kind, k=None if kind is MechanismName.UNK_LAP else 4)
    empty = checked_histogram(
        (ColumnType.STRING,), [[*NAMES, "nobody", "none"]], [*COUNTS, 0, 0], row_limit=21
    )
    one, other = (release(plan, each, KEY, confidence=CONFIDENCE) for each in (histogram(), empty))
    assert (one.release_id, one.elements) == (other.release_id, other.elements)


def _needed(whole: Released, element: tuple[Any, ...], shown: int) -> int:
    """Return the noisy count that an element needed: to beat the first that is not shown, and bottom."""
    assert whole.noisy_counts is not None
    floors = [] if whole.bottom is None else [whole.bottom + 1]
    if shown < len(whole.elements):
        first_left_out, count = whole.elements[shown], int(whole.noisy_counts[shown])
        floors.append(count if element < first_left_out else count + 1)
    return max(floors)


def test_a_list_that_was_cut_does_not_end_in_bottom() -> None:
    """There is more above bottom than is shown, and a reader of the list should not think otherwise."""
    whole = release(plan_of(MechanismName.UNK_LAP), histogram(), KEY, confidence=CONFIDENCE)
    cut = release(plan_of(MechanismName.UNK_LAP, k=1), histogram(), KEY, confidence=CONFIDENCE)
    assert len(whole.elements) > 1
    assert whole.ended_in_bottom
    assert not cut.ended_in_bottom
    assert whole.bottom == cut.bottom


def test_a_plan_speaks_of_the_running_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism that draws in another way makes other releases of the same question."""
    resolution = resolve(
        HistogramQuery("engagement", ("cohort",), Measure.DISTINCT_MEMBERS), parse_policy(POLICY), now=0
    )
    before = plan_for(resolution, "v", KEY, IssueContext(0, b""))
    monkeypatch.setattr(UnkLap, "version", UnkLap.version + 1)
    after = plan_for(resolution, "v", KEY, IssueContext(0, b""))
    assert before.specification != after.specification
    assert before.query_id != after.query_id


UNUSABLE = [
    ("delta: 1e-2", "delta: 1e-300"),
    ("epsilon_per: 1\n", "epsilon_per: 1e-12\n"),
    # Laplace noise of scale 6e8 could be drawn.
    ("epsilon_per: 1\n", "epsilon_per: 1e-8\ncount_noise: gaussian\n"),
]


@pytest.mark.parametrize(("old", "new"), UNUSABLE)
def test_a_policy_without_drawable_noise_is_told_at_the_start(old: str, new: str) -> None:
    """A scale that no sampler can draw is the policy's fault and no question's."""
    require_usable(parse_policy(POLICY))
    with pytest.raises(UnusableParametersError):
        require_usable(parse_policy(POLICY.replace(old, new)))
