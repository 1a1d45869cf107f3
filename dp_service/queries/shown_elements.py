"""How many elements a question shows, and how many are fetched for it."""

from __future__ import annotations

from collections.abc import Sequence

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.contributions import most_names
from dp_service.queries.domains import MAXIMUM_ELEMENTS
from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.terms import ColumnType, MechanismName

DEFAULT_D_BAR = 1000


D_BAR_PER_K = 10


def fetched_at_most(table: Table, mechanism: MechanismName, k: int | None) -> int:
    """Return how many elements are fetched from an unknown domain.

    If the policy declares none, it grows with k for UNK_GUMB, whose price does too. For UNK_LAP it must not: there
    every k shows a part of the same release, and a d_bar that depended on k would make it another one.
    """
    if table.d_bar is not None:
        return table.d_bar
    if mechanism is MechanismName.UNK_LAP or k is None:
        return DEFAULT_D_BAR
    return min(max(D_BAR_PER_K * k, DEFAULT_D_BAR), MAXIMUM_ELEMENTS)


def shown_at_most(
    query: HistogramQuery, table: Table, mechanism: MechanismName, domain: Sequence[object] | None
) -> int | None:
    """Return how many elements are shown at most.

    The question's k is an upper bound. Where the price grows with k, the policy's `max_k` is another one, and so is the
    number of elements that are fetched; the answer states where they apply. A known domain has no more than its
    elements, so a larger k asks for all of them. Elsewhere k only cuts one list, and one that is longer than what is
    fetched is refused: a shorter answer would be mistaken for a complete one.
    """
    k = query.k
    if query.smallest_first and not query.quantiles:
        _require_whole_release(mechanism, domain)
    if query.by_element and k is not None and mechanism.is_gumbel:
        raise QuestionError(
            "by_element",
            "expected the order of the counts: of this table the largest are found, and their order costs",
        )
    if k is None and mechanism.is_gumbel:
        raise _wrong_k(query, "how many elements to show, because the price grows with it")
    if k is None:
        return None
    if domain is not None:
        k = min(k, len(domain))
    longest_list = None if table.contributions is None else table.contributions.longest_list
    if domain is None and longest_list is not None:
        return min(k, most_names(longest_list, _texts(query, table)))
    if mechanism.is_gumbel:
        fetched = table.d_bar if domain is None and table.d_bar is not None else k
        return min(k, table.max_k, fetched)
    if mechanism is MechanismName.BOUND_GAUSS or domain is not None:
        return k
    if k > MAXIMUM_ELEMENTS:
        # As many as there are: clients limit every question by such a number.
        return None
    if k > (fetched := fetched_at_most(table, mechanism, k)):
        raise _wrong_k(query, f"at most {fetched} elements for this question, as many as the policy fetches")
    return k


def _require_whole_release(mechanism: MechanismName, domain: Sequence[object] | None) -> None:
    """Refuse a list of the smallest where not all elements that there may be are released, whatever the data are."""
    if domain is not None and not mechanism.is_gumbel:
        return
    found = (
        "the largest elements are found, one by one"
        if mechanism.is_gumbel
        else "only elements above a threshold are found in an unknown domain"
    )
    raise QuestionError(
        "smallest_first",
        f"expected a list with the largest number first, ORDER BY .. DESC: {found}, so the smallest of an answer are "
        "not the smallest that there are; order the rows that come back",
    )


def _texts(query: HistogramQuery, table: Table) -> int:
    own = sum(table.column(name).type is ColumnType.STRING for name in query.plain_dimensions)
    return own + sum(each.has_texts for each in query.functions)


def requested_k_of(query: HistogramQuery, parameters: ReleaseParameters) -> int | None:
    """Return the question's k if fewer elements are shown than that and than the domain has.

    Without a k a question asks for all elements of a known domain, of which sums show only so many.
    """
    if parameters.k is None:
        return None
    if query.k is None:
        size = len(parameters.domain or ())
        return size if size > parameters.k else None
    possible = query.k if parameters.domain is None else min(query.k, len(parameters.domain))
    return query.k if possible > parameters.k else None


def _wrong_k(query: HistogramQuery, expected: str) -> QuestionError:
    if query.in_sql:
        return QuestionError("sql", f"add ORDER BY .. DESC LIMIT n: expected {expected}")
    return QuestionError("k", f"expected {expected}")
