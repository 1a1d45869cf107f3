"""Each store has one schema, with a number, and may have steps from the schemas before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from budget_service.stores.interface import StoreUnusableError

Step = TypeVar("Step")


def steps_from(ledger: str, found: int, own: int, steps: Mapping[int, Step]) -> list[Step]:
    """Return what makes a ledger into one of this program's schema, step by step; nothing if it has it already.

    Args:
        ledger: How an error names the ledger.
        found: The schema that it has.
        own: This program's.
        steps: What makes a schema into the next one, by its number.

    Raises:
        StoreUnusableError: The schema is newer, or so old that there is no step from it.
    """
    if found > own:
        raise StoreUnusableError(f"{ledger} has schema {found}, newer than this program's {own}")
    if any(each not in steps for each in range(found, own)):
        raise StoreUnusableError(
            f"{ledger} has schema {found}, older than this program's {own}, and there is no step from it"
        )
    return [steps[each] for each in range(found, own)]
