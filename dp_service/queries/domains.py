"""Which group-by columns are restricted to their domains, and in how many elements one member can then be.

A domain may lower Delta only where the query enforces it: a member can have values outside, as many as the data hold.
So every group-by column that has a domain is restricted to it, whatever is known about the others, and a domain lowers
Delta exactly where its column is restricted. The only exception is a domain that would make the query
too long; there Delta is the policy's, for all values of the column.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from dp_service.queries.canonical_columns import Restriction
from dp_service.queries.columns import Column
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Value
from dp_service.queries.typical import Values, elements_of_member

MAXIMUM_ELEMENTS = 100_000
"""How many elements a known domain may have, and how many values of domains a query carries."""


@dataclass(frozen=True)
class GroupedDomains:
    """The domains of a question's group-by columns.

    Attributes:
        restricted: The values of each column that is restricted to its domain, by name.
        known: The domain of the whole key in element order; None: some column has no domain.
        delta_l0: In how many of the counted elements one member can be; None: in any number.
    """

    restricted: Mapping[str, tuple[Value, ...]]
    known: tuple[tuple[Value, ...], ...] | None
    delta_l0: int | None


def grouped_domains(dimensions: Sequence[Column], restrictions: Sequence[Restriction]) -> GroupedDomains:
    """Return what the policy's domains and Deltas mean for a key of these columns, in this order.

    Values that the question's conditions on a column leave out are no part of its domain: no row has them, so they
    are neither released nor paid for. Which values these are follows from the question and the policy alone.

    Raises:
        QuestionError: The domain of the key is known and has more than 10^5 elements; `field` is `dimensions`.
    """
    restricted = _restricted(dimensions, restrictions)
    dimensions = [
        each.model_copy(update={"domain": restricted.get(each.name, each.domain)}) for each in dimensions
    ]
    return GroupedDomains(
        restricted=restricted,
        known=_known(dimensions),
        delta_l0=delta_of(dimensions, restrictions),
    )


def delta_of(dimensions: Sequence[Column], restrictions: Sequence[Restriction]) -> int | None:
    """Return in how many of a question's elements a member is, typically or at most; None: in any number."""
    sizes: dict[str, int | None] = {each.column.name: each.size for each in restrictions}
    sizes |= {name: len(values) for name, values in _restricted(dimensions, restrictions).items()}
    return elements_of_member(Values(each.of_member, sizes.get(each.name)) for each in dimensions)


def _restricted(
    dimensions: Sequence[Column], restrictions: Sequence[Restriction]
) -> Mapping[str, tuple[Value, ...]]:
    allowed = {each.column.name: each for each in restrictions}
    return {
        name: values if name not in allowed else allowed[name].among(values)
        for name, values in restricted_values(dimensions).items()
    }


def restricted_values(dimensions: Sequence[Column]) -> Mapping[str, tuple[Value, ...]]:
    """Return the values of each group-by column that is restricted to its domain, by name.

    If the whole key is known, all columns are. Otherwise the shortest domains come first, as many as fit into a query.
    The choice depends on the policy and the key alone.
    """
    domains = {column.name: column.domain for column in dimensions if column.domain is not None}
    if len(domains) == len(dimensions):
        return domains
    restricted: dict[str, tuple[Value, ...]] = {}
    room = MAXIMUM_ELEMENTS
    for name, values in sorted(domains.items(), key=lambda each: (len(each[1]), each[0])):
        if len(values) <= room:
            restricted[name] = values
            room -= len(values)
    return restricted


def _known(dimensions: Sequence[Column]) -> tuple[tuple[Value, ...], ...] | None:
    domains = [column.domain for column in dimensions if column.domain is not None]
    if len(domains) != len(dimensions):
        return None
    if prod(map(len, domains)) > MAXIMUM_ELEMENTS:
        message = f"expected columns whose domains have at most {MAXIMUM_ELEMENTS} combinations"
        raise QuestionError("dimensions", message)
    return tuple(itertools.product(*domains))
