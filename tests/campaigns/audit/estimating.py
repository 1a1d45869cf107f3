"""A lower bound of privacy loss from what two neighbouring tables were seen to answer.

(epsilon, delta)-DP says Pr[E | first] - exp(epsilon) Pr[E | second] <= delta for every event E and both orders of the
neighbours. Here the events are fixed before anything is asked, each probability is replaced by an end of its exact
(Clopper-Pearson) confidence interval, and the worst difference is returned. If the promise is kept, it exceeds delta
with probability at most `false_alarm`, whatever the events are: the error is shared out among all the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Answer = TypeVar("Answer")
FALSE_ALARM = 1e-6
_BISECTIONS = 60
_LARGEST_EPSILON = 30.0


@dataclass(frozen=True)
class Event(Generic[Answer]):
    """Something that an answer may show.

    `impossible_without` says that the smaller table cannot show it by construction (an element that it does not hold):
    its probability there is 0 and need not be estimated.
    """

    name: str
    shows: Callable[[Answer], bool]
    impossible_without: bool = False


@dataclass(frozen=True)
class Finding:
    """The event and order that prove most, and the delta that they prove at the promised epsilon.

    `proven_epsilon` is the largest epsilon that the same bounds rule out at the promised delta, over all events: how
    much of what is promised the audit can see at all.
    """

    event: str
    order: str
    proven_delta: float
    proven_epsilon: float


def proven_delta(
    with_member: Sequence[Answer],
    without_member: Sequence[Answer],
    events: Sequence[Event[Answer]],
    *,
    epsilon: float,
    delta: float,
    false_alarm: float = FALSE_ALARM,
) -> Finding:
    """Return the largest lower bounds, of delta at this epsilon and of epsilon at this delta, over events and orders.

    Raises ValueError if something was seen that was said to be impossible.
    """
    # Two bounds for each event in each of two orders.
    error = false_alarm / (4 * len(events))
    findings = []
    for event in events:
        seen_with = sum(map(event.shows, with_member))
        seen_without = sum(map(event.shows, without_member))
        if event.impossible_without and seen_without:
            raise ValueError(f"{event.name} was seen where it was said to be impossible")
        high_without = (
            0.0 if event.impossible_without else upper_bound(seen_without, len(without_member), error)
        )
        low_with = lower_bound(seen_with, len(with_member), error)
        low_without = lower_bound(seen_without, len(without_member), error)
        high_with = upper_bound(seen_with, len(with_member), error)
        for order, low, high in (
            ("with/without", low_with, high_without),
            ("without/with", low_without, high_with),
        ):
            at_delta = _log_ratio(low - delta, high)
            findings.append(Finding(event.name, order, low - math.exp(epsilon) * high, at_delta))
    most = max(findings, key=lambda finding: finding.proven_delta)
    return replace(most, proven_epsilon=max(finding.proven_epsilon for finding in findings))


def _log_ratio(numerator: float, denominator: float) -> float:
    """Return ln(numerator / denominator), but 0 at least: less than that proves nothing."""
    if numerator <= 0:
        return 0.0
    return max(0.0, math.log(numerator / denominator)) if denominator else math.inf


def lower_bound(seen: int, trials: int, error: float) -> float:
    """Return the p for which `seen` or more in `trials` have probability `error`: too large with that probability."""
    if seen == 0:
        return 0.0
    return _bisect(lambda p: _at_least(seen, trials, p) <= error)


def upper_bound(seen: int, trials: int, error: float) -> float:
    """Return the p for which `seen` or fewer in `trials` have probability `error`: too small with that probability."""
    return 1 - lower_bound(trials - seen, trials, error)


def _bisect(holds_at: Callable[[float], bool]) -> float:
    """Return the largest p for which a condition holds that holds at 0 and stops to hold somewhere."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds_at(middle) else (low, middle)
    return low


def chance_of_guesses(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float) -> float:
    """Return what the probability that so many guesses are right is at most, if (epsilon, delta)-DP is kept.

    Each canary is in a table by a fair coin of its own; whom to guess about, and what, may follow from all that one run
    released. Source: Steinke, Nasr and Jagielski 2023, arXiv:2305.08846, the main theorem.
    """
    masses = _masses(guesses, 1 / (1 + math.exp(-epsilon)))
    just_below = np.cumsum(masses[:correct][::-1]) / np.arange(1, correct + 1)
    return float(masses[correct:].sum() + 2 * canaries * delta * just_below.max(initial=0))


def epsilon_of_guesses(correct: int, guesses: int, canaries: int, *, delta: float, error: float) -> float:
    """Return the largest epsilon that the guesses of one run rule out at this delta; 0: none."""

    def is_ruled_out(epsilon: float) -> bool:
        return chance_of_guesses(correct, guesses, canaries, epsilon=epsilon, delta=delta) <= error

    return _LARGEST_EPSILON * _bisect(lambda share: is_ruled_out(_LARGEST_EPSILON * share))


def _at_least(seen: int, trials: int, p: float) -> float:
    return float(_masses(trials, p)[seen:].sum())


def _masses(trials: int, p: float) -> NDArray[np.float64]:
    """Return the binomial probabilities of 0 to all of the trials."""
    counts = np.arange(trials + 1)
    log_factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, trials + 1)))))
    log_ways = log_factorials[trials] - log_factorials - log_factorials[::-1]
    with np.errstate(under="ignore"):
        masses: NDArray[np.float64] = np.exp(
            log_ways + counts * math.log(p) + (trials - counts) * math.log1p(-p)
        )
    return masses
