"""Everything that is said of a question and of its answer, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from dp_service.mechanisms.intervals import CountIntervals
from dp_service.mechanisms.parameters import Cost
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.audience_terms import ForcedRows
from dp_service.queries.blocks import MAXIMUM_NAMED, PaidBy
from dp_service.queries.functions import NAMES_OF_MEMBERS
from dp_service.queries.intervals import YEARS_OF_TIMESTAMPS
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import Free
from dp_service.queries.times import CompleteBy, ReplacedRows
from dp_service.releases.exactness import at_other_prices, of_other_prices
from dp_service.releases.kinds import AnyKind, kind_of
from dp_service.releases.kinds.coverage import in_words
from dp_service.releases.kinds.parts import WHAT_HELPS
from dp_service.releases.kinds.views import Counts, ExpectedAccuracy, ReleaseView
from dp_service.releases.plan import Plan
from dp_service.releases.shortcomings import shortcomings
from dp_service.releases.statements import Statement, calls, elements, percent, written
from dp_service.terms import CountNoise

ESTIMATED_CONFIDENCE = 0.95
"""The confidence of what is said before a question is asked."""

_COUNT_NOISES = {
    CountNoise.LAPLACE: "discrete Laplace noise of scale",
    CountNoise.GAUSSIAN: "discrete Gaussian noise of standard deviation",
}


def of_question(
    resolution: Resolution, worst: Cost, expected: ExpectedAccuracy, allowed: Sequence[int] = ()
) -> Iterator[Statement]:
    """Yield what would be done to answer a question, and its price.

    Args:
        resolution: The question as the policy resolves it.
        worst: The most that it can cost.
        expected: How exact its answer can be expected to be.
        allowed: The units that it may cost by what it says of how exact it has to be; empty: it has no such price.
    """
    kind = kind_of(resolution.parameters)
    columns = [name for name, _ in resolution.columns]
    yield kind.question(_counted_by(resolution))
    yield from _listing(
        resolution.parameters, " Then all intervals cover together, and are as wide as that needs."
    )
    yield from _of_members(columns)
    yield from kind.meaning(columns, ESTIMATED_CONFIDENCE)
    yield from in_words(kind.coverages, ESTIMATED_CONFIDENCE)
    yield from _accuracy(kind, expected)
    yield from _method(kind)
    yield from _lookups(resolution)
    yield from _forced(resolution.forced)
    yield from _without_far_times(resolution.query.without_far_times)
    yield from _lowered(resolution.parameters, resolution.requested_k)
    if resolution.window:
        yield Statement("rows.closed", f"Only closed periods count: rows with {resolution.window}.")
    if resolution.usual_range:
        text = f"As the question leaves an end of the time open, the policy's counts: rows {resolution.usual_range}."
        yield Statement("rows.usual", text)
    yield from _stream(resolution)
    yield Statement(
        "method.cost",
        f"It costs at most {worst.information} information and {calls(worst.calls)}.",
        values=(str(worst.information), str(worst.calls)),
    )
    yield from _blocks(resolution.paid_by)
    yield from of_other_prices(tuple(at_other_prices(resolution.parameters)), allowed)


def of_answer(
    plan: Plan, shown: Counts | None, view: ReleaseView, *, bottom: int | None, confidence: float
) -> Iterator[Statement]:
    """Yield what is to be known of a list that is shown, and how its numbers were made.

    Args:
        plan: The plan of the question.
        shown: The counts that the view shows; None: it shows none.
        view: What the question shows of the release.
        bottom: The noisy threshold of the release; None: it is not released.
        confidence: Of each interval.
    """
    kind, columns = kind_of(plan.parameters), [name for name, _ in plan.columns]
    yield from shortcomings(kind, view, shown)
    if view.ended_in_bottom:
        yield _ended(bottom)
    yield from _forced(plan.forced)
    yield from _without_far_times(plan.without_far_times)
    yield from _lowered(plan.parameters, plan.requested_k)
    yield from _listing(plan.parameters)
    yield from _of_members(columns)
    yield from kind.meaning(columns, confidence)
    yield from in_words(kind.coverages, confidence)
    yield from kind.of_intervals(view, confidence)
    if shown is not None and view.intervals is not None:
        yield from _cut(shown, view.intervals, confidence)
    if not plan.parameters.counts_cells:
        yield kind.reach(columns)
    yield from _method(kind)
    yield from _blocks(plan.paid_by)


def of_free(free: Free) -> Statement:
    """Return what is to be known of an answer that needs no release."""
    if free is Free.COLUMNS:
        return Statement(
            "free.columns", "No data were read: the question asks for the columns of its answer alone."
        )
    return Statement(
        "free.elements",
        "No data were read: these are the values that the policy lists, whether or not the data have them.",
    )


def _forced(rows: ForcedRows) -> Iterator[Statement]:
    """Yield by which columns an audience is restricted to some of the rows."""
    if rows.columns:
        yield Statement(
            "rows.audience",
            f"Only rows with certain values of {', '.join(rows.columns)} count: the audience that asks is offered no "
            "others.",
        )


def _without_far_times(columns: tuple[str, ...]) -> Iterator[Statement]:
    if columns:
        yield Statement(
            "rows.far_times",
            f"A time outside {YEARS_OF_TIMESTAMPS} meets no condition on {', '.join(columns)}, and is in no group.",
        )


def _ended(bottom: int | None) -> Statement:
    threshold = "" if bottom is None else f" (noisy threshold {bottom})"
    return Statement(
        "list.ended",
        f"The list ended in bottom{threshold}: nothing below may be shown. {WHAT_HELPS}",
        values=() if bottom is None else (str(bottom),),
    )


def _accuracy(kind: AnyKind, expected: ExpectedAccuracy) -> Iterator[Statement]:
    """Yield how exact counts will be, how large they have to be, and what the question costs on average."""
    if expected.half_width is not None and expected.mean_error is not None:
        selected = (
            "; where noisy counts decide what is shown, less surely" if _selects(kind, expected) else ""
        )
        mean = f"{expected.mean_error:.3g}"
        yield Statement(
            "accuracy.width",
            f"By its noise alone a count is off by at most {expected.half_width} with 95 %, and is off by {mean} on "
            f"average{selected}.",
            values=(str(expected.half_width), mean),
        )
    # The count that is cut off; 0 if there are fewer elements.
    rank = "" if expected.is_fixed else f" above that at rank {(kind.parameters.d_bar or 0) + 1}"
    if expected.found_half is not None and expected.found_mostly is not None:
        fewer = "" if expected.is_fixed else " (0 if there are fewer elements)"
        look = "" if kind.first_look is None else " of the first look"
        yield Statement(
            "accuracy.threshold",
            f"An element passes the threshold{look} with 50 % if its count is {expected.found_half}{rank}{fewer}, with "
            f"95 % from {expected.found_mostly} on.",
            values=(str(expected.found_half), str(expected.found_mostly)),
        )
    if expected.ordered_mostly is not None:
        yield Statement(
            "accuracy.order",
            f"Two counts that lie {expected.ordered_mostly} apart are ranked in their order before noise with 95 %.",
            values=(str(expected.ordered_mostly),),
        )
    yield _price(kind, expected, rank)


def _selects(kind: AnyKind, expected: ExpectedAccuracy) -> bool:
    """Return whether elements are shown because of the noise in the counts that are shown of them."""
    if expected.ordered_mostly is not None:
        # They are chosen with noise of its own.
        return False
    asked = kind.parameters
    is_all = asked.shown_at_most is None or (
        asked.domain is not None and asked.shown_at_most >= len(asked.domain)
    )
    in_time = asked.listing is not None and asked.listing.in_element_order
    return not (is_all or in_time) or (expected.found_mostly is not None and kind.first_look is None)


def _price(kind: AnyKind, expected: ExpectedAccuracy, rank: str) -> Statement:
    """Return what a question costs on average, as far as that does not depend on the data."""
    if not expected.prices:
        return Statement("accuracy.price", "The price is the same, whatever is found.")
    cases = "; ".join(
        f"if all {kind.parameters.k} counts lie {each.above}{rank}, {each.found:.3g} are found and "
        f"{each.information:.3g} information paid on average"
        for each in expected.prices
    )
    return Statement(
        "accuracy.price",
        f"The price is 2 information and {kind.information_per_element} for each element found, of which only an "
        f"answer shows how many there are: {cases}.",
        values=tuple(f"{each.information:.3g}" for each in expected.prices),
    )


def _method(kind: AnyKind) -> Iterator[Statement]:
    asked = kind.parameters
    yield from kind.method()
    delta = "" if asked.domain is not None else f" and delta = {asked.delta}"
    yield Statement(
        "method.mechanism",
        f"The mechanism is {asked.mechanism}, {kind.gloss}, with epsilon_per = {asked.epsilon_per}{delta}.",
        values=(asked.mechanism, str(asked.epsilon_per)),
    )
    if kind.noise_scale is not None:
        scale = written(kind.noise_scale)
        text = f"{kind.counts_called} carry {_COUNT_NOISES[asked.count_noise]} {scale}."
        yield Statement("method.noise", text, values=(scale,))


def _lowered(parameters: ReleaseParameters, requested: int | None) -> Iterator[Statement]:
    if requested is None:
        return
    shows = "the policy" if parameters.sums is None else "a result with sums"
    yield Statement(
        "list.lowered",
        f"The question asks for {elements(requested)}; {shows} shows at most {parameters.k}.",
        values=(str(requested), str(parameters.k)),
    )


def _cut(shown: Counts, intervals: CountIntervals, confidence: float) -> Iterator[Statement]:
    """Yield what an interval says whose whole range lay below the smallest possible count."""
    is_cut = (shown.noisy < intervals.lower * shown.denominator) & (intervals.lower == intervals.upper)
    if not is_cut.any():
        return
    least = int(intervals.lower[is_cut][0])
    yield Statement(
        "intervals.cut",
        f"No count shown here is below {least} before noise, so {least} to {least} stands where a whole interval was "
        f"below it: noise as large as that meets at most {percent(1 - Fraction(str(confidence)))} of counts. The count "
        "before noise is likely small; that it is exact is not said.",
        values=(str(least),),
    )


def _blocks(paid_by: PaidBy) -> Iterator[Statement]:
    """Yield whose budget pays, where members are divided into blocks.

    How many blocks there are is not said: an audience may be offered few of them.
    """
    if not paid_by.division:
        return
    if paid_by.blocks:
        number = len(paid_by.blocks)
        blocks = "one block" if number == 1 else f"{number} blocks"
        text = f"Only members of {blocks} (by {paid_by.division}) can be counted, so no other block pays."
        yield Statement("method.blocks", text, values=(str(number),))
    else:
        how = (
            f"a condition that names at most {MAXIMUM_NAMED} values of {paid_by.column}, in every branch, leaves the "
            "others out"
            if paid_by.column
            else "this table does not say which block a row is of"
        )
        text = f"Members of every block (by {paid_by.division}) can be counted, so all blocks pay; {how}."
        yield Statement("method.all_blocks", text)


def _counted_by(resolution: Resolution) -> list[str]:
    """Return what is counted by; functions of time by what they are, column and zone."""
    return [str(each) for each in resolution.query.dimensions]


def _listing(parameters: ReleaseParameters, of_intervals: str = "") -> Iterator[Statement]:
    """Yield in which order the list is, and what conditions on it mean; an answer's intervals say it themselves."""
    listing = parameters.listing
    if listing is None:
        return
    if listing.in_element_order:
        yield Statement(
            "order.of_elements", "The list is in ascending order of its elements, and not ranked."
        )
    if listing.smallest_first:
        yield Statement(
            "order.smallest_first",
            "The smallest numbers come first. Which they are depends on noise as well, so where the list is cut, "
            "intervals are so wide that those of all that was released cover together.",
        )
    if listing.having:
        yield Statement(
            "list.filtered",
            f"Conditions on what is released only leave elements out of the list, and cost nothing.{of_intervals}",
        )


