"""The exact Gumbel order, and the error bounds of its float keys."""

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from dp_service.noise import KeyedNoise, KeyedStream, LogWeights
from dp_service.noise.gumbel import DOUBTFUL_GAP, TIMING_PROBABILITY, gumbel_order, spare_pairs
from dp_service.noise.gumbel_keys import float_keys, standard_gumbel
from dp_service.noise.uniforms import BLOCK, KeyedUniforms

from .scripts import ScriptedUniforms
from .statistics import chi_squared_p_value

MIDDLE = 2**63
ALL_ONES = 2**64 - 1


def equal_weights(size: int) -> LogWeights:
    """Return weights that leave everything to the noise."""
    return LogWeights(Fraction(1), np.zeros(size, dtype=np.int64))


def uniforms(size: int, label: str = "selection") -> KeyedUniforms:
    """Return uniform numbers of a fixed seed."""
    return KeyedUniforms(KeyedStream(bytes(32)), (label,), size)


def peeling_law(weights: list[float], count: int) -> dict[tuple[int, ...], float]:
    """Return the law of `count` exponential mechanisms in a row, each over what is left."""
    law = {}
    for order in permutations(range(len(weights)), count):
        left, probability = math.fsum(weights), 1.0
        for entry in order:
            probability *= weights[entry] / left
            left -= weights[entry]
        law[order] = probability
    return law


def observed_orders(weights: LogWeights, count: int, runs: int) -> Counter[tuple[int, ...]]:
    """Count the orders over many seeds."""
    return Counter(
        tuple(KeyedNoise(KeyedStream(seed.to_bytes(32, "big"))).gumbel_order(weights, count, "x").tolist())
        for seed in range(runs)
    )


def p_value_against(weights: list[float], observed: Counter[tuple[int, ...]]) -> float:
    """Compare orders of two entries with the law of peeling."""
    law = peeling_law(weights, 2)
    return chi_squared_p_value([observed[order] for order in law], list(law.values()))


@pytest.mark.slow
def test_the_order_has_the_law_of_peeling_the_exponential_mechanism() -> None:
    """10 000 seeds pass chi-squared at level 1e-6 for weights with counts and odds, and fail with a scale 30 % off."""
    multiples, divisors = np.array([3, 1, 4, 0]), np.array([1, 2, 3, 1])
    observed = observed_orders(LogWeights(Fraction(1, 2), multiples, divisors, Fraction(5, 2)), 2, 10_000)
    right = [math.exp(1.5), math.exp(0.5) / 2, math.exp(2) / 3, 2.5]
    wrong = [math.exp(1.5 * 1.3), math.exp(0.5 * 1.3) / 2, math.exp(2 * 1.3) / 3, 2.5]
    assert p_value_against(right, observed) > 1e-6
    assert p_value_against(wrong, observed) < 1e-6


def test_a_shorter_order_is_the_beginning_of_a_longer_one() -> None:
    """Looking only for contenders changes nothing about who wins."""
    weights = LogWeights(Fraction(3, 20), np.arange(500, dtype=np.int64) % 7)
    whole = gumbel_order(uniforms(500), weights, 500).tolist()
    for count in (0, 1, 10, 499):
        assert whole[:count] == gumbel_order(uniforms(500), weights, count).tolist()


def test_orders_of_many_blocks_are_those_of_the_keys() -> None:
    """Entries are looked at in blocks and most are dropped on the way; the winners are those of all keys at once."""
    size = 6 * BLOCK + 5
    weights = LogWeights(Fraction(3, 20), np.arange(size, dtype=np.int64) % 29)
    blocks = [float_keys(weights, uniforms(size), *block) for block in uniforms(size).leading_blocks()]
    keys = np.concatenate([block.whole + block.fraction for block in blocks])
    for count in (1, 100, 5 * BLOCK):
        assert np.argsort(-keys)[:count].tolist() == gumbel_order(uniforms(size), weights, count).tolist()


def test_equal_leading_words_are_settled_by_further_bits() -> None:
    """Three entries tie in 64 bits; a larger number is a later arrival, so the smallest comes first."""
    scripted = ScriptedUniforms([MIDDLE] * 3, {0: [9], 1: [5], 2: [7]})
    assert gumbel_order(scripted, equal_weights(3), 3).tolist() == [1, 2, 0]


