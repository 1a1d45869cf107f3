"""Lemma 4.4 of Durfee and Rogers 2019: the epsilon of many mechanisms, whose epsilons may differ."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dp_service.accounting.bounds import Portion, deviation
from dp_service.accounting.checks import require_probability
from dp_service.accounting.rounding import INTERVALS, interval, rounded_up
from dp_service.noise.interval_arithmetic import Interval


def durfee_rogers(portions: Sequence[Portion], slack: Fraction) -> float:
    """Return the epsilon of lemma 4.4 of Durfee and Rogers 2019, rounded up; the mechanisms' epsilons may differ.

    It is the smaller of sum e_i and sum e_i tanh(e_i / 2) + sqrt(sum e_i^2 / 2 ln(1 / slack)). The lemma's third
    expression, with e_i^2 / 2 in place of e_i tanh(e_i / 2), is never smaller.

    Raises:
        ValueError: `slack` is not a Fraction strictly between 0 and 1.
    """
    require_probability("slack", slack)
    adding = sum(each.information * each.epsilon_per for each in portions)
    squares = sum(each.information * each.epsilon_per**2 for each in portions)
    drift = sum((each.information * _tanh_drift(each.epsilon_per) for each in portions), interval(0))
    return min(rounded_up(interval(adding)), rounded_up(drift + deviation(interval(squares), slack)))


def _tanh_drift(epsilon_per: Fraction) -> Interval:
    """Return e (exp(e) - 1) / (exp(e) + 1), the largest expected privacy loss of an e-DP mechanism."""
    e = interval(epsilon_per)
    grown = INTERVALS.exp(e)
    return e * (grown - 1) / (grown + 1)
