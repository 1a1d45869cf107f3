"""What an older program was asked before its ledger was kept in `ledgers/`: its answers can be asked for again."""

from __future__ import annotations

from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.requests import Request, SetLimits
from budget_service.ledger.values import Cost
from tests.support.budget_samples import (
    ANALYST,
    COLLEAGUE,
    COMPANY,
    OTHER_UNIT,
    Asked,
    cancel,
    charge,
    levels,
    limit,
    reserve,
)

ODD = "\x00\n'\"\\{}:%é\U0001f600"
ON = levels(own=limit(10, 5, days=7), above=limit(30, 9))
OF_COLLEAGUE = levels(COLLEAGUE, above=limit(30, 9))

# At noon of 14 October 2026. What is held until then, `r` and the one with the odd id, is still open.
ASKED: tuple[Asked[Request], ...] = (
    charge("paid", Cost(3, 1), on=ON, release_id="rel", query_id="q-paid"),
    charge("paid again", Cost(3, 1), on=ON, release_id="rel"),
    charge("too much", Cost(9, 1), on=ON),
    charge("foreign", Cost(1, 1), on=ON, unit_id=OTHER_UNIT),
    reserve("r", Cost(4, 1), on=ON, query_id="q"),
    reserve(ODD, Cost(1, 1), account=COLLEAGUE, on=OF_COLLEAGUE, query_id=ODD),
    reserve("cancelled", Cost(1, 1), on=ON),
    cancel("x", ends="cancelled", on=ON),
    cancel("y", ends="cancelled", on=ON),
    charge(
        ODD + "2", Cost(1, 1), account=COLLEAGUE, on=OF_COLLEAGUE, release_id=ODD, policy_statement="a\0b\\"
    ),
    Asked(SetLimits(account=COMPANY, request_id="set", changes=((ANALYST, limit(11, 5)),)), NO_LIMITS),
)
