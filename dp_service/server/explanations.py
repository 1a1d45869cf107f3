"""What would be done to answer a question, in sentences for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from dp_service.mechanisms.aggregates import BoundMoments
from dp_service.mechanisms.bounded import BoundGauss, CombinedLaw, Shift, TwoLooks
from dp_service.mechanisms.parameters import Cost
from dp_service.parameters.contributions import LooksBefore
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.policy_schema import BUCKET_COLUMN
from dp_service.queries.resolution import Resolution
from dp_service.queries.times import CompleteBy, Refresh, TimeUnit
from dp_service.releases.choosing import Chosen
from dp_service.releases.kinds import AnyKind, kind_of
from dp_service.server.quantile_explanations import quantile_sentences
from dp_service.terms import BoundedBy, Consistency, CountNoise

_LARGEST_DENOMINATOR = 1000

_COUNT_NOISES = {
    CountNoise.LAPLACE: "discrete Laplace noise of scale",
    CountNoise.GAUSSIAN: "discrete Gaussian noise of standard deviation",
}


def explanation(resolution: Resolution, worst: Cost) -> list[str]:
    """Return one sentence for each thing that the policy resolved, and the price.

    Args:
        resolution: The question as the policy resolves it.
        worst: The most that the question can cost.
    """
    parameters, kind = resolution.parameters, kind_of(resolution.parameters)
    noise_scale = kind.count_scale
    if kind.counts_cells:
        lines = list(quantile_sentences(resolution, kind))
    else:
        lines = [
            _question(_column_names(resolution), parameters),
            *_listing(parameters),
            *_copy(resolution),
            *_clipping(parameters),
            *_contributions(kind),
            *_sums(kind),
            *_totals(resolution, kind),
            _mechanism(parameters),
        ]
    lines.extend(_lookups(resolution))
    if resolution.requested_k is not None:
        shows = "the policy" if parameters.sums is None else "a result with sums"
        lines.append(
            f"The question asks for {resolution.requested_k} elements; {shows} shows at most {parameters.k}."
        )
    if resolution.window:
        lines.append(f"Only closed periods count: rows with {resolution.window}.")
    lines.extend(_stream(resolution))
    if parameters.d_bar:
        lines.append(f"The {parameters.d_bar} largest counts and the one after them are fetched.")
    if noise_scale is not None:
        lines.append(f"Counts carry {_COUNT_NOISES[parameters.count_noise]} {_written(noise_scale)}.")
    lines.append(f"It costs at most {worst.information} information and {_calls(worst.calls)}.")
    return lines


def _stream(resolution: Resolution) -> Iterator[str]:
    """Yield how it is known that the rows of a stream are in, and what is only promised."""
    if resolution.stream is None:
        return
    stated = resolution.stream.stated
    match stated.complete_by:
        case CompleteBy.OFFSETS:
            yield (
                "The table takes in a stream: the question is answered once each of its partitions is in up to where "
                "the stream ended after the period was closed."
            )
        case CompleteBy.DELAY:
            yield (
                "The table takes in a stream: that its rows are in by the time a period is closed is a promise of the "
                "policy's author, and only a consumer that has stopped is noticed."
            )
    if stated.replaced_by_same_member:
        yield (
            "Newer rows replace older ones with their key: that none of a closed period is replaced, and each only by "
            "one of the same member, is a promise of the policy's author, and nothing checks it."
        )
    elif stated.replaced_until_closed:
        yield (
            "Newer rows replace older ones with their key, of which the member is a part: that none of a closed period "
            "is replaced is a promise of the policy's author, and nothing checks it."
        )
    if stated.offline_days_are_whole:
        yield (
            "If the table has an offline part, that it holds all rows of the stream up to its last day is a promise of "
            "the policy's author, and nothing checks it."
        )


def _lookups(resolution: Resolution) -> Iterator[str]:
    """Yield by which column each looked-up one is looked up, and what becomes of keys without a text."""
    query = resolution.query
    named = [*query.dimensions, *(each.column for each in query.restrictions)]
    for column in dict.fromkeys(each for each in named if each.lookup is not None):
        rest = "are left out" if column.null_value is None else f"count as {column.null_value}"
        yield (
            f"{column.name} is looked up by {column.of_table.name} in a public file, before anything is counted; rows "
            f"whose {column.of_table.name} it does not have {rest}."
        )


def _column_names(resolution: Resolution) -> list[str]:
    """Return what is counted by; buckets of time by their length, column and zone."""
    bucket = resolution.query.bucket
    names = [name for name, _ in resolution.columns]
    if bucket is None:
        return names
    zone = "" if bucket.unit is TimeUnit.DAYS else f" in {bucket.zone}"
    return [
        f"the {bucket.length} of {bucket.column.name}{zone}" if name == BUCKET_COLUMN else name
        for name in names
    ]


def _listing(parameters: ReleaseParameters) -> Iterator[str]:
    """Yield in which order the list is, and what conditions on it mean."""
    listing = parameters.listing
    if listing is None:
        return
    if listing.in_element_order:
        yield "The list is in the order of time, and not ranked."
    if listing.having:
        yield (
            "Conditions on what is released only leave elements out of the list, and cost nothing. All intervals are "
            "so wide that those of everything released cover together."
        )


def choice(chosen: Chosen) -> list[str]:
    """Return how the way of answering was chosen, empty if the policy leaves no choice."""
    if not chosen.among:
        return []
    finding = [each for each in chosen.among if each.finds_all]
    of = f"of {len(chosen.among)} ways that the policy allows, by its own expectations and never by the data"
    if finding:
        return [f"This is the cheapest, {of}, that is expected to find all that is asked for."]
    return [
        f"None, {of}, is expected to find all that is asked for, so this is the one that the policy states."
    ]


def _written(scale: Fraction) -> str:
    return str(scale) if scale.denominator <= _LARGEST_DENOMINATOR else f"{float(scale):.6f}"


_BOUNDED_BY = {
    BoundedBy.IN_QUERY: "the query counts no more of them",
    BoundedBy.PREPARED: "the table is a copy that was bounded so",
    BoundedBy.ASSUMED: "the author of the policy promises it, and nothing checks it",
}


_PERIODS = {Refresh.DAY: "days", Refresh.WEEK: "weeks", Refresh.MONTH: "months"}


def _copy(resolution: Resolution) -> Iterator[str]:
    """Yield that another table answers than the one that is asked."""
    if resolution.pairs is not None:
        yield (
            f"The prepared copy {resolution.query.table} answers for {resolution.pairs.asked_table}: the question sees "
            f"whole {_PERIODS[resolution.pairs.calendar]}, of which the copy has one row for each member and element."
        )
        if resolution.pairs.first_attributes:
            yield "Members whose attribute changed are counted by the value that they had first, in all periods."


def _clipping(parameters: ReleaseParameters) -> Iterator[str]:
    rows = "1 row" if parameters.tau == 1 else f"{parameters.tau} rows"
    if parameters.sums_rows:
        yield (
            f"A member counts with at most {rows} in each element: one that has more counts with so many of their mean."
        )
    elif parameters.clips:
        yield f"At most {rows} of a member count in each element; counts and intervals are without the others."


def _contributions(kind: AnyKind) -> Iterator[str]:
    """Yield what bounding means for counts and intervals, if contributions are bounded."""
    stated, look = kind.parameters.contributions, kind.look
    if stated is None:
        return
    of = "" if stated.names is None else " of those that a first look names"
    if stated.before is not None:
        of = " of these"
    each = f" in each of {stated.periods} periods" if stated.periods > 1 else ""
    yield (
        f"Counts are of bounded contributions: a member counts in at most {stated.delta_0} elements{each}{of}; "
        f"{_BOUNDED_BY[stated.bounded_by]}."
    )
    yield (
        "Intervals are of the bounded counts; their lower ends, at half of the error, also hold for the counts before "
        "bounding, their upper ends do not."
    )
    if look is not None and look.threshold is not None:
        yield (
            f"All elements that count at least {stated.min_count} are fetched; those whose noisy count exceeds "
            f"{look.threshold} are shown."
        )
    if kind.first_look is not None:
        yield from _two_looks(kind.first_look, kind.parameters.consistency)
    if kind.shift is not None:
        yield _shift(kind.shift)
    if stated.before is not None and look is not None and kind.law is not None:
        yield from _sharpening(kind.law, stated.before, look)


def _sharpening(law: CombinedLaw, before: LooksBefore, look: BoundGauss) -> Iterator[str]:
    looks = "the look before it" if len(before.units) == 1 else f"the {len(before.units)} looks before it"
    units = ", ".join(map(_written, before.units))
    deviation = math.sqrt(law.variance)
    yield (
        f"A look more, for {_units(look)}, counts them again with noise of its own. It is combined with {looks}, for "
        f"{units} units: combined counts carry noise of standard deviation {deviation:.6f}."
    )
    yield _PLANNED if before.planned else _NOT_PLANNED


_PLANNED = (
    "Intervals are of the combined counts: they hold if all units were decided on before any count was seen."
)
_NOT_PLANNED = (
    "Intervals are those of this look's own noise, extended to the combined count where that lies outside. Each holds "
    "whatever led to this look; who may stop after any of j looks asks with a confidence of 1 - alpha / j."
)


def _shift(shift: Shift) -> str:
    a, b = shift.factors
    return (
        f"Counts are released relative to the number of members who count in any element: {b} times each count less "
        f"{a} times that number, and the number itself, each with noise of its own. So counts are multiples of 1/{b}, "
        "and their noise is the sum of two draws."
    )


def _sums(kind: AnyKind) -> Iterator[str]:
    """Yield what is summed, how sensitive it is, and what noise it carries."""
    parameters = kind.parameters
    stated, mechanism = parameters.sums, kind.moments
    if stated is None or mechanism is None:
        return
    of = (
        "rows: averages are per row, and not per member."
        if parameters.sums_rows
        else "members' totals: of each member one number in each element, the sum of its rows."
    )
    yield f"Sums and averages are of {of} The counts take {stated.share} of the units."
    summed = "row's value" if parameters.sums_rows else "member's total"
    for place, column in enumerate(stated.columns):
        low, high = (_number(end * column.quantum) for end in (column.low, column.high))
        own = mechanism.own_count_variance(place)
        of_counts = (mechanism.count_variance if own is None else own) * (column.low + column.high) ** 2
        deviation = math.sqrt(mechanism.sum_variance(place) + of_counts) / 2 * float(column.quantum)
        yield (
            f"A {summed} of {column.name} counts with {low} to {high}, in steps of {_number(column.quantum)}. "
            f"It takes {column.share} of the units, and its sums carry noise of standard deviation {deviation:.6g}."
        )
        if column.count_share is not None:
            yield (
                f"Rows without a value of {column.name} count; its sums and averages are of the others, whose own "
                f"count takes {column.count_share} of the units."
            )
    yield "Where the interval of a count reaches down to 0, no average is shown."
    if stated.ordered_by is not None:
        first = stated.asked[stated.ordered_by]
        yield (
            f"The list is in descending order of the {first.function.value} of {stated.columns[first.place].name}. "
            "Where it is cut, intervals are so wide that those of all counts that were released cover together, and so "
            "do those of the sums and averages of each column."
        )
    if parameters.k is not None:
        yield f"At most {parameters.k} elements are shown."


def _totals(resolution: Resolution, kind: AnyKind) -> Iterator[str]:
    """Yield what totals there are, how noisy, and what they mean."""
    parameters = resolution.parameters
    stated, mechanism = parameters.totals, kind.drill_down
    if stated is None or mechanism is None:
        return
    of, over = (resolution.columns[place][0] for place in (stated.place, 1 - stated.place))
    deviation = math.sqrt(mechanism.total_variance)
    which = (
        "of every value" if parameters.domain is not None else "of the values that an element of the list has"
    )
    yield (
        f"Beside the list there are totals by {of}, {which}, and what the list leaves of each. They take "
        f"{stated.share} of all units, with noise of their own: their counts carry noise of standard deviation "
        f"{deviation:.6f}."
    )
    if isinstance(mechanism.totals, BoundMoments) and parameters.sums is not None:
        for place, column in enumerate(parameters.sums.columns):
            yield (
                f"The centred sums of {column.name} in totals carry noise of standard deviation "
                f"{math.sqrt(mechanism.totals.sum_variance(place)) / 2 * float(column.quantum):.6g}."
            )
    if stated.one_value:
        yield (
            f"Totals count a member once: that a member has one value of {over} is a promise of the policy's author, "
            "and nothing checks it."
        )
    elif parameters.contributions is not None and not parameters.contributions.of_events:
        yield f"Totals count contributions: a member that counts for several values of {over} counts as often."


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.12g}"


def _two_looks(looks: TwoLooks, consistency: Consistency) -> Iterator[str]:
    first, second = looks.names_look, looks.counts_look
    yield (
        f"A first look, for {_units(first)}, counts each member in at most {first.bound.delta_0} elements. "
        f"All elements that count at least {looks.min_count} in it are fetched; of those whose noisy count exceeds "
        f"{first.threshold}, it names the largest, at most {looks.most_names}. Its counts are thrown away."
    )
    yield (
        f"A second look, for {_units(second)}, counts what was named, and each member in at most "
        f"{second.bound.delta_0} elements of that."
    )
    ended = looks.cost_of_names()
    repeats = consistency is Consistency.KEYED
    unless = ", unless a service or the engine is gone or the data have changed" if repeats else ""
    yield (
        f"If the question ends after the first look, {ended.information} information and {_calls(ended.calls)} are "
        f"charged{unless}."
    )


def _units(look: BoundGauss) -> str:
    return f"{_written(look.units)} units"


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _question(columns: list[str], parameters: ReleaseParameters) -> str:
    if not columns:
        return f"Counts everything in one total; a member changes it by at most {parameters.tau}."
    size = len(parameters.domain or ())
    domain = f"a known domain of {size} elements" if size else "an unknown domain"
    stated = parameters.contributions
    if stated is not None and stated.before is not None:
        domain = "the elements of a release that is paid for"
    reach = f"at most {parameters.delta_l0}" if parameters.delta_l0 else "any number of"
    return (
        f"Counts by {', '.join(columns)} over {domain}; "
        f"a member changes {reach} elements, each by at most {parameters.tau}."
    )


def _mechanism(parameters: ReleaseParameters) -> str:
    delta = f" and delta = {parameters.delta}" if parameters.domain is None else ""
    return f"The mechanism is {parameters.mechanism} with epsilon_per = {parameters.epsilon_per}{delta}."
