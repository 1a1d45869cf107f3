"""Plans: complete, signed, and valid for ten minutes."""

from __future__ import annotations

import dataclasses
import json
import zlib

import pytest

from dp_service.releases.keys import KeyUse, NoiseKey
from dp_service.releases.plan import (
    PLAN_TTL_SECONDS,
    PLAN_VERSION,
    Plan,
    PlanError,
    PlanFault,
    sign_plan,
    verify_plan,
)
from dp_service.terms import MechanismName
from tests.unit.dp_service.identities import KEY, OTHER_KEY
from tests.unit.dp_service.plans import PARAMETERS, PLAN

KNOWN = dataclasses.replace(
    PLAN,
    parameters=dataclasses.replace(
        PARAMETERS, mechanism=MechanismName.KNOWN_GUMB, d_bar=None, domain=(("ä'\\", 1), ("b", -5))
    ),
)


IN_PART = dataclasses.replace(PLAN, parameters=dataclasses.replace(PARAMETERS, within=(("a", "ä'\\"), None)))
STATED = dataclasses.replace(PLAN, policy_statement=f"{0:016x}:1/10:1/1000000000")


@pytest.mark.parametrize("plan", [PLAN, KNOWN, IN_PART, STATED])
def test_a_plan_comes_back_as_it_was(plan: Plan) -> None:
    """Nothing is lost between translation and noise, so no policy is needed then."""
    assert plan == verify_plan(sign_plan(plan, KEY), KEY, now=1000)


@pytest.mark.parametrize(
    ("now", "fault"), [(969, True), (970, False), (1000, False), (1599, False), (1600, True)]
)
def test_a_plan_is_good_for_ten_minutes(now: int, fault: bool) -> None:
    """An old plan is refused, and so is one from the future, half a minute of different clocks aside."""
    assert PLAN_TTL_SECONDS == 600
    if not fault:
        assert verify_plan(sign_plan(PLAN, KEY), KEY, now=now) == PLAN
        return
    with pytest.raises(PlanError) as caught:
        verify_plan(sign_plan(PLAN, KEY), KEY, now=now)
    assert PlanFault.EXPIRED is caught.value.fault


def test_a_plan_that_was_touched_is_refused() -> None:
    """Flipping any byte, or cutting or lengthening a plan, makes it a forgery."""
    signed = sign_plan(PLAN, KEY)
    forged = [signed[:i] + bytes([signed[i] ^ 1]) + signed[i + 1 :] for i in range(len(signed))]
    for plan in [*forged, b"", signed[:-1], signed + b"x", signed[:40]]:
        with pytest.raises(PlanError) as caught:
            verify_plan(plan, KEY, now=1000)
        assert PlanFault.NOT_AUTHENTIC is caught.value.fault


def test_a_plan_of_a_replica_before_statements_is_read() -> None:
    """During an upgrade such plans live for ten minutes more; one without a statement is written as it was then."""
    signed = sign_plan(PLAN, KEY)
    assert b"policy_statement" not in zlib.decompress(signed[41:])
    assert "" == verify_plan(signed, KEY, now=1000).policy_statement


@pytest.mark.parametrize("key", [OTHER_KEY, NoiseKey(bytes(32))])
def test_a_plan_of_another_key_is_refused(key: NoiseKey) -> None:
    """Only the key that signed a plan verifies it."""
    with pytest.raises(PlanError):
        verify_plan(sign_plan(PLAN, KEY), key, now=1000)


def test_a_plan_in_another_form_is_refused_even_under_the_right_key() -> None:
    """A newer program may have written what this one would overlook."""
    signed = sign_plan(PLAN, KEY)
    head, payload = bytes([PLAN_VERSION[0] + 1]) + signed[1:9], signed[41:]
    assert PLAN_VERSION != head[:1]
    forged = head + KEY.authenticate(KeyUse.PLAN, head, payload) + payload
    with pytest.raises(PlanError) as caught:
        verify_plan(forged, KEY, now=1000)
    assert PlanFault.EXPIRED is caught.value.fault


@pytest.mark.parametrize("part", ["", "parameters"])
def test_a_plan_that_says_more_than_this_version_knows_is_refused(part: str) -> None:
    """Of a plan that a newer replica made, nothing may be overlooked: the question is translated again."""
    signed = sign_plan(PLAN, KEY)
    says = json.loads(zlib.decompress(signed[41:]))
    (says[part] if part else says)["newer"] = 1
    payload = zlib.compress(json.dumps(says).encode())
    with pytest.raises(PlanError) as caught:
        verify_plan(signed[:9] + KEY.authenticate(KeyUse.PLAN, signed[:9], payload) + payload, KEY, now=1000)
    assert PlanFault.EXPIRED is caught.value.fault


@pytest.mark.parametrize("position", [0, 1])
def test_a_plan_that_another_program_would_draw_otherwise_is_refused(position: int) -> None:
    """During an upgrade two ways of drawing never meet under one specification, seed and release id."""
    drawn_by = list(PLAN.drawn_by)
    drawn_by[position] += 1
    other = dataclasses.replace(PLAN, drawn_by=(drawn_by[0], drawn_by[1]))
    with pytest.raises(PlanError) as caught:
        verify_plan(sign_plan(other, KEY), KEY, now=1000)
    assert PlanFault.EXPIRED is caught.value.fault
