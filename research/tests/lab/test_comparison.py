"""The alternatives keep their promises, by exact enumeration, and are what their papers say they are."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.mechanisms import Cost, Currency, Histogram, KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.unk_gumb import choose_threshold_index
from dp_service.mechanisms.unk_lap import threshold_shift
from dp_service.noise import KeyedNoise, KeyedStream, LogWeights, NoiseSource
from research.lab.mechanisms import (
    ComparedMechanism,
    FixedThreshold,
    LaplaceLimitDom,
    LimitDom,
    OneShotLaplace,
    Peeling,
    PermuteAndFlip,
    Served,
    StrictLimitDom,
    catalogue,
    fixed_threshold,
    limited_domain,
)
from research.lab.mechanisms.fixed_threshold import fixed_shift
from research.lab.mechanisms.limited_domain import selection_weights
from research.lab.mechanisms.permute_and_flip import geometric
from research.lab.mechanisms.standard_deviations import epsilon_of_all_choices, standard_deviations
from research.tests.lab.promises import DELTA, PROMISES, Promise, currency, laws_of, over_whole_histogram
from tests.unit.dp_service.mechanisms.enumeration import Law, output_law
from tests.unit.dp_service.mechanisms.neighbours import Counts, Release, all_histograms, laws_over, neighbouring_pairs
from tests.support.examples import long_but
from tests.support.some import some

FIRST = {promise.mechanism.label: promise for promise in reversed(PROMISES)}

TRUNCATION = 1e-6
"""What a promise of delta = 0 may miss for the mass beyond the radius."""


@pytest.mark.parametrize(
    "promise",
    long_but(lambda promise: promise in FIRST.values(), PROMISES),
    ids=lambda promise: str(promise.mechanism.label),
)
def test_every_mechanism_keeps_its_promise(promise: Promise) -> None:
    """At the promised epsilon no more than delta is left over, the mass beyond the radius counted against it."""
    assert promise.worst_delta() <= promise.mechanism.guarantee().delta + TRUNCATION


def test_the_promises_are_no_empty_ones() -> None:
    """Every delta is at most 0.05: a larger one might be kept by anything."""
    assert all(promise.mechanism.guarantee().delta <= 0.0501 for promise in PROMISES)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_limit_dom_keeps_its_promise_at_the_price_of_each_outcome(k: int) -> None:
    """Pay what you get: j elements and bottom are j + 1 choices, k without bottom."""
    histograms = all_histograms(4, 2)
    for mechanism in (LimitDom(currency(1), k, 3, 1), StrictLimitDom(currency(1), k, 3, 1)):
        laws = laws_of(mechanism, histograms, 0)
        for first, second in some(neighbouring_pairs(histograms, tau=1, delta_l0=4)):
            excess = math.fsum(
                max(0.0, probability - math.exp(choices_of(outcome)) * laws[second].mass.get(outcome, 0.0))
                for outcome, probability in laws[first].mass.items()
            )
            assert excess <= DELTA


def choices_of(outcome: Release) -> int:
    """Return how many choices an outcome shows."""
    return len(outcome.elements) + outcome.ended_in_bottom


def same_law(first: Law[Release], second: Law[Release]) -> bool:
    """Return whether two laws are equal but for rounding."""
    outcomes = first.mass.keys() | second.mass.keys()
    return all(
        math.isclose(first.mass.get(each, 0.0), second.mass.get(each, 0.0), rel_tol=1e-9, abs_tol=1e-12)
        for each in outcomes
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_shot_gumbel_is_peeling(k: int) -> None:
    """Lemma 4.2: KnownGumb without counts has the law of k exponential mechanisms, on every small histogram."""
    histograms = all_histograms(3, 3)
    peeled = laws_of(Peeling(currency(1), k, 1), histograms, 0)
    one_shot = laws_of(Served(KnownGumb(currency(1), k, 1, with_counts=False)), histograms, 0)
    assert all(same_law(peeled[counts], one_shot[counts]) for counts in some(histograms))


@pytest.mark.parametrize("k", [1, 2])
def test_unk_gumb_is_algorithm_6(k: int) -> None:
    """Without counts it is the strict LimitDom at an index that was chosen for a low threshold."""
    served = UnkGumb(currency(1), k, 3, 1, with_counts=False)

    def algorithm_6(counts: Counts) -> Callable[[NoiseSource], Release]:
        descending = np.array(sorted(counts, reverse=True)[:4], dtype=np.int64)

        def run(noise: NoiseSource) -> Release:
            d_bar = choose_threshold_index(served, descending, np.arange(k, 4), noise)
            return over_whole_histogram(StrictLimitDom(currency(1), k, d_bar, 1), counts)(noise)

        return run

    histograms = all_histograms(4, 2)
    composed = laws_over(histograms, algorithm_6, radius=0)
    whole = laws_of(Served(served), histograms, 0)
    assert all(same_law(composed[counts], whole[counts]) for counts in some(histograms))


def test_limit_dom_of_the_whole_domain_is_peeling() -> None:
    """Where nothing is outside there is nothing to hide, and no threshold."""
    histograms = all_histograms(3, 2)
    limited = laws_of(LimitDom(currency(1), 2, 3, 1), histograms, 0)
    peeled = laws_of(Peeling(currency(1), 2, 1), histograms, 0)
    assert all(same_law(limited[counts], peeled[counts]) for counts in some(histograms))


def test_permute_and_flip_is_no_bounded_range_mechanism() -> None:
    """The post's example: from (0, 0) to (0, 1) the log-ratios span e + ln(2 - exp(-e)), where a choice may span e."""
    laws = [
        output_law(over_whole_histogram(PermuteAndFlip(currency(1), 1, 1), counts), radius=20)
        for counts in ((0, 0), (0, 1))
    ]
    ratios = [math.log(laws[1].mass[outcome] / laws[0].mass[outcome]) for outcome in laws[0].mass]
    assert max(ratios) - min(ratios) == pytest.approx(1 + math.log(2 - math.exp(-1)), abs=1e-6)


