"""What would be done to answer a question for quantiles, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dp_service.mechanisms.aggregates import RankedValues
from dp_service.mechanisms.bounded import TwoLooks
from dp_service.parameters.aggregates import QuantilesReleased, ShownQuantile
from dp_service.queries.resolution import Resolution
from dp_service.releases.kinds import AnyKind
from dp_service.server.quantile_messages import quantiles_message
from dp_service.terms import BoundedBy, Consistency, GridScale, MemberValue, RankFunction

_RULES = {
    MemberValue.TOTAL: "the sum of its rows",
    MemberValue.MEAN: "the mean of its rows",
    MemberValue.LARGEST: "the largest of its rows",
    MemberValue.ONE_ROW: "one of its rows, which a salted hash chooses",
}
_SCALES = {
    GridScale.LINEAR: "equally wide",
    GridScale.GEOMETRIC: "wider by a common factor each",
    GridScale.DATES: "of equally many days each",
}
_BOUNDED_BY = {
    BoundedBy.IN_QUERY: "the query counts no more of them",
    BoundedBy.PREPARED: "the table is a copy that was bounded so",
    BoundedBy.ASSUMED: "the author of the policy promises it, and nothing checks it",
}


def quantile_sentences(resolution: Resolution, kind: AnyKind) -> Iterator[str]:
    """Yield one sentence for each thing that the policy resolved, but for windows and the price."""
    parameters = resolution.parameters
    stated, mechanism = parameters.quantiles, kind.ranked
    message = quantiles_message(kind)
    if stated is None or mechanism is None or message is None:
        return
    names = [name for name, _ in resolution.columns]
    looks = kind.first_look
    over = f"a known domain of {mechanism.among.groups} elements" if looks is None else "an unknown domain"
    by = f" by {', '.join(names)} over {over}" if names else ""
    yield f"Chooses {_listed(stated)} of {stated.column}{by}, and counts nothing."
    yield (
        f"Each member has one value{' in each element' if by else ''}: {_RULES[stated.rule]}, in "
        f"{'days' if stated.grid.scale is GridScale.DATES else f'steps of {_number(stated.quantum)}'}."
    )
    yield (
        f"It is chosen among {message.column.cells} public cells from {_end(message.column.lower, stated)} to "
        f"{_end(message.column.upper, stated)}, {_SCALES[stated.grid.scale]}; what is beyond is in the first cell "
        "or in the last one. A result is a cell, and no value of the data."
    )
    if looks is not None:
        yield from _two_looks(looks, mechanism, parameters.consistency)
    bounded = parameters.contributions
    if bounded is not None:
        reach = "1 element" if bounded.delta_0 == 1 else f"{bounded.delta_0} elements"
        each = f" in each of {bounded.periods} periods" if bounded.periods > 1 else ""
        of = "" if looks is None else " of those that are named"
        yield (
            f"A member has values in at most {reach}{each}{of}; {_BOUNDED_BY[bounded.bounded_by]}. "
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
    delta = "" if looks is None else f" and delta = {parameters.delta}"
    yield f"The mechanism is {parameters.mechanism} with epsilon_per = {parameters.epsilon_per}{delta}."


def _two_looks(looks: TwoLooks, values: RankedValues, consistency: Consistency) -> Iterator[str]:
    first, chosen = looks.names_look, values.worst_case_cost().information
    yield (
        f"A first look, for {first.units} units, counts each member in at most {first.bound.delta_0} elements. All "
        f"elements that count at least {looks.min_count} in it are fetched; of those whose noisy count exceeds "
        f"{first.threshold}, it names the largest, at most {looks.most_names}. Its counts are thrown away."
    )
    yield f"A second look, for {chosen} units, chooses the values of what was named, however few names there are."
    ended = looks.cost_of_names()
    unless = (
        ", unless a service or the engine is gone or the data have changed"
        if consistency is Consistency.KEYED
        else ""
    )
    yield (
        f"If the question ends after the first look, {ended.information} information and {ended.calls} call are "
        f"charged{unless}."
    )


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


def _end(text: str, stated: QuantilesReleased) -> str:
    return text if stated.grid.scale is GridScale.DATES else _number(Fraction(text))


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"
