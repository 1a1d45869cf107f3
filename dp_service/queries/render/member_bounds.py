"""How the query of a question bounds what each member contributes, before it counts."""

from __future__ import annotations

from dataclasses import dataclass

from dp_service.parameters.contributions import BoundedContributions
from dp_service.queries.resolution import Resolution
from dp_service.terms import Bounding


@dataclass(frozen=True)
class Weights:
    """A member counts in all of its elements, with one weight (`dp_service.bounding.weights`).

    Attributes:
        typical: How many of its elements count in full.
        tau: How many rows of a member count in an element; 1 where distinct members are counted.
        min_count: The least count of an element that is answered, on the grid; None over a known domain.
        typical_in_sums: How many of its elements count in full in each sum, where these are others; None: `typical`.
    """

    typical: int
    tau: int
    min_count: int | None
    typical_in_sums: tuple[int | None, ...]


@dataclass(frozen=True)
class FirstElements:
    """A member counts in its first elements by the salted hash of `dp_service.bounding.order`.

    Attributes:
        typical: In how many.
        salt: The public salt.
    """

    typical: int
    salt: bytes


def weights_of(resolution: Resolution) -> Weights | None:
    """Return how the query of a question weights members; None: it does not."""
    found = resolution.parameters.contributions
    if found is None or found.bounding is not Bounding.WEIGHTS:
        return None
    parameters = resolution.parameters
    columns = () if parameters.sums is None else parameters.sums.columns
    return Weights(
        _typical(found, resolution),
        parameters.tau,
        min_count_of(resolution),
        tuple(each.typical for each in columns),
    )


def first_elements_of(resolution: Resolution) -> FirstElements | None:
    """Return in which elements the query of a question counts a member; None: in all of them."""
    found = resolution.parameters.contributions
    if found is None or found.bounding is not Bounding.FIRST:
        return None
    return FirstElements(_typical(found, resolution), bytes.fromhex(found.salt))


def _typical(found: BoundedContributions, resolution: Resolution) -> int:
    """Return how many elements of a member count, of two looks in this one."""
    is_first = resolution.names is None
    return found.names.typical if found.names is not None and is_first else found.typical


def sees_members_again(resolution: Resolution) -> bool:
    """Return whether a member may have several rows of a prepared copy in one element of the question."""
    found, copy = resolution.parameters.contributions, resolution.copy
    if found is None or copy is None or found.bounding is Bounding.NOTHING:
        return False
    columns = {each.name for each in resolution.query.dimensions if each.lookup is None}
    return found.periods > 1 or not columns.issuperset(copy.elements)


def counts_firsts(resolution: Resolution) -> bool:
    """Return whether it is answered, too, of how many members an element is the first."""
    found = resolution.parameters.contributions
    return found is not None and found.shifted


def min_count_of(resolution: Resolution) -> int | None:
    """Return the smallest count that is looked at, on the grid; None: all of them, as in the second of two looks."""
    found = resolution.parameters.contributions
    if found is None or found.min_count is None or resolution.names is not None:
        return None
    return found.min_count * found.grid