def test_permute_and_flip_never_does_worse_than_the_exponential_mechanism() -> None:
    """McKenna and Sheldon, theorem 2: the expected count of what is chosen is at least as large."""
    for counts in some(all_histograms(2, 3)):
        flipped = output_law(over_whole_histogram(PermuteAndFlip(currency(2), 1, 1), counts), radius=10)
        peeled = output_law(over_whole_histogram(Peeling(currency(2), 1, 1), counts), radius=0)
        assert expected_count(flipped, counts) >= expected_count(peeled, counts) - 1e-6


def expected_count(law: Law[Release], counts: Counts) -> float:
    """Return the expected true count of the one element released."""
    return math.fsum(mass * counts[outcome.elements[0]] for outcome, mass in law.mass.items())


def test_half_of_a_laplace_number_is_geometric() -> None:
    """Pr[G = n] = (1 - q) q^n, by folding the discrete Laplace law."""
    q = math.exp(-1)
    mass = np.zeros(60)
    z = np.arange(-30, 31)
    np.add.at(mass, geometric(z), (1 - q) / (1 + q) * q ** np.abs(z))
    assert mass[:20].tolist() == pytest.approx([(1 - q) * q**n for n in range(20)])


@pytest.mark.parametrize(
    ("epsilon", "delta_hat", "delta_l0", "tau"), [(1, 20, 1, 1), (2, 1000, 3, 1), (1, 10**6, 2, 4)]
)
def test_algorithm_4_promises_no_more_than_the_papers_lemma(
    epsilon: int, delta_hat: int, delta_l0: int, tau: int
) -> None:
    """The exact delta is below (exp(epsilon) + 1) delta_hat (3 + ln(Delta / delta_hat)) / 4 of lemma 6.1."""
    parameters = Currency(Fraction(epsilon), Fraction(1, delta_hat))
    mechanism = LaplaceLimitDom(parameters, 1, 10, delta_l0, tau)
    lemma = (math.exp(epsilon) + 1) / delta_hat * (3 + math.log(delta_l0 * delta_hat)) / 4
    assert 0.3 * lemma < mechanism.guarantee().delta <= lemma


def test_algorithm_4_asks_for_a_higher_threshold_than_unk_lap() -> None:
    """For the delta that it keeps, the exact shift of UnkLap is no larger: the closed form gives something away."""
    mechanism = LaplaceLimitDom(Currency(Fraction(1), Fraction(1, 1000)), 1, 10, 2, 1)
    kept = Fraction(mechanism.guarantee().delta)
    served = UnkLap(Currency(2 * mechanism.parameters.epsilon_per, kept), 2, 10, 1)
    assert served.count_inverse_scale == mechanism.inverse_scale
    assert threshold_shift(served) <= mechanism.threshold_shift


@pytest.mark.parametrize("epsilon_per", ["0.15", "1"])
@pytest.mark.parametrize("d_bar", [1, 10, 100])
def test_a_fixed_threshold_saves_ln_2(epsilon_per: str, d_bar: int) -> None:
    """Appendix F: T is about 1 + ln(d_bar / (2 delta)) / e, and with integer noise never more than that rounded up."""
    mechanism = FixedThreshold(Currency(Fraction(epsilon_per), Fraction("1e-6")), d_bar, 1)
    closed_form = 1 + math.log(d_bar / 2e-6) / float(epsilon_per)
    assert closed_form - 2 <= fixed_shift(mechanism) <= math.ceil(closed_form)


