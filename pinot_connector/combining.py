"""Arithmetic over numbers of answers: sums and differences with coefficients, and quotients.

It is computed from what was released and shown, so it costs nothing.

A linear combination of counts with Gaussian noise that no threshold and no rank selected has the interval of their
noise together, at the confidence of the answer. Noise of one element of one release is one draw, in whichever answers
it is shown, so its coefficients are added up first.

Everything else has the box of its numbers' intervals. Where the laws of their noise are known, each takes its part of
the error; else the errors add up, and the combination says at which confidence it holds. Asked again with more
confidence, which is free, each interval takes less of the error.

Where bounds can cut a number, what is computed of it is at best a lower bound (`coverage`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Rational
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from pinot_connector import formats
from pinot_connector.coverage import AtLeast, Coverage, Ends, NoiseAlone, TwoSided
from pinot_connector.errors import InvalidQuestion
from pinot_connector.parameters import IntervalKind
from pinot_connector.shown_values import ShownScalar, aggregate_values

if TYPE_CHECKING:
    from pinot_connector.results import PrivateResult

Element: TypeAlias = ShownScalar | tuple[ShownScalar, ...]
Coefficient: TypeAlias = int | float | Fraction
_Draw: TypeAlias = tuple[object, ...]
_Ends: TypeAlias = tuple[Fraction, Fraction]

_LARGEST = 10**9
# Covers what floats do to a quantile.
_SLACK = 1e-9
_SAID: Mapping[type[Coverage], str] = {
    TwoSided: "",
    AtLeast: " Bounds on members can cut what it is computed of, so it has a lower bound alone.",
    NoiseAlone: " Bounds on members can cut what it is computed of, so its ends cover noise alone.",
}
_BEFOREHAND = (
    "for elements chosen beforehand; of the largest of several, state how many `candidates` there were"
)


@dataclass(frozen=True)
class Combined:
    """A number that was computed of released ones; `interval` has the ends beside it, with `confidence`.

    Both are None where the interval of a divisor holds 0. `coverage` is what the ends say of the number in the table,
    and `statement` what they are.
    """

    value: Fraction | None
    interval: Ends[Fraction] | None
    confidence: float
    statement: str
    coverage: Coverage


@dataclass(frozen=True)
class Gaussian:
    """The noise of a number: discrete Gaussian draws, of each its name, its weight, and its variance."""

    draws: tuple[tuple[_Draw, Fraction, Fraction], ...]

    def width(self, alpha: Fraction) -> Fraction:
        """Returns how far it reaches to either side but for a probability of alpha."""
        return _width([(weight, variance) for _, weight, variance in self.draws], alpha)


@dataclass(frozen=True)
class DiscreteLaplace:
    """The noise of a number: one draw of its own, with Pr[Z = z] proportional to exp(-|z| / scale)."""

    scale: Fraction

    def width(self, alpha: Fraction) -> Fraction:
        """Returns the least h with Pr[|Z| > h] = 2 exp(-(h + 1) / scale) / (1 + exp(-1 / scale)) <= alpha."""
        scale = float(self.scale)
        reached = scale * math.log(2 / (float(alpha) * (1 + math.exp(-1 / scale)))) * (1 + _SLACK)
        return Fraction(max(math.ceil(reached) - 1, 0))


@dataclass(frozen=True)
class Part:
    """A number of one element of an answer.

    `ends` are what noise leaves possible, but for a probability of `alpha`. `law` is that of its noise, where it is
    known and nothing selected it; None elsewhere. `coverage` is what the ends say of the number in the table.
    """

    value: Fraction
    ends: _Ends
    alpha: Fraction
    law: Gaussian | DiscreteLaplace | None
    coverage: Coverage

    def at(self, alpha: Fraction) -> _Ends:
        """Returns its ends at another alpha, where the law of its noise is known."""
        if self.law is None:
            return self.ends
        width = self.law.width(alpha)
        # An end that is a bound of what a count can be stays one.
        lower, upper = self.value - width, self.value + width
        return (max(lower, Fraction(0)), max(upper, Fraction(0)))


def part_of(answer: PrivateResult, element: Element, number: str | None = None) -> Part:
    """Returns a number of an element; see `PrivateResult.part`."""
    place = _place(answer, element)
    alpha = 1 - Fraction(str(answer.confidence))
    # As they were released: the count before it is rounded, and ends before they are bounds.
    _, elements = answer._messages
    if number is not None:
        titles = [each.title for each in answer.parameters.aggregates]
        if titles.count(number) != 1:
            raise InvalidQuestion(
                "number",
                f"expected the only one so called of {', '.join(titles) or 'no number'}, got {number!r}",
            )
        column = titles.index(number)
        shown = answer.parameters.aggregates[column]
        value = aggregate_values(elements.aggregates[column], replace(shown, coverage=TwoSided()))[place]
        if value is None:
            raise InvalidQuestion("number", f"expected a number that the answer shows for {number}")
        return Part(value.value, (value.interval[0], value.interval[-1]), alpha, None, shown.coverage)
    if answer.interval_kind is IntervalKind.NONE:
        raise InvalidQuestion("element", "expected an answer with counts")
    step = Fraction(1, elements.noisy_denominator or 1)
    count = (elements.noisy_numerators or elements.noisy_counts)[place] * step
    ends = Fraction(elements.noise_lower[place]), Fraction(elements.noise_upper[place])
    law = _law(answer, answer.rows[place].element, step)
    return Part(count, ends, alpha, law, answer.parameters.coverage)


def _law(
    answer: PrivateResult, element: tuple[ShownScalar, ...], step: Fraction
) -> Gaussian | DiscreteLaplace | None:
    """Returns the law of a count's noise, where nothing selected it and it is that of draws that are known."""
    parameters = answer.parameters
    adds_up = any(each.code == "counts.reached" for each in answer.statements)
    if adds_up or answer.interval_kind is not IntervalKind.PLAIN:
        return None
    own, shift, bounded = (answer.release_id, element), parameters.shift, parameters.bounded
    if shift is not None:
        total = ((answer.release_id,), Fraction(shift.factor, shift.denominator), shift.total_variance)
        return Gaussian(((own, step, shift.count_variance), total))
    if bounded is not None:
        return Gaussian(((own, step, bounded.noise_variance / step**2),))
    scale = None if parameters.laplace is None else parameters.laplace.noise_scale
    return None if scale is None else DiscreteLaplace(scale)


