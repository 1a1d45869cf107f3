"""What would be done to answer a question for quantiles, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dp_service.queries.resolution import Resolution
from dp_service.release_parameters import QuantilesReleased, ShownQuantile
from dp_service.releases.mechanism import ranked_of
from dp_service.server.quantile_messages import quantiles_message
from dp_service.terms import BoundedBy, GridScale, MemberValue, RankFunction

_RULES = {
    MemberValue.TOTAL: "the sum of its rows",
    MemberValue.MEAN: "the mean of its rows",
    MemberValue.LARGEST: "the largest of its rows",
    MemberValue.ONE_ROW: "one of its rows, which a salted hash chooses",
}
_SCALES = {GridScale.LINEAR: "equally wide", GridScale.GEOMETRIC: "wider by a common factor each"}
_BOUNDED_BY = {
    BoundedBy.IN_QUERY: "the query counts no more of them",
    BoundedBy.PREPARED: "the table is a copy that was bounded so",
    BoundedBy.ASSUMED: "the author of the policy promises it, and nothing checks it",
}


def quantile_sentences(resolution: Resolution) -> Iterator[str]:
    """Yield one sentence for each thing that the policy resolved, but for windows and the price."""
    parameters = resolution.parameters
    stated, mechanism = parameters.quantiles, ranked_of(parameters)
    message = quantiles_message(parameters)
    if stated is None or mechanism is None or message is None:
        return
    names = [name for name, _ in resolution.columns]
    by = f" by {', '.join(names)} over a known domain of {mechanism.among.groups} elements" if names else ""
    yield f"Chooses {_listed(stated)} of {stated.column}{by}, and counts nothing."
    yield (
        f"Each member has one value{' in each element' if by else ''}: {_RULES[stated.rule]}, in steps of "
        f"{_number(stated.quantum)}."
    )
    yield (
        f"It is chosen among {message.column.cells} public cells from {_number(Fraction(message.column.lower))} to "
        f"{_number(Fraction(message.column.upper))}, {_SCALES[stated.grid.scale]}; what is beyond is in the first cell "
        "or in the last one. A result is a cell, and no value of the data."
    )
    bounded = parameters.contributions
    if bounded is not None:
        reach = "1 element" if bounded.delta_0 == 1 else f"{bounded.delta_0} elements"
        each = f" in each of {bounded.periods} periods" if bounded.periods > 1 else ""
        yield (
            f"A member has values in at most {reach}{each}; {_BOUNDED_BY[bounded.bounded_by]}. "
            f"Each of them costs {stated.units} information."
        )
    for asked, shown in zip(stated.asked, message.shown, strict=True):
        largest = sum((Fraction(cut.part) for cut in shown.cuts), Fraction(0))
        cuts = (
            f", and of a part of the members in the cells of other quantiles, {_number(largest)} at most"
            if shown.cuts
            else ""
        )
        yield (
            f"With 95 % the wanted rank of {_name(asked)} is within {_number(Fraction(shown.rank_error))} members of "
            f"the ranks in its cell{cuts}."
        )
    if bounded is not None:
        yield "Members are those that are left in an element once contributions are bounded."
    if message.spare_members:
        yield (
            f"About the smallest and the largest value mean the value at rank {message.spare_members} from the end, so "
            "that no member's own value decides; where there are fewer members, they say nothing."
        )
    yield f"The mechanism is {parameters.mechanism} with epsilon_per = {parameters.epsilon_per}."


def _listed(stated: QuantilesReleased) -> str:
    return ", ".join(_name(each) for each in stated.asked)


def _name(asked: ShownQuantile) -> str:
    match asked.function:
        case RankFunction.SMALLEST:
            return "about the smallest value"
        case RankFunction.LARGEST:
            return "about the largest value"
        case RankFunction.QUANTILE:
            return f"the quantile {_number(asked.q or Fraction(0))}"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"