@pytest.mark.parametrize("epsilon_per", [Fraction(1, 1000), Fraction(1, 10)])
def test_a_fixed_threshold_silences_newcomers_of_either_side(epsilon_per: Fraction) -> None:
    """With a small e the second condition is the stricter one: p <= 1 - exp(-e) however large delta is."""
    mechanism = FixedThreshold(Currency(epsilon_per, Fraction(1, 2)), 1, 1)
    q = math.exp(-epsilon_per)
    newcomer = q ** fixed_shift(mechanism) / (1 + q)
    assert newcomer <= 1 - math.exp(-epsilon_per)


def test_lemma_6_7_needs_tau_1() -> None:
    """With tau = 2 one element leaves the set above h_(d_bar+1) while another enters; the argument allows for it."""
    above = [{i for i in (0, 1) if counts[i] > min(counts)} for counts in ((1, 0), (1, 2))]
    assert above == [{0}, {1}]


def with_wrong_bottom(*, tau_dropped: bool, newcomers: Fraction) -> Callable[..., LogWeights]:
    """Return selection weights whose bottom lacks `+ tau` or counts only a part of the newcomers."""

    def wrong(
        currency: Currency, tau: int, multiples: NDArray[np.int64], last_odds: Fraction = Fraction(1)
    ) -> LogWeights:
        lowered = multiples.copy()
        lowered[-1] -= tau if tau_dropped else 0
        return selection_weights(currency, tau, lowered, newcomers * last_odds)

    return wrong


@pytest.mark.parametrize(
    ("mechanism", "delta_l0", "tau_dropped", "newcomers", "true_delta"),
    [
        (StrictLimitDom(currency(1), 1, 3, 1), 4, True, Fraction(1), 0.1197),
        (LimitDom(currency(1), 2, 3, 1), 4, True, Fraction(1), 0.1192),
        (StrictLimitDom(currency(1), 1, 3, 1), 1, False, Fraction(1, 3), 0.1304),
    ],
)
def test_a_lower_threshold_breaks_the_promise(
    monkeypatch: pytest.MonkeyPatch,
    mechanism: ComparedMechanism,
    *,
    delta_l0: int,
    tau_dropped: bool,
    newcomers: Fraction,
    true_delta: float,
) -> None:
    """Without `+ tau`, or with Delta in place of d_bar for the strict candidates, more than 0.05 is left over."""

    def worst() -> float:
        return Promise(mechanism, 4, 2, tau=1, delta_l0=delta_l0).worst_delta()

    assert worst() <= DELTA
    wrong = with_wrong_bottom(tau_dropped=tau_dropped, newcomers=newcomers)
    monkeypatch.setattr(limited_domain, "selection_weights", wrong)
    assert worst() == pytest.approx(true_delta, abs=5e-4)


def test_a_fixed_threshold_without_tau_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.099 is left over where 0.05 is promised."""
    mechanism = FixedThreshold(currency(1), 1, 1)

    def worst() -> float:
        return Promise(mechanism, 3, 3, tau=1, delta_l0=3, radius=25).worst_delta()

    assert worst() <= DELTA
    too_low = fixed_shift(mechanism) - mechanism.tau
    monkeypatch.setattr(fixed_threshold, "fixed_shift", lambda _: too_low)
    assert worst() == pytest.approx(0.0989, abs=5e-4)


ONE_SHOT = OneShotLaplace(Currency(Fraction("0.19"), Fraction("0.049")), 1, 1)


def one_shot_law(mechanism: OneShotLaplace, counts: tuple[int, int]) -> float:
    """Return the probability that the first of two elements is the larger, by summing over the difference of noises."""
    rate = float(mechanism.inverse_scale(2))
    reach = np.arange(-20_000, 20_001)
    q = math.exp(-rate)
    front = ((1 - q) / (1 + q)) ** 2
    mass = front * np.exp(-rate * np.abs(reach)) * (np.abs(reach) + (1 + q**2) / (1 - q**2))
    # A tie goes to the first element.
    return float(mass[reach >= counts[1] - counts[0]].sum())


def test_one_shot_laplace_keeps_its_promise_on_two_elements() -> None:
    """The published theorem is on the continuous law; the discrete one keeps it, at every difference of counts."""
    epsilon, delta = ONE_SHOT.guarantee().epsilon, ONE_SHOT.guarantee().delta
    for difference in range(-300, 301):
        first = one_shot_law(ONE_SHOT, (300, 300 + difference))
        for step in (-1, 1):
            second = one_shot_law(ONE_SHOT, (300, 300 + difference + step))
            for p, other in ((first, second), (1 - first, 1 - second)):
                assert p - math.exp(epsilon) * other <= delta


def test_one_shot_laplace_draws_what_its_law_says() -> None:
    """The real code, drawn 4000 times: within five standard errors, which happens by chance once in 10^6."""
    histogram = Histogram.from_element_order([0, 60])
    draws = 4000
    seeds = [seed.to_bytes(32, "big") for seed in range(draws)]
    found = sum(ONE_SHOT.run(histogram, KeyedNoise(KeyedStream(seed))).indices[0] == 0 for seed in seeds)
    expected = one_shot_law(ONE_SHOT, (0, 60))
    assert abs(found / draws - expected) < 5 * math.sqrt(expected * (1 - expected) / draws)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.19])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.04])
@pytest.mark.parametrize(("k", "domain_size"), [(1, 2), (10, 1000), (1000, 10**6)])
def test_the_table_of_standard_deviations(epsilon: float, delta: float, k: int, domain_size: int) -> None:
    """Gumbel choices need at most a quarter of one-shot Laplace's noise, and counts at most half."""
    table = standard_deviations(epsilon=epsilon, delta=delta, k=k, domain_size=domain_size)
    log = math.log(1 / delta)
    assert table.gumbel_choices <= 2 * math.pi * math.sqrt(k * log) / (math.sqrt(6) * epsilon)
    assert table.gumbel_counts <= 4 * math.sqrt(2 * k * log) / epsilon
    assert table.gumbel_choices <= table.one_shot_laplace / 4
    assert table.gumbel_counts <= table.one_shot_laplace / 2


