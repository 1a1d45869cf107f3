"""How the query of a question bounds what each member contributes, before it counts."""

from __future__ import annotations

from dataclasses import dataclass

from dp_service.queries.member_functions import buckets_of_later
from dp_service.queries.resolution import Resolution
from dp_service.terms import GRID, Bounding


@dataclass(frozen=True)
class InQueryBound:
    """How a query bounds members before it counts.

    Attributes:
        typical: How many elements of a member count in full; with a salt, how many count at all: the first ones by the
            salted hash of `dp_service.bounding.order`, those of all buckets in which it comes back as one.
        tau: How many events of a member count in an element; 1 where distinct members are counted.
        salt: The public salt; empty: members are weighted, and all of their elements count.
        min_count: The least count of an element that is answered, on the grid if members are weighted; None over a
            known domain.
    """

    typical: int
    tau: int
    salt: bytes
    min_count: int | None


def in_query_bound(resolution: Resolution) -> InQueryBound | None:
    """Return how the query of a question bounds members; None: it need not."""
    found = resolution.parameters.contributions
    if found is None or found.bounding is Bounding.NOTHING:
        return None
    is_first = resolution.names is None
    delta = found.names.typical if found.names is not None and is_first else found.typical
    min_count = min_count_of(resolution)
    tau = resolution.parameters.tau
    if found.bounding is Bounding.WEIGHTS:
        return InQueryBound(delta, tau, b"", None if min_count is None else min_count * GRID)
    # Of these a member comes back in all buckets: they are ranked without them.
    return InQueryBound(
        delta // buckets_of_later(resolution.query), tau, bytes.fromhex(found.salt), min_count
    )


def counts_firsts(resolution: Resolution) -> bool:
    """Return whether it is answered, too, of how many members an element is the first."""
    found = resolution.parameters.contributions
    return found is not None and found.shifted


def min_count_of(resolution: Resolution) -> int | None:
    """Return the smallest count that is looked at; None: all of them, as in the second of two looks."""
    contributions = resolution.parameters.contributions
    return None if contributions is None or resolution.names is not None else contributions.min_count