def test_more_ties_than_spare_pairs_are_all_settled() -> None:
    """Nine entries in three ties of three: exact evaluation goes on as long as there is doubt."""
    assert spare_pairs(9) < 6
    leading = [2**63 + tie * 2**60 for tie in (2, 0, 1) for _ in range(3)]
    scripted = ScriptedUniforms(
        leading, {i: [second] for i, second in enumerate([7, 9, 8, 3, 2, 1, 4, 6, 5])}
    )
    assert gumbel_order(scripted, equal_weights(9), 9).tolist() == [5, 4, 3, 6, 8, 7, 0, 2, 1]


def test_a_tie_far_down_is_settled_by_as_many_bits_as_it_takes() -> None:
    """Two numbers that agree in 640 bits are still ordered, with eleven words each."""
    same = [123] * 9
    scripted = ScriptedUniforms([MIDDLE] * 2, {0: [*same, 2], 1: [*same, 1]})
    assert gumbel_order(scripted, equal_weights(2), 2).tolist() == [1, 0]


def test_a_tie_below_the_last_wanted_entry_draws_nothing_and_one_at_the_boundary_does() -> None:
    """Only what decides the result is looked at closely."""
    below = ScriptedUniforms([2**63, 2**63, 2**62, 2**61])
    assert gumbel_order(below, equal_weights(4), 1).tolist() == [3]
    assert {2, 3} == below.extended
    at_boundary = ScriptedUniforms([2**63, 2**62, 2**62], {1: [2], 2: [1]})
    assert gumbel_order(at_boundary, equal_weights(3), 1).tolist() == [2]
    assert {1, 2} == at_boundary.extended


@pytest.mark.parametrize("extreme", [0, ALL_ONES])
def test_extreme_words_are_ordered_by_the_bits_that_follow(extreme: int) -> None:
    """Numbers that begin with 64 equal bits may be as near to 0 or 1 as they like, and still have an order."""
    scripted = ScriptedUniforms([extreme, MIDDLE, extreme], {0: [9], 2: [8]})
    expected = [2, 0, 1] if extreme == 0 else [1, 2, 0]
    assert expected == gumbel_order(scripted, equal_weights(3), 3).tolist()


def test_a_number_that_stays_at_one_end_is_drawn_further() -> None:
    """Words of nothing but zeros leave the key unbounded until a one comes; then it is large, but finite."""
    scripted = ScriptedUniforms([0, MIDDLE], {0: [0] * 6 + [2**63]})
    heavy = LogWeights(Fraction(1), np.array([0, 400], dtype=np.int64))
    # After 448 zero-bits, -ln(1 - U) is about 2^-449, so the key is 449 ln 2 = 311.2, below 400.
    assert gumbel_order(scripted, heavy, 2).tolist() == [1, 0]
    light = LogWeights(Fraction(1), np.array([0, 311], dtype=np.int64))
    assert gumbel_order(scripted, light, 2).tolist() == [1, 0]
    lighter = LogWeights(Fraction(1), np.array([0, 310], dtype=np.int64))
    assert gumbel_order(scripted, lighter, 2).tolist() == [0, 1]


def test_near_one_the_order_waits_for_the_bits_that_decide_it() -> None:
    """With 1 - U from 2^-128 to 2^-127, E lies from 127 ln 2 to 128 ln 2: further bits can outweigh a count.

    The first 128 bits are the same for both entries. What follows puts E of entry 0, which weighs e^0.004, close to the
    upper end and that of entry 1 to the lower one: the keys are 0.004 - ln 88.72 and -ln 88.03, so entry 1 is first.
    """
    multiples = np.array([4, 0], dtype=np.int64)
    weights = LogWeights(Fraction(1, 1000), multiples)
    leading = [ALL_ONES] * 2
    following = {0: [ALL_ONES - 1, ALL_ONES, ALL_ONES], 1: [ALL_ONES - 1, 0, 0]}
    assert gumbel_order(ScriptedUniforms(leading, following), weights, 2).tolist() == [1, 0]
    swapped = {0: following[1], 1: following[0]}
    assert gumbel_order(ScriptedUniforms(leading, swapped), weights, 2).tolist() == [0, 1]


class CountingUniforms:
    """Keyed uniform numbers that count how many are evaluated exactly: a second read of a first word tells."""

    def __init__(self, seed: int, size: int) -> None:
        self._uniforms = KeyedUniforms(KeyedStream(seed.to_bytes(32, "big")), ("x",), size)
        self.exact = 0

    def __len__(self) -> int:
        return len(self._uniforms)

    def leading_blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Pass through."""
        return self._uniforms.leading_blocks()

    def words_at(self, level: int, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Pass through and count."""
        self.exact += indices.size if level == 0 else 0
        return self._uniforms.words_at(level, indices)