def _of_members(columns: Sequence[str]) -> Iterator[Statement]:
    """Yield of which rows of a member first times and steps are, if the question groups by others as well."""
    if not NAMES_OF_MEMBERS.isdisjoint(columns) and not NAMES_OF_MEMBERS.issuperset(columns):
        yield Statement(
            "rows.of_members",
            "First times and steps are of a member's rows with the same values in the other columns: a member may be "
            "new, or reach a step, in several of them.",
        )


def _lookups(resolution: Resolution) -> Iterator[Statement]:
    """Yield by which column each looked-up one is looked up, and what becomes of keys without a text."""
    query = resolution.query
    # Of one that only alternatives name, another alternative may hold.
    of_all = {each.name for each in (*query.dimensions, *(each.column for each in query.restrictions))}
    for column in resolution.looked_up:
        left_out = "are left out" if column.name in of_all else f"meet no condition on {column.name}"
        rest = left_out if column.null_value is None else "count with the policy's value for NULL"
        yield Statement(
            "rows.looked_up",
            f"{column.name} is looked up by {column.key.name} in a public file, before anything is counted; rows "
            f"whose {column.key.name} it does not have {rest}.",
        )


def _stream(resolution: Resolution) -> Iterator[Statement]:
    """Yield how it is known that the rows of a stream are in, and what is only promised."""
    if resolution.stream is None:
        return
    time = resolution.stream.time
    match time.complete_by:
        case CompleteBy.OFFSETS:
            yield Statement(
                "rows.offsets",
                "The table takes in a stream: the question is answered once each of its partitions is in up to where "
                "the stream ended after the period was closed.",
            )
        case CompleteBy.DELAY:
            yield Statement(
                "rows.delay",
                "The table takes in a stream: that its rows are in by the time a period is closed is a promise of the "
                "policy's author, and only a consumer that has stopped is noticed.",
            )
    if time.replaced_rows is ReplacedRows.UNTIL_CLOSED_BY_SAME_MEMBER:
        yield Statement(
            "rows.replaced",
            "Newer rows replace older ones with their key: that none of a closed period is replaced, and each only by "
            "one of the same member, is a promise of the policy's author, and nothing checks it.",
        )
    elif time.replaced_rows is not None:
        yield Statement(
            "rows.replaced",
            "Newer rows replace older ones with their key, of which the member is a part: that none of a closed period "
            "is replaced is a promise of the policy's author, and nothing checks it.",
        )
    if time.offline_part is not None:
        yield Statement(
            "rows.offline",
            "If the table has an offline part, that it holds all rows of the stream up to its last day is a promise of "
            "the policy's author, and nothing checks it.",
        )
