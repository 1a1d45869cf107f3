"""What is expected of curves, and what is found: tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.accuracy import GumbelThreshold, LaplaceThreshold
from dp_service.mechanisms import Currency, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.count_noise import gaussian_variance
from dp_service.mechanisms.intervals import gaussian_half_width, noise_half_width
from dp_service.releases.kinds.gumbel import gumbel_gap, gumbel_threshold
from dp_service.releases.kinds.laplace import laplace_threshold
from dp_service.releases.kinds.parts import HALF, MOSTLY
from gris_data.sheets import Cell, Column, Sheet, percent
from gris_lab.simulation import CurvePoint, Found, Planned


@dataclass(frozen=True)
class PlannedQuestion:
    """A question for the `k` largest elements, and what a policy would say of its column.

    `d_bar` is how many elements of an unknown domain are fetched; None: the domain is known, and has `size` elements if
    there is a histogram of it. `delta_l0` is how many of them a member can have; None: any number.
    """

    k: int
    d_bar: int | None
    tau: int
    delta_l0: int | None
    size: int | None


def planned(
    question: PlannedQuestion, epsilons: Sequence[Fraction], delta: Fraction
) -> tuple[Sequence[Planned], Sheet]:
    """Return the mechanism that a policy leads to, for each epsilon_per, and what it needs of counts."""
    currencies = [Currency(each, delta) for each in epsilons]
    if question.d_bar is None:
        known = [_known_mechanism(question, each) for each in currencies]
        return known, known_sheet(known)
    unknown = [_unknown_mechanism(question, question.d_bar, each) for each in currencies]
    return unknown, needed_sheet(unknown)


def _unknown_mechanism(question: PlannedQuestion, d_bar: int, currency: Currency) -> UnkLap | UnkGumb:
    if question.delta_l0 is None:
        return UnkGumb(currency, question.k, d_bar, question.tau)
    return UnkLap(currency, question.delta_l0, d_bar, question.tau)


def _known_mechanism(question: PlannedQuestion, currency: Currency) -> KnownLap | KnownGumb:
    if question.delta_l0 is not None:
        return KnownLap(currency, question.delta_l0, question.tau)
    # A larger k asks for all of the domain.
    k = question.k if question.size is None else min(question.k, question.size)
    return KnownGumb(currency, k, question.tau)


def known_sheet(mechanisms: Sequence[KnownLap | KnownGumb]) -> Sheet:
    """Return how far apart counts of a known domain must lie to be ranked rightly, and how exact they will be."""
    return Sheet(
        (
            Column("mechanism", "mechanism", is_text=True),
            Column("epsilon_per", "epsilon_per"),
            Column("ordered_mostly", "in order 95 %, from"),
            Column("half_width", "interval +-"),
            Column("gaussian_half_width", "Gaussian counts +-"),
        ),
        [_known(mechanism) for mechanism in mechanisms],
        (
            (
                "in order from",
                "so far apart two counts are ranked in their order before noise; no element is left out",
            ),
            ("intervals", "of 95 %; KnownLap's hold before the largest are picked"),
        ),
    )


def _known(mechanism: KnownLap | KnownGumb) -> tuple[Cell, ...]:
    inverse_scale = mechanism.count_inverse_scale
    epsilon_per = mechanism.currency.epsilon_per
    gap, gaussian = LaplaceThreshold(inverse_scale, 0).needed(MOSTLY), None
    if isinstance(mechanism, KnownGumb):
        gap = gumbel_gap(epsilon_per, mechanism.tau)
        gaussian = gaussian_half_width(gaussian_variance(inverse_scale), 1 - MOSTLY)
    return (mechanism.name.value, epsilon_per, gap, noise_half_width(inverse_scale, 1 - MOSTLY), gaussian)


def needed_sheet(mechanisms: Sequence[UnkLap | UnkGumb]) -> Sheet:
    """Return which counts are found by each mechanism, and how exact they will be."""
    return Sheet(
        (
            Column("mechanism", "mechanism", is_text=True),
            Column("epsilon_per", "epsilon_per"),
            Column("found_half", "found 50 %, from"),
            Column("found_mostly", "found 95 %, from"),
            Column("half_width", "interval +-"),
            Column("gaussian_half_width", "Gaussian counts +-"),
        ),
        [_needed(mechanism) for mechanism in mechanisms],
        (
            (
                "found from",
                "so far above the count at rank d_bar + 1, which is 0 where there are fewer elements",
            ),
            ("intervals", "of 95 %; UnkLap's are wider close to its threshold"),
        ),
    )


def _needed(mechanism: UnkLap | UnkGumb) -> tuple[Cell, ...]:
    inverse_scale = mechanism.count_inverse_scale
    threshold: GumbelThreshold | LaplaceThreshold
    gaussian: int | None = None
    if isinstance(mechanism, UnkGumb):
        threshold = gumbel_threshold(mechanism)
        gaussian = gaussian_half_width(gaussian_variance(inverse_scale), 1 - MOSTLY)
    else:
        threshold = laplace_threshold(mechanism)
    return (
        mechanism.name.value,
        mechanism.currency.epsilon_per,
        threshold.needed(HALF),
        threshold.needed(MOSTLY),
        noise_half_width(inverse_scale, 1 - MOSTLY),
        gaussian,
    )


def curve_sheet(points: Sequence[CurvePoint]) -> Sheet:
    """Return how many elements were returned at each point."""
    return Sheet(
        (
            Column("d_bar", "d_bar"),
            Column("epsilon_per", "epsilon_per"),
            Column("lower", "25 %"),
            Column("mean", "mean"),
            Column("upper", "75 %"),
        ),
        [(each.d_bar, each.epsilon_per, each.lower, each.mean, each.upper) for each in points],
        (("", "elements returned; these numbers come from true counts and are not private"),),
    )


def expected_sheet(mechanisms: Sequence[Planned], runs: Sequence[Found]) -> Sheet:
    """Return what a question costs and finds on average, beside the worst case that is reserved for it."""
    return Sheet(
        (
            Column("mechanism", "mechanism", is_text=True),
            Column("epsilon_per", "epsilon_per"),
            Column("worst_case", "information at most"),
            Column("information", "expected"),
            Column("calls", "calls"),
            Column("recall", "of the k largest found", percent),
            Column("error", "a count is off by"),
        ),
        [
            (
                mechanism.name.value,
                mechanism.currency.epsilon_per,
                run.outcome.worst_case,
                run.outcome.information,
                run.outcome.calls,
                run.outcome.recall,
                run.outcome.error,
            )
            for mechanism, run in zip(mechanisms, runs, strict=True)
        ],
        (("", "averages over the runs, from true counts: for the owner of the data alone"),),
    )


def found_sheet(epsilons: Sequence[Fraction], runs: Sequence[Found]) -> Sheet:
    """Return how often each element was found, for each epsilon_per."""
    return Sheet(
        (
            Column("epsilon_per", "epsilon_per"),
            Column("rank", "#"),
            Column("element", "element", is_text=True),
            Column("count", "true count"),
            Column("noisy_count", "noisy, one run"),
            Column("share", "found", percent),
            Column("expected", "expected", percent),
        ),
        [
            (epsilon_per, each.rank, each.element, each.count, each.noisy_count, each.share, each.expected)
            for epsilon_per, run in zip(epsilons, runs, strict=True)
            for each in run.elements
        ],
        (("", "true counts are shown here and are not private"),),
    )
