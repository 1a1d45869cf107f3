"""Exact Bernoulli trials whose probabilities are functions of an exponential.

A trial compares random 64-bit words with the binary expansion of its probability, word by word, until they
differ. Its law is exact: the uniform number spelled by the words is below p with probability p.
"""

from enum import Enum
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.exact import Interval, IntervalContext, enclose, scaled_floor
from dp_service.noise.stream import WORD_BITS, RandomWords


class BernoulliLaw(Enum):
    """The probability of success as a function of a positive rational exponent x."""

    EXPONENTIAL = "exp(-x)"
    LOGISTIC = "1/(1+exp(x))"


def success_probability(law: BernoulliLaw, exponent: Fraction, context: IntervalContext) -> Interval:
    """Return an interval around the probability of success, in the arithmetic of `context`."""
    if law is BernoulliLaw.EXPONENTIAL:
        return context.exp(-enclose(context, exponent))
    return 1 / (1 + context.exp(enclose(context, exponent)))


@lru_cache(maxsize=4096)
def expansion_word(law: BernoulliLaw, exponent: Fraction, index: int) -> int:
    """Return 64-bit word `index` (0 is the most significant) of the binary expansion of the probability."""
    # The exponent is a positive rational, so its exponential is irrational and the floor is well defined.
    bits = WORD_BITS * (index + 1)
    digits = scaled_floor(lambda context: success_probability(law, exponent, context), bits)
    return digits % (1 << WORD_BITS)


def bernoulli(stream: RandomWords, law: BernoulliLaw, exponent: Fraction, size: int) -> NDArray[np.bool_]:
    """Run `size` independent exact trials; returns shape (size,).

    Words are read in this order: one per trial, then one more for each trial that is still tied, in the order
    of the trials, and so on. A tie has probability 2^-64 per word.
    """
    success = np.zeros(size, dtype=np.bool_)
    tied = np.arange(size)
    index = 0
    while tied.size:
        words = stream.words(tied.size)
        digit = np.uint64(expansion_word(law, exponent, index))
        success[tied] = words < digit
        tied = tied[words == digit]
        index += 1
    return success
