"""Arithmetic over numbers of answers: sums and differences with coefficients, and quotients.

It is computed from what was released and shown, so it costs nothing.

A linear combination of counts with Gaussian noise that no threshold and no rank selected has the interval of their
noise together, at the confidence of the answer. Noise of one element of one release is one draw, in whichever answers
it is shown, so its coefficients are added up first.

Everything else has the box of its numbers' intervals: the errors of the intervals add up, and the combination says at
which confidence it holds. Asked again with more confidence, which is free, each interval takes less of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from pinot_connector import formats
from pinot_connector.errors import InvalidQuestion
from pinot_connector.parameters import IntervalKind
from pinot_connector.shown_values import DayValue, ShownScalar

if TYPE_CHECKING:
    from pinot_connector.results import PrivateResult

Element: TypeAlias = ShownScalar | tuple[ShownScalar, ...]
Coefficient: TypeAlias = int | float | Fraction
_Ends: TypeAlias = tuple[Fraction, Fraction]

_LARGEST = 10**9
# Covers what floats do to a quantile.
_SLACK = 1e-9
_BEFOREHAND = (
    "for elements chosen beforehand; of the largest of several, state how many `candidates` there were"
)


@dataclass(frozen=True)
class Combined:
    """A number that was computed of released ones; `interval` holds both ends, and covers with `confidence`.

    Both are None where the interval of a divisor holds 0. `statement` says what the interval is.
    """

    value: Fraction | None
    interval: _Ends | None
    confidence: float
    statement: str


@dataclass(frozen=True)
class Part:
    """A number of one element of an answer.

    `draw` names its noise, which is the same wherever the same release is shown. `variance` is that of the noise, in
    multiples of `step`, where it is known and nothing selected it; None elsewhere. `alpha` is the probability with
    which `interval` may miss.
    """

    draw: tuple[object, ...]
    value: Fraction
    interval: _Ends
    alpha: Fraction
    variance: Fraction | None
    step: Fraction = Fraction(1)

    def at(self, alpha: Fraction) -> _Ends:
        """Returns its interval at another alpha, where the law of its noise is known."""
        if self.variance is None:
            return self.interval
        width = _width([(self.step, self.variance)], alpha)
        # An end that is a bound of what a count can be stays one.
        lower, upper = self.value - width, self.value + width
        return (max(lower, Fraction(0)), max(upper, Fraction(0)))


def part_of(answer: PrivateResult, element: Element, number: str | None = None) -> Part:
    """Returns a number of an element; see `PrivateResult.part`."""
    place = _place(answer, element)
    row = answer.rows[place]
    alpha = 1 - Fraction(str(answer.confidence))
    draw = (answer.release_id, row.element, number)
    if number is not None:
        titles = [each.title for each in answer.parameters.aggregates]
        if number not in titles:
            raise InvalidQuestion(
                "number", f"expected one of {', '.join(titles) or 'no number'}, got {number!r}"
            )
        value = row.values[titles.index(number)]
        if value is None or isinstance(value, DayValue):
            raise InvalidQuestion("number", f"expected a number that the answer shows for {number}")
        return Part(draw, value.value, value.interval, alpha, None)
    if row.noisy_count is None or row.interval is None:
        raise InvalidQuestion("element", "expected an answer with counts")
    # As it was released, before it is rounded to be shown.
    _, elements = answer._messages
    step = Fraction(1, elements.noisy_denominator or 1)
    count = (elements.noisy_numerators or elements.noisy_counts)[place] * step
    lower, upper = row.interval
    variance = _variance(answer)
    in_steps = None if variance is None else variance / step**2
    return Part(draw, count, (Fraction(lower), Fraction(upper)), alpha, in_steps, step)


def _place(answer: PrivateResult, element: Element) -> int:
    wanted = element if isinstance(element, tuple) else (element,)
    found = [place for place, row in enumerate(answer.rows) if row.element == wanted]
    if len(found) != 1:
        raise InvalidQuestion("element", f"expected an element that the answer shows, got {element!r}")
    return found[0]


def _variance(answer: PrivateResult) -> Fraction | None:
    """Returns the variance of a count's noise where each count has a Gaussian draw of its own that nothing selected."""
    bounded = answer.parameters.bounded
    shares_noise = answer.parameters.shift is not None or any(
        each.code == "counts.reached" for each in answer.statements
    )
    if bounded is None or shares_noise or answer.interval_kind is not IntervalKind.PLAIN:
        return None
    return bounded.noise_variance


def combined(parts: Sequence[tuple[Part, Coefficient]], candidates: int) -> Combined:
    """Returns the sum of numbers times their coefficients; see `PrivateResult.combine`."""
    if not parts:
        raise InvalidQuestion("coefficients", "expected at least one element")
    weighted = [(part, _coefficient(given)) for part, given in parts]
    value = sum((part.value * weight for part, weight in weighted), Fraction(0))
    alpha = max(part.alpha for part, _ in weighted) / _checked(candidates)
    noise: dict[tuple[object, ...], tuple[Fraction, Fraction]] = {}
    for part, weight in weighted:
        if part.variance is None:
            return _in_box([part for part, _ in weighted], candidates, lambda box: _sum(weighted, box), value)
        before, _ = noise.get(part.draw, (Fraction(0), part.variance))
        noise[part.draw] = (before + weight * part.step, part.variance)
    width = _width(list(noise.values()), alpha)
    said = f"The interval is that of the noise of all numbers together, {_BEFOREHAND}."
    return Combined(value, (value - width, value + width), _confidence(alpha * candidates), said)


