"""What functions of all of a member's rows mean for a release: its elements, and in how many a member can be."""

from __future__ import annotations

from collections.abc import Sequence

from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.errors import QuestionError
from dp_service.terms import Element, MechanismName


def most_elements(query: CanonicalQuery, domain: Sequence[Element]) -> int:
    """Return in how many elements of a known domain one member can be.

    In each combination of the other columns' values it has one first time, and reaches one deepest step.
    """
    places = [
        place for place, each in enumerate(query.dimensions) if not each.is_of_member or each.counts_together
    ]
    if len(places) == len(query.dimensions):
        return len(domain)
    return len({tuple(element[place] for place in places) for element in domain})


def funnel_place(query: CanonicalQuery) -> tuple[int, ...]:
    """Return where the step of a funnel is in an element; empty: the question asks for none."""
    sources = enumerate(each.source for each in query.dimensions)
    return tuple(place for place, each in sources if each is not None and each.is_cumulative)


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