def test_the_table_speaks_of_the_noise_that_is_drawn() -> None:
    """Its standard deviations are those of the mechanisms at the same privacy (a Laplace scale b has sqrt(2) b)."""
    epsilon, delta, k, domain_size = 0.19, 1e-6, 10, 1000
    table = standard_deviations(epsilon=epsilon, delta=delta, k=k, domain_size=domain_size)
    one_shot = OneShotLaplace(Currency(Fraction("0.19"), Fraction("1e-6")), k, 1)
    assert table.one_shot_laplace == pytest.approx(math.sqrt(2) / float(one_shot.inverse_scale(domain_size)))
    per_choice = Fraction(epsilon_of_all_choices(epsilon, delta) / math.sqrt(k))
    served = KnownGumb(Currency(per_choice, Fraction("1e-6")), k, 1)
    assert table.gumbel_counts == pytest.approx(math.sqrt(2) / float(served.count_inverse_scale))
    assert table.gumbel_choices == pytest.approx(math.pi / math.sqrt(6) / float(per_choice))
    assert served.worst_case_cost() == Cost(information=2 * k, calls=0)


def test_a_comparison_is_a_loop() -> None:
    """Every mechanism answers one question on one histogram, says what it promises, and has a name of its own."""
    histogram = Histogram.from_element_order([900, 0, 700, 20, 3, 500, 0, 40])
    mechanisms = catalogue(Currency(Fraction("0.09"), Fraction(1, 100)), k=2, d_bar=5, delta_l0=1, tau=1)
    assert len({each.label for each in mechanisms}) == len(mechanisms) == 11
    for each in mechanisms:
        found = each.run(histogram, KeyedNoise(KeyedStream(bytes(32)))).indices.tolist()
        assert len(found) == len(set(found)) <= len(histogram)
        assert each.guarantee().epsilon > 0


def test_mechanisms_of_an_unknown_domain_never_show_what_nobody_has() -> None:
    """Zeros in the histogram are as good as absent to them, however low the threshold."""
    histogram = Histogram.from_element_order([0, 5, 0, 3])
    generous = Currency(Fraction(1, 100), Fraction(1, 2))
    unknown: list[ComparedMechanism] = [
        StrictLimitDom(generous, 2, 3, 1),
        LaplaceLimitDom(generous, 2, 3, 1, 1),
        FixedThreshold(generous, 3, 1),
        Served(UnkLap(generous, 1, 3, 1)),
    ]
    for mechanism in unknown:
        shown = {
            element
            for seed in range(100)
            for element in mechanism.run(
                histogram, KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))
            ).indices.tolist()
        }
        assert shown <= {1, 3}


def test_the_promise_of_the_served_ones_is_that_of_their_cost() -> None:
    """Delta e / 2, 2k e, e / 2 and (2k + 1) e, with a delta where there is a call."""
    e, delta = 1.0, float(DELTA)
    promised = [
        Served(each).guarantee()
        for each in (
            KnownLap(currency(1), 3, 1),
            KnownGumb(currency(1), 2, 1),
            UnkLap(currency(1), 3, 5, 1),
            UnkGumb(currency(1), 2, 5, 1),
        )
    ]
    assert [each.epsilon for each in promised] == pytest.approx([1.5 * e, 4 * e, 0.5 * e, 5 * e])
    assert [each.delta for each in promised] == pytest.approx([0, 0, delta, delta])
    assert [each.choices for each in promised] == [3, 4, None, 5]
