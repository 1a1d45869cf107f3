"""Plans: complete, sealed, and good for ten minutes."""

from __future__ import annotations

import dataclasses

import pytest

from dp_service.queries.resolution import MechanismKind
from dp_service.queries.structured import ColumnType
from dp_service.releases.keys import NoiseKey
from dp_service.releases.plan import PLAN_TTL_SECONDS, Plan, PlanError, PlanFault, seal, unseal
from tests.dp.test_identity import GUMBEL, KEY, OTHER_KEY

PLAN = Plan(
    table="articles",
    columns=(("article", ColumnType.STRING), ("day", ColumnType.DATE)),
    parameters=GUMBEL,
    row_limit=1001,
    unit_id="0" * 32,
    specification=b"specification",
    data_version="declared",
    engine_data_version="engine",
    query_id="1" * 64,
    issued_at=1000,
)
KNOWN = dataclasses.replace(
    PLAN,
    parameters=dataclasses.replace(
        GUMBEL, mechanism=MechanismKind.KNOWN_GUMB, d_bar=None, domain=(("ä'\\", 1), ("b", -5))
    ),
)


@pytest.mark.parametrize("plan", [PLAN, KNOWN])
def test_a_plan_comes_back_as_it_was(plan: Plan) -> None:
    """Nothing is lost between translation and noise, so no policy is needed then."""
    assert plan == unseal(seal(plan, KEY), KEY, now=1000)


@pytest.mark.parametrize(("now", "fault"), [(999, True), (1000, False), (1599, False), (1600, True)])
def test_a_plan_is_good_for_ten_minutes(now: int, fault: bool) -> None:
    """An old plan is refused, and so is one from the future."""
    assert PLAN_TTL_SECONDS == 600
    if not fault:
        assert unseal(seal(PLAN, KEY), KEY, now=now) == PLAN
        return
    with pytest.raises(PlanError) as caught:
        unseal(seal(PLAN, KEY), KEY, now=now)
    assert PlanFault.EXPIRED is caught.value.fault


def test_a_plan_that_was_touched_is_refused() -> None:
    """Flipping any byte, or cutting or lengthening a plan, makes it a forgery."""
    sealed = seal(PLAN, KEY)
    forged = [sealed[:i] + bytes([sealed[i] ^ 1]) + sealed[i + 1 :] for i in range(len(sealed))]
    for plan in [*forged, b"", sealed[:-1], sealed + b"x", sealed[:40]]:
        with pytest.raises(PlanError) as caught:
            unseal(plan, KEY, now=1000)
        assert PlanFault.NOT_AUTHENTIC is caught.value.fault


@pytest.mark.parametrize("key", [OTHER_KEY, NoiseKey(bytes(32))])
def test_a_plan_of_another_key_is_refused(key: NoiseKey) -> None:
    """Only the key that sealed a plan opens it."""
    with pytest.raises(PlanError):
        unseal(seal(PLAN, KEY), key, now=1000)
