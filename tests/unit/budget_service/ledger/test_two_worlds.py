"""Why levels that count worst cases do not make an account's own guarantee cover all that it is shown."""

from __future__ import annotations

import pytest

from budget_service.ledger.outcomes import Reserved
from budget_service.ledger.values import Cost
from budget_service.stores.interface import Store
from tests.support.budget_samples import ANALYST, COLLEAGUE, charge, levels, limit, reserve

ABOVE = limit(1000, 500)
WORST_CASE, OWN_LIMIT, QUESTIONS = 5, 12, 10


async def played(store: Store, released: int) -> Cost:
    """Ask a fixed list of questions as a colleague whose releases cost so much; return what an analyst sees above."""
    on = levels(COLLEAGUE, own=limit(OWN_LIMIT, 50), above=ABOVE)
    for i in range(QUESTIONS):
        asked = reserve(f"r{i}", Cost(WORST_CASE, 1), account=COLLEAGUE, on=on)
        if isinstance((await store.apply(*asked)).outcome, Reserved):
            paid = charge(
                f"c{i}",
                Cost(released, 1),
                account=COLLEAGUE,
                on=on,
                settles=f"r{i}",
                release_id=f"release-{i}",
                query_id=f"query-r{i}",
            )
            await store.apply(*paid.but(worst_case_above=True))
    return (await store.read(ANALYST, levels(ANALYST, above=ABOVE))).levels[0].spent


@pytest.mark.parametrize(("released", "shown"), [(1, 8), (5, 2)])
async def test_the_admitted_questions_show_what_was_released(
    any_store: Store, released: int, shown: int
) -> None:
    """The colleague's own level counts what releases cost, and so decides which of the questions are still admitted.

    The questions are the same and each counts its worst case above, yet an analyst sees 40 or 10 there: what they see
    is covered by the guarantee of the level above, not by that of their own.
    """
    assert Cost(shown * WORST_CASE, shown) == await played(any_store, released)