HISTOGRAMS = {
    "flat": np.full(3000, 1000),
    "tied": np.repeat(np.arange(30), 100),
    "zipf": 10**9 // np.arange(1, 3001),
    "huge": 2**53 - np.arange(3000),
    "far apart": np.where(np.arange(3000) % 2, 2**53, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("counts", HISTOGRAMS.values(), ids=HISTOGRAMS)
@pytest.mark.parametrize("unit", [Fraction(1, 10**6), Fraction(3, 20), Fraction(1000)])
@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("eligible", [0, 1, 50, 3000])
def test_the_work_depends_on_the_number_of_counts_alone(
    counts: NDArray[np.int64], unit: Fraction, count: int, eligible: int
) -> None:
    """In each of 10 seeds exactly the spare pairs are evaluated exactly, whatever the histogram and who is eligible.

    More would be seen by chance in 1200 runs with probability below 1e-8.
    """
    weights = LogWeights(unit, counts.astype(np.int64), eligible=np.arange(3000) < eligible)
    for seed in range(10):
        counting = CountingUniforms(seed, 3000)
        gumbel_order(counting, weights, count)
        assert 2 * spare_pairs(count) == counting.exact


@pytest.mark.parametrize("count", [1, 10, 100, 1000, 10**4, 10**7])
def test_spare_pairs_are_the_fewest_that_bound_the_probability(count: int) -> None:
    """The bound of the module's docstring, in rational numbers, holds for them and fails for one pair fewer."""
    gap, pairs = Fraction(DOUBTFUL_GAP), spare_pairs(count)

    def bound(pairs: int) -> Fraction:
        ranks = Fraction(count * (count + 1), 2) + pairs * count
        return (gap * ranks) ** (pairs + 1) / math.factorial(pairs + 1)

    assert bound(pairs) <= TIMING_PROBABILITY
    assert pairs == 0 or bound(pairs - 1) > TIMING_PROBABILITY


def test_floats_order_all_keys_that_are_further_apart_than_the_doubtful_gap() -> None:
    """At |G| near 64 and odds of e^50 on either side, three times the error is still below the gap."""
    scripted = ScriptedUniforms([0, 2**64 - 1], {0: [2**36], 1: [2**64 - 2**36]})
    divisors = np.array([5 * 10**18, 1])
    for unit, last_odds in product(
        (Fraction(1, 1000), Fraction(1000)), (Fraction(5 * 10**21), Fraction(1, 5 * 10**21))
    ):
        weights = LogWeights(unit, np.array([2**53, 0]), divisors, last_odds)
        keys = float_keys(weights, scripted, 0, np.array([0, 2**64 - 1], dtype=np.uint64))
        assert 3 * keys.error * float(unit) <= DOUBTFUL_GAP


def test_close_pairs_are_no_likelier_than_the_argument_says() -> None:
    """The expected number of gaps below g among the first k ranks is at most g k (k + 1) / 2, and flat weights meet it.

    1000 seeds, k = 20, g = 0.002: 0.42 close pairs are expected each, and 420 in all with a standard error of 21.
    """
    close = 0
    for seed in range(1000):
        numbers = KeyedUniforms(KeyedStream(seed.to_bytes(32, "big")), ("x",), 3000)
        keys = float_keys(equal_weights(3000), numbers, *next(numbers.leading_blocks()))
        ranked = np.sort(keys.whole + keys.fraction)[::-1][:21]
        close += int(np.count_nonzero(ranked[:-1] - ranked[1:] < 0.002))
    assert abs(close - 420) < 5 * 21


def test_huge_counts_that_differ_by_one_are_ordered_exactly() -> None:
    """At 2^53 the float of count times unit has no room for a difference of 1; the order still honours it."""
    scripted = ScriptedUniforms([MIDDLE] * 4)
    multiples = np.array([2**53 - 2, 2**53, 2**53 - 1, 0], dtype=np.int64)
    weights = LogWeights(Fraction(1, 1000), multiples)
    assert gumbel_order(scripted, weights, 4).tolist() == [1, 2, 0, 3]


def test_odds_that_cancel_counts_are_compared_exactly() -> None:
    """exp(7) against odds of 1096.6331584284585992... to 16 digits: no float can tell, the intervals can."""
    below = LogWeights(
        Fraction(1),
        np.array([7, 0], dtype=np.int64),
        last_odds=Fraction(10966331584284585992, 10**16),
    )
    assert gumbel_order(ScriptedUniforms([MIDDLE] * 2, {0: [7] * 4, 1: [7] * 4}), below, 2).tolist() == [0, 1]


def eligible_only(*eligible: bool, multiples: list[int] | None = None) -> LogWeights:
    """Return weights of which some are not eligible."""
    counts = np.array(multiples or [0] * len(eligible), dtype=np.int64)
    return LogWeights(Fraction(1), counts, eligible=np.array(eligible))


@pytest.mark.parametrize(
    "bits",
    [
        ScriptedUniforms([0, MIDDLE, ALL_ONES]),
        ScriptedUniforms([0, MIDDLE, ALL_ONES], {0: [0] * 40 + [1], 2: [ALL_ONES] * 40}),
        ScriptedUniforms([MIDDLE] * 3, {1: [1], 2: [2]}),
        ScriptedUniforms([0, ALL_ONES, ALL_ONES], {0: [0] * 40 + [1], 1: [ALL_ONES] * 40}),
    ],
)
def test_what_is_not_eligible_comes_last_whatever_it_draws(bits: ScriptedUniforms) -> None:
    """Neither the largest multiple nor a number beyond what floats can hold brings it before one that is eligible.

    Entry 0 is not eligible and has the best of draws; 1 and 2 have the worst.
    """
    weights = eligible_only(False, True, True, multiples=[2**54, -(2**54), -(2**54)])
    for count in (1, 2, 3):
        order = gumbel_order(bits, weights, count).tolist()
        assert set(order[:2]) <= {1, 2}
        assert order[2:] == [0][: count - 2]


@pytest.mark.parametrize("unit", [Fraction(1, 10**12), Fraction(10**12)])
def test_no_unit_brings_what_is_not_eligible_before_what_is(unit: Fraction) -> None:
    """Noise of 2^50 steps, or of next to none: 30 seeds of 400 entries, every second of which is out of the running."""
    multiples = np.where(np.arange(400) % 2, 2**54, -(2**54))
    weights = LogWeights(unit, multiples, eligible=np.arange(400) % 2 == 0)
    for seed in range(30):
        order = gumbel_order(KeyedUniforms(KeyedStream(seed.to_bytes(32, "big")), ("x",), 400), weights, 300)
        assert (order[:200] % 2 == 0).all()
        assert (order[200:] % 2 == 1).all()


def test_the_order_of_the_eligible_is_what_it_would_be_among_themselves() -> None:
    """Entries that are not eligible change nothing about the others: the same order with and without them."""
    weights = LogWeights(Fraction(3, 20), np.arange(60) % 7)
    whole = gumbel_order(uniforms(60), weights, 60)
    eligible = np.arange(60) % 3 > 0
    masked = gumbel_order(uniforms(60), LogWeights(Fraction(3, 20), np.arange(60) % 7, eligible=eligible), 60)
    assert whole[eligible[whole]].tolist() == masked[:40].tolist()
    assert whole[~eligible[whole]].tolist() == masked[40:].tolist()


@pytest.mark.parametrize("count", [-1, 4])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    """The error names the argument."""
    with pytest.raises(ValueError, match="count must be from 0"):
        gumbel_order(uniforms(3), equal_weights(3), count)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_whole_short_histogram_can_be_ordered(size: int) -> None:
    """There may be fewer pairs than are looked at otherwise."""
    assert list(range(size)) == sorted(gumbel_order(uniforms(size), equal_weights(size), size).tolist())


def test_no_weights_have_an_empty_order() -> None:
    """An empty histogram selects nothing."""
    assert gumbel_order(uniforms(0), equal_weights(0), 0).tolist() == []


def test_a_key_that_floats_put_just_below_the_cut_is_a_contender_all_the_same() -> None:
    """The last weight is just above e^3 and so above the others, but not in floats: exact keys decide, not they."""
    weights = LogWeights(Fraction(1), np.array([3, 3, 0]), last_odds=Fraction(200855369231876678, 10**16))
    scripted = ScriptedUniforms([MIDDLE] * 3, {0: [9], 1: [8], 2: [7]})
    assert gumbel_order(scripted, weights, 1).tolist() == [2]


UNIFORMS = KeyedUniforms(KeyedStream(bytes(32)), ("words",), 2000)
WORDS = next(UNIFORMS.leading_blocks())[1]
# Close to both ends of the range and to where one way of evaluation gives way to another.
ENDS = [1, 2**40, 2**50 - 1, 2**64 - 2**58, 2**64 - 2**40, 2**64 - 2]
INNER = [2**50, 2**50 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**58 - 1]


def exact_gumbel(uniform: mpmath.mpf) -> mpmath.mpf:
    """Return -ln(-ln(1 - U)) at the current precision."""
    return -mpmath.log(-mpmath.log(1 - uniform))


def assert_encloses(uniforms: ScriptedUniforms | KeyedUniforms, read_words: int) -> None:
    """Check the bound for the smallest and the largest number that begins with the words that were read."""
    words = next(uniforms.leading_blocks())[1]
    values, error = standard_gumbel(uniforms, 0, words)
    everyone = np.arange(words.size)
    spelled = [uniforms.words_at(level, everyone).tolist() for level in range(read_words)]
    with mpmath.workprec(400):
        for i, value in enumerate(values.tolist()):
            prefix = sum(spelled[level][i] << 64 * (read_words - 1 - level) for level in range(read_words))
            for numerator in (prefix, prefix + 1):
                assert abs(exact_gumbel(mpmath.mpf(numerator) / 2 ** (64 * read_words)) - value) <= error


def test_the_bound_encloses_gumbel_noise_between_the_ends() -> None:
    """Whatever bits follow the first 64, the true noise lies within the bound of the float."""
    assert_encloses(ScriptedUniforms(INNER), 1)
    inner = [word for word in WORDS.tolist() if 2**50 <= word < 2**64 - 2**58]
    assert_encloses(ScriptedUniforms(inner), 1)


@pytest.mark.parametrize("second", [0, 12345, 2**64 - 1])
def test_the_bound_encloses_gumbel_noise_near_the_ends(second: int) -> None:
    """There 128 bits are read, and whatever follows those, the true noise lies within the bound."""
    assert_encloses(ScriptedUniforms(ENDS, {i: [second] for i in range(len(ENDS))}), 2)


def test_bounds_are_narrow_for_ordinary_words() -> None:
    """Keys that differ by a hundred billionth are distinguished without further bits, near the ends as well."""
    assert standard_gumbel(UNIFORMS, 0, WORDS)[1] < 1e-13
    assert standard_gumbel(ScriptedUniforms(ENDS), 0, np.array(ENDS, dtype=np.uint64))[1] < 2e-13


@pytest.mark.parametrize("end", [0, 2**64 - 1])
def test_numbers_with_128_equal_bits_promise_nothing(end: int) -> None:
    """Where first-order error analysis ends, the bound is infinite and further bits decide."""
    uniforms = ScriptedUniforms([end], {0: [end]})
    assert np.isinf(standard_gumbel(uniforms, 0, np.array([end], dtype=np.uint64))[1])


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Fraction(3, 20), Fraction(1, 10**12), Fraction(997, 3), Fraction(10**12)])
@pytest.mark.parametrize("last_odds", [Fraction(1), Fraction(10**300 - 7, 3), Fraction(5, 10**300 + 1)])
@pytest.mark.parametrize("with_divisors", [True, False])
def test_keys_of_huge_counts_and_odds_keep_their_last_digits(
    unit: Fraction, with_divisors: bool, last_odds: Fraction
) -> None:
    """Next to counts of 2^53, and odds of 10^300 or none, keys are right to the stated error, which is small."""
    size = 300
    steps = [2**53 - (i % 3) * 2 ** (i % 53) for i in range(size)]
    divisors = [2 ** (i % 62) + i % 2 if with_divisors else 1 for i in range(size)]
    weights = LogWeights(
        unit,
        np.array([step if i % 2 else -step for i, step in enumerate(steps)], dtype=np.int64),
        np.array(divisors, dtype=np.int64) if with_divisors else None,
        last_odds,
    )
    keys = float_keys(weights, UNIFORMS, 0, WORDS[:size])
    second = UNIFORMS.words_at(1, np.arange(size)).tolist()
    with mpmath.workprec(2000):
        for i in range(size):
            uniform = mpmath.mpf((int(WORDS[i]) << 64) + second[i]) / 2**128
            exact_odds = (last_odds if i == size - 1 else 1) / Fraction(divisors[i])
            odds = mpmath.mpf(exact_odds.numerator) / exact_odds.denominator
            added = (mpmath.log(odds) + exact_gumbel(uniform)) * unit.denominator / unit.numerator
            exact = int(weights.multiples[i]) + added
            assert abs(exact - int(keys.whole[i]) - mpmath.mpf(keys.fraction[i])) <= keys.error
    assert keys.error * float(unit) < 5e-12
    assert np.abs(keys.fraction).max() <= 0.5
