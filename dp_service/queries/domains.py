"""Which group-by columns are held to their domains, and in how many elements one member can be then.

A domain may lower Delta only where the query enforces it: a member can have values outside, as many as the data hold.
So every group-by column that has a domain is restricted to it, whatever is known of the others, and what a column's
domain says about Delta counts exactly where it is restricted. The only exception is a domain that would make the query
too long; there Delta is what the policy states for all values of the column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dp_service.queries.errors import QuestionError
from dp_service.queries.structured import Value
from dp_service.queries.tables import Column

MAXIMUM_ELEMENTS = 100_000
"""How many elements a known domain may have, and how many values of domains a query carries."""


@dataclass(frozen=True)
class GroupedDomains:
    """The domains of a question's group-by columns.

    `restricted` are the values of each column that is held to its domain, by name. `known` is the domain of the whole
    key in element order, None unless every column has one. `delta_l0` is in how many elements of what is counted one
    member can be at most; None: in any number.
    """

    restricted: Mapping[str, tuple[Value, ...]]
    known: tuple[tuple[Value, ...], ...] | None
    delta_l0: int | None


def grouped_domains(dimensions: Sequence[Column]) -> GroupedDomains:
    """Return what the policy's domains and Deltas mean for a key of these columns, in their order.

    Raises QuestionError, naming `dimensions`, if the domain of the key is known and has more than 10^5 elements.
    """
    restricted = restricted_values(dimensions)
    deltas = [column.delta_within(column.name in restricted) for column in dimensions]
    stated = [delta for delta in deltas if delta is not None]
    return GroupedDomains(
        restricted=restricted,
        known=_known(dimensions),
        delta_l0=math.prod(stated) if len(stated) == len(deltas) else None,
    )


def restricted_values(dimensions: Sequence[Column]) -> Mapping[str, tuple[Value, ...]]:
    """Return the values of each group-by column that is held to its domain, by name.

    Where the whole key is known all are. Else the shortest domains come first, as many as a query carries. It depends
    on the policy and the key alone.
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
    if math.prod(map(len, domains)) > MAXIMUM_ELEMENTS:
        message = f"expected columns whose domains have at most {MAXIMUM_ELEMENTS} combinations"
        raise QuestionError("dimensions", message)
    return tuple(itertools.product(*domains))
