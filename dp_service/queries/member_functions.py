"""What functions of all of a member's rows mean for a release: its elements, and in how many a member can be."""

from __future__ import annotations

from collections.abc import Sequence

from dp_service.queries.canonical_columns import (
    QueryColumn,
    QueryFirst,
    QueryFunnel,
    QueryLater,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.elements import days_of
from dp_service.queries.errors import QuestionError
from dp_service.terms import Element, MechanismName


def possible_elements(domain: Sequence[Element], columns: Sequence[QueryColumn]) -> tuple[Element, ...]:
    """Return the elements that some member can be in: none comes back later than the end of the range.

    Args:
        domain: All combinations of the columns' values.
        columns: The columns of a question.
    """
    firsts = {place: each.source for place, each in enumerate(columns) if isinstance(each.source, QueryFirst)}
    laters = [place for place, each in enumerate(columns) if isinstance(each.source, QueryLater)]
    for first, source in firsts.items():
        days = [days_of(day) for day in source.cohorts.first_days]
        left = {day: len(days) - number for number, day in enumerate(days)}
        return tuple(
            each for each in domain if all(int(each[later]) < left[int(each[first])] for later in laters)
        )
    return tuple(domain)


def most_elements(query: CanonicalQuery, domain: Sequence[Element]) -> int:
    """Return in how many elements of a known domain one member can be.

    In each combination of the other columns' values it has one first time, and reaches one deepest step.
    """
    places = [
        place
        for place, each in enumerate(query.dimensions)
        if not isinstance(each.source, QueryFunnel | QueryFirst)
    ]
    if len(places) == len(query.dimensions):
        return len(domain)
    return len({tuple(element[place] for place in places) for element in domain})


def stated_for(delta_0: int, query: CanonicalQuery) -> int:
    """Return in how many elements the query leaves a member, where in other columns' it leaves so many.

    A member counts in all buckets in which it comes back, or in none: were some of them left out by their hashes, what
    is shown would be no part of those who came first.
    """
    return delta_0 * buckets_of_later(query)


def buckets_of_later(query: CanonicalQuery) -> int:
    """Return in how many buckets a member may come back; 1 where the question does not group by that."""
    since = [each.source.since for each in query.dimensions if isinstance(each.source, QueryLater)]
    return len(since[0].starts) if since else 1


def funnel_place(query: CanonicalQuery) -> tuple[int, ...]:
    """Return where the step of a funnel is in an element; empty: the question asks for none."""
    return tuple(place for place, each in enumerate(query.dimensions) if isinstance(each.source, QueryFunnel))


def require_of_members(query: CanonicalQuery, mechanism: MechanismName, *, is_known: bool) -> None:
    """Refuse functions of a member's rows where not all of their counts would be released.

    Raises:
        QuestionError: Some column has an unknown domain, or of a funnel the largest counts alone are found.
    """
    if not any(each.is_of_member for each in query.dimensions):
        return
    if not is_known:
        raise QuestionError(
            "dimensions",
            "expected columns whose domain the policy lists beside funnels and first times, all of whose counts are "
            "released",
        )
    if mechanism.is_gumbel and funnel_place(query):
        raise QuestionError(
            "dimensions",
            "expected no column beside a funnel without a limit on a member's values (delta): of such the largest "
            "counts alone are found, and those of a funnel are added up",
        )
