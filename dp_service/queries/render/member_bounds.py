"""How the query of a question bounds what each member contributes, before it counts."""

from __future__ import annotations

from dataclasses import dataclass

from dp_service.queries.member_functions import buckets_of_later
from dp_service.queries.resolution import Resolution
from dp_service.terms import BoundedBy


@dataclass(frozen=True)
class InQueryBound:
    """How a query bounds members before it counts.

    Attributes:
        typical: How many elements of a member count: the first ones by the salted hash of `dp_service.bounding.order`,
            those of all buckets in which it comes back as one.
        tau: How many events of a member count in an element; 1 where distinct members are counted.
        salt: The public salt.
        min_count: The least count of an element that is answered; None over a known domain.
        counts_firsts: Whether it is answered, too, of how many members an element is the first.
    """

    typical: int
    tau: int
    salt: bytes
    min_count: int | None
    counts_firsts: bool = False


def in_query_bound(resolution: Resolution) -> InQueryBound | None:
    """Return how the query of a question bounds members; None: it need not.

    Without dimensions there is one element, so nobody has more.
    """
    found = resolution.parameters.contributions
    if found is None or found.bounded_by is not BoundedBy.IN_QUERY or not resolution.query.dimensions:
        return None
    is_first = resolution.names is None
    delta = found.names.typical if found.names is not None and is_first else found.typical
    # Of these a member comes back in all buckets: they are ranked without them.
    delta //= buckets_of_later(resolution.query)
    salt = bytes.fromhex(found.salt)
    return InQueryBound(delta, resolution.parameters.tau, salt, min_count_of(resolution), found.shifted)


def min_count_of(resolution: Resolution) -> int | None:
    """Return the smallest count that is looked at; None: all of them, as in the second of two looks."""
    contributions = resolution.parameters.contributions
    return None if contributions is None or resolution.names is not None else contributions.min_count
