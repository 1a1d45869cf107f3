"""What the bound of a table means for a question: how many periods it sees, and what one member can change.

A prepared copy has a member's weight in each of its periods, over all its elements. How many periods a question sees is
a matter of the policy, or of the calendar and the range that the question states; never of the data.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from dp_service.bounding import relative_counts
from dp_service.bounding.order import table_salt
from dp_service.parameters.contributions import BoundedContributions, NamesLook
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_columns import (
    OrdinalRestriction,
)
from dp_service.queries.canonical_query import (
    CanonicalQuery,
    QueryDistinct,
)
from dp_service.queries.domains import MAXIMUM_ELEMENTS
from dp_service.queries.elements import date_of, timestamp_of
from dp_service.queries.errors import QuestionError
from dp_service.queries.member_functions import most_elements
from dp_service.queries.policy_types import MAXIMUM_NAMES, NAMES_SHARE
from dp_service.queries.table_contributions import ONE_PERIOD, Contributions, Prepared, promised
from dp_service.queries.tables import Table
from dp_service.queries.times import Refresh, TimeColumn, TimeUnit
from dp_service.terms import BoundedBy, Bounding, ColumnType, Element

MAXIMUM_ROWS = 100_000_000
"""The most rows of an answer over an unknown domain: what Pinot groups at most. Nobody's memory holds as many."""


@dataclass(frozen=True)
class PreparedCopy:
    """What a prepared copy must say of itself: the arguments of `gris bound`.

    `period` is `ONE_PERIOD`, a column, or the periods of a calendar: `month(day)`, `month(seen, Europe/Berlin)`.
    """

    table: str
    member: str
    elements: tuple[str, ...]
    typical: int
    period: str


def prepared_copy(table: Table) -> PreparedCopy | None:
    """Return what the engine has to find in the table's file; None: the table need not be a prepared copy."""
    stated = table.contributions
    if stated is None or stated.bounded_by is not BoundedBy.PREPARED:
        return None
    return PreparedCopy(
        table.name, table.member, tuple(stated.elements), stated.delta, _stated_period(stated, table.time)
    )


def _stated_period(stated: Prepared, time: TimeColumn | None) -> str:
    """Return how the copy names its periods, so that a copy with others than the calendar's is refused.

    How many periods a question sees follows from its range of time. That is true only of a copy whose periods were
    made of the same column, by the same calendar.
    """
    if not isinstance(stated.periods, Refresh) or time is None:
        return stated.period
    column = time.name if time.unit is TimeUnit.DAYS else f"{time.name}, {time.zone}"
    return f"{stated.periods}({column})"


def bounded_contributions(
    stated: Contributions,
    table: Table,
    query: CanonicalQuery,
    domain: Sequence[Element] | None,
    *,
    typical: int | None,
    tau: int,
) -> BoundedContributions:
    """Return the parameters of a release of bounded contributions.

    Args:
        stated: What the policy says.
        table: The table that is asked.
        query: The question.
        domain: The elements of a known domain: a member can be in no more; None: it is unknown.
        typical: In how many elements of the question's columns a member is; None: the policy does not say.
        tau: By how much a member changes a count.

    Raises:
        QuestionError: The calendar does not tell how many periods the question sees.
    """
    bound = min(promised(stated) or typical or MAXIMUM_ELEMENTS, MAXIMUM_ELEMENTS)
    longest = stated.longest_list if domain is None else None
    names = None if longest is None else _names_look(longest, stated, query, bound)
    within = bound if domain is None else most_elements(query, domain)
    of_events = query.measure is not Measure.DISTINCT_MEMBERS
    values_of = query.measure.column.name if isinstance(query.measure, QueryDistinct) else ""
    of_counts = not query.values and query.quantiles is None and not values_of
    bounding, of_members = Bounding.NOTHING, any(each.is_of_member for each in query.dimensions)
    periods = _periods(stated.periods, table.time, query)
    if stated.bounded_by is not BoundedBy.ASSUMED and (domain is None or periods * bound < within):
        bounding = Bounding.WEIGHTS if of_counts or query.values else Bounding.FIRST
    elif periods > 1:
        # A member is in no more elements of the domain, in however many periods.
        bound, periods = within, 1
    return BoundedContributions(
        bounded_by=stated.bounded_by,
        typical=min(bound, within if names is None else names.most_names),
        periods=periods,
        of_events=of_events,
        units=stated.units,
        min_count=stated.min_count if domain is None else None,
        salt=table_salt(table.name, ONE_PERIOD).hex() if bounding is Bounding.FIRST else "",
        names=names,
        # Sums have counts of their own, with their own noise.
        shifted=stated.bounded_by is BoundedBy.IN_QUERY
        and of_counts
        and not of_members
        and domain is not None
        and bounding is Bounding.NOTHING
        and relative_counts.helps(len(domain), tau=tau),
        values_of=values_of,
        bounding=bounding,
        largest_cut=stated.largest_cut,
    )


def most_names(longest_list: int, texts: int) -> int:
    """Return how many elements the first of two looks names at most, where an element has so many texts.

    Each of them may be as long as a text can be; the query for all names has to fit into a message whatever they are.
    """
    return max(1, min(longest_list, MAXIMUM_NAMES // max(1, texts)))


def _names_look(longest: int, stated: Contributions, query: CanonicalQuery, bound: int) -> NamesLook:
    """Return the first look at an unknown domain, in which half as many elements of a member count in full.

    Nothing of it depends on k, so any k is the same release. A promise is of both looks.
    """
    texts = sum(column.type is ColumnType.STRING for column in query.dimensions)
    return NamesLook(
        promised(stated) or -(-bound // 2), NAMES_SHARE * stated.units, most_names(longest, texts)
    )


def _periods(stated: int | Refresh, time: TimeColumn | None, query: CanonicalQuery) -> int:
    if isinstance(stated, int):
        return stated
    if time is not None:
        match [each for each in query.column_conditions if each.column.name == time.name]:
            case [OrdinalRestriction(intervals=(only,))] if all(time.ends_in(only)):
                first, end = (_begun(value, time, stated) for value in (only.start, only.end))
                if first is not None and end is not None:
                    return end - first
    raise QuestionError(
        "time_range",
        f"expected one range of time that begins and ends with a {stated}: the table has the rows of each {stated} as "
        f"one, and the noise follows from how many of them the question sees",
    )


def _begun(value: int, time: TimeColumn, length: Refresh) -> int | None:
    """Return the number of the period that begins with a value of the time column; None: none does."""
    before, number = (_number(_day_of(each, time), length) for each in (value - 1, value))
    return number if number > before else None


def _day_of(value: int, time: TimeColumn) -> datetime.date:
    """Return the day, in the zone of the time column, that a value belongs to."""
    if time.unit is TimeUnit.DAYS:
        return date_of(value)
    return timestamp_of(value * int(time.unit.value)).astimezone(ZoneInfo(time.zone)).date()


def _number(day: datetime.date, length: Refresh) -> int:
    """Return the number of the period that a day belongs to; the next period has the next number."""
    match length:
        case Refresh.DAY:
            return day.toordinal()
        case Refresh.WEEK:
            # Day 1 was a Monday.
            return (day.toordinal() - 1) // 7
        case Refresh.MONTH:
            return 12 * day.year + day.month