def quotient(above: Part, below: Part, candidates: int) -> Combined:
    """Returns one number divided by another one; see `PrivateResult.ratio`."""
    value = above.value / below.value if below.value else None
    return _in_box([above, below], candidates, _divided, value)


def _in_box(
    parts: list[Part], candidates: int, ends: Callable[[list[_Ends]], _Ends | None], value: Fraction | None
) -> Combined:
    """Returns a number that lies between these ends where each part lies in its interval."""
    _checked(candidates)
    known = all(part.variance is not None for part in parts)
    most = max(part.alpha for part in parts)
    # Where laws are known, each takes its part of the error. Other intervals are as they are, and their errors add up.
    alpha = most if known else candidates * sum((part.alpha for part in parts), Fraction(0))
    if alpha >= 1:
        raise InvalidQuestion(
            "confidence", "expected answers at a higher confidence: the errors of intervals add up"
        )
    box = [part.at(most / (len(parts) * candidates)) for part in parts]
    found = ends(box)
    confidence = _confidence(alpha)
    if found is None or value is None:
        said = "There is no value: the interval of the divisor holds 0."
        return Combined(None, None, confidence, said)
    said = (
        f"The interval is the box of the intervals of {formats.counted(len(parts), 'number')}, {_BEFOREHAND}."
    )
    if not known and len(parts) * candidates > 1:
        finer = _confidence(most / (len(parts) * candidates))
        said += f" Their errors add up: ask again with confidence={finer:g}, which is free, for {_confidence(most):g}."
    return Combined(value, (min(found[0], value), max(found[1], value)), confidence, said)


def _sum(weighted: list[tuple[Part, Fraction]], box: list[_Ends]) -> _Ends:
    ends = [sorted(weight * end for end in each) for (_, weight), each in zip(weighted, box, strict=True)]
    return sum((low for low, _ in ends), Fraction(0)), sum((high for _, high in ends), Fraction(0))


def _divided(box: list[_Ends]) -> _Ends | None:
    above, below = box
    if below[0] <= 0 <= below[1]:
        return None
    found = [one / other for one in above for other in below]
    return min(found), max(found)


def _width(noise: Sequence[tuple[Fraction, Fraction]], alpha: Fraction) -> Fraction:
    """Returns an h with Pr[|S| > h] <= alpha for a sum S of discrete Gaussian draws with weights and variances.

    From a variance of 1 on, the law of S is the normal one from half a step of its largest draw on. Below, its tails
    are those of a sub-Gaussian law. Why: `dp_service.mechanisms.aggregates.added_draws`.
    """
    some = [(weight, variance) for weight, variance in noise if weight]
    if not some:
        return Fraction(0)
    parts = [float(weight**2 * variance) for weight, variance in some]
    total, largest = sum(parts), max(parts)
    level = float(alpha) / 2 * (1 - _SLACK)
    if float(min(variance for _, variance in some)) * largest / total < 1:
        return _on_grid(some, math.sqrt(2 * total * math.log(1 / level)))
    step = abs(float(some[parts.index(largest)][0]))
    return _on_grid(some, -NormalDist().inv_cdf(level) * math.sqrt(total) + step / 2)


def _on_grid(noise: Sequence[tuple[Fraction, Fraction]], reached: float) -> Fraction:
    """Returns the largest number on the grid of a sum that is below the first one reached too rarely."""
    scale = math.lcm(*(weight.denominator for weight, _ in noise))
    step = Fraction(math.gcd(*(int(weight * scale) for weight, _ in noise)), scale)
    return max(math.ceil(Fraction(reached) / step) - 1, 0) * step


def _coefficient(given: Coefficient) -> Fraction:
    if isinstance(given, bool) or not isinstance(given, float | Rational) or not math.isfinite(given):
        raise InvalidQuestion("coefficients", f"expected finite numbers, got {given!r}")
    # As it is written: 0.1 is a tenth.
    number = Fraction(str(given)) if isinstance(given, float) else Fraction(given)
    if number and not Fraction(1, _LARGEST) <= abs(number) <= _LARGEST:
        raise InvalidQuestion("coefficients", f"expected numbers from 10^-9 to 10^9, or 0, got {given!r}")
    return number


def _checked(candidates: int) -> int:
    if type(candidates) is not int or not 1 <= candidates <= _LARGEST:
        raise InvalidQuestion("candidates", f"expected a whole number from 1 on, got {candidates!r}")
    return candidates


def _confidence(alpha: Fraction) -> float:
    return float(1 - alpha)


def parts_of(
    answer: PrivateResult, coefficients: Mapping[Element | Part, Coefficient], number: str | None
) -> list[tuple[Part, Coefficient]]:
    """Returns the numbers that elements of an answer name, with their coefficients."""
    return [
        (given if isinstance(given, Part) else part_of(answer, given, number), coefficient)
        for given, coefficient in coefficients.items()
    ]
