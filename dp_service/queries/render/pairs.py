"""The part of a statement that only a pairs copy has: which of its rows count.

Of the rows of one member and element whose period is in the range, the first one has its previous period before the
range, or none, and the others have it within. So exactly one of them counts. No condition names the member: a copy
holds no row without one, and a condition on a column without a dictionary keeps Pinot from using its star-tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dp_service.queries.pairs import PairsRange
from dp_service.queries.pairs_manifest import NO_PERIOD, PERIOD_COLUMN, PREVIOUS_COLUMN
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.resolution import Resolution


def pairs_conditions(pairs: PairsRange, dialect: Dialect) -> Iterator[str]:
    """Write which rows of a pairs copy count for a range of periods."""
    period, previous = (identifier(name, dialect) for name in (PERIOD_COLUMN, PREVIOUS_COLUMN))
    if pairs.start is None:
        yield f"{period} < {pairs.end}"
        # Not all rows: a member has one for each period in which it had the element.
        yield f"{previous} = {NO_PERIOD}"
        return
    yield f"{period} >= {pairs.start}"
    yield f"{period} < {pairs.end}"
    yield f"{previous} < {pairs.start}"


def within_copy(resolution: Resolution) -> Resolution:
    """Return the question without its conditions on time and member, whose columns no query of a copy names."""
    named = {read.name for read in resolution.reads}
    kept = tuple(each for each in resolution.query.restrictions if each.column.name in named)
    return replace(resolution, query=replace(resolution.query, restrictions=kept))
