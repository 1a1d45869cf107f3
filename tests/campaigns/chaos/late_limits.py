"""Limits that were set while charges ran: from its place in the journal on, a limit decides about what is charged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.campaigns.chaos.history import NOTHING, Amount, Entry, Path


def charges_above(lines: Iterable[Entry]) -> Iterator[str]:
    """Give the request ids of direct charges that do not fit into a limit that was set before them.

    What is held is not in the journal, so that some of what does not fit is missed; nothing else is accused. A charge
    that settles a reservation may be above a limit that came after the reservation.

    Args:
        lines: The whole journal, the entries of each root in their order.
    """
    spent: dict[Path, Amount] = defaultdict(lambda: NOTHING)
    limits: dict[Path, Amount | None] = {}
    for line in lines:
        if line.kind == "limit":
            limits[line.account] = line.limit
            continue
        for depth in line.depths:
            path, cost = line.account[:depth], line.cost_at(depth)
            limit = limits.get(path)
            if line.kind == "direct" and limit is not None and not _fits(spent[path], cost, limit):
                yield line.request_id
            spent[path] = spent[path].plus(cost)


def _fits(spent: Amount, cost: Amount, limit: Amount) -> bool:
    """Tell whether each unit that costs anything fits."""
    return all(
        more == 0 or before + more <= most for before, more, most in zip(spent, cost, limit, strict=True)
    )