def _place(answer: PrivateResult, element: Element) -> int:
    wanted = element if isinstance(element, tuple) else (element,)
    found = [place for place, row in enumerate(answer.rows) if row.element == wanted]
    if len(found) != 1:
        raise InvalidQuestion("element", f"expected an element that the answer shows, got {element!r}")
    return found[0]


def combined(parts: Sequence[tuple[Part, Coefficient]], candidates: int) -> Combined:
    """Returns the sum of numbers times their coefficients; see `PrivateResult.combine`."""
    if not parts:
        raise InvalidQuestion("coefficients", "expected at least one element")
    weighted = [(part, _coefficient(given)) for part, given in parts]
    value = sum((part.value * weight for part, weight in weighted), Fraction(0))
    alpha = max(part.alpha for part, _ in weighted) / _checked(candidates)
    covers = _of_sum(weighted)
    noise: dict[_Draw, tuple[Fraction, Fraction]] = {}
    for part, weight in weighted:
        if not isinstance(part.law, Gaussian):
            some = [part for part, _ in weighted]
            return _in_box(some, candidates, lambda box: _sum(weighted, box), value, covers)
        for draw, of_draw, variance in part.law.draws:
            before, _ = noise.get(draw, (Fraction(0), variance))
            noise[draw] = (before + weight * of_draw, variance)
    width = _width(list(noise.values()), alpha)
    said = f"The interval is that of the noise of all numbers together, {_BEFOREHAND}.{_SAID[type(covers)]}"
    ends = covers.ends(value - width, value + width)
    return Combined(value, ends, _confidence(alpha * candidates), said, covers)


def quotient(above: Part, below: Part, candidates: int) -> Combined:
    """Returns one number divided by another one; see `PrivateResult.ratio`."""
    value = above.value / below.value if below.value else None
    nothing_cut = above.coverage == below.coverage == TwoSided()
    return _in_box([above, below], candidates, _divided, value, TwoSided() if nothing_cut else NoiseAlone())


def _of_sum(weighted: Sequence[tuple[Part, Fraction]]) -> Coverage:
    """Returns what the ends of a sum say: where some number is cut, at best that it is at least the lower one."""
    found = [(part.coverage, weight) for part, weight in weighted if weight]
    if all(covers == TwoSided() for covers, _ in found):
        return TwoSided()
    adds = all(weight > 0 and covers != NoiseAlone() for covers, weight in found)
    return AtLeast() if adds else NoiseAlone()


def _in_box(
    parts: list[Part],
    candidates: int,
    ends: Callable[[list[_Ends]], _Ends | None],
    value: Fraction | None,
    covers: Coverage,
) -> Combined:
    """Returns a number that lies between these ends where each part lies in its own."""
    _checked(candidates)
    known = all(part.law is not None for part in parts)
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
        return Combined(None, None, confidence, said, covers)
    said = (
        f"The interval is the box of the intervals of {formats.counted(len(parts), 'number')}, {_BEFOREHAND}."
        f"{_SAID[type(covers)]}"
    )
    if not known and len(parts) * candidates > 1:
        finer = _confidence(most / (len(parts) * candidates))
        said += f" Their errors add up: ask again with confidence={finer:g}, which is free, for {_confidence(most):g}."
    return Combined(value, covers.ends(min(found[0], value), max(found[1], value)), confidence, said, covers)


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
