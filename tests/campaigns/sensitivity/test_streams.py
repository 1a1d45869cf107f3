"""On a table that takes in a stream, one member decides its own counts, and never whether there is an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pinot_connector.engines.pinot import real_time
from tests.support.examples import examples
from tests.support.fake_pinot import FakePinot

from .campaign import stream_campaign
from .streams import (
    NO_TRUTH,
    OTHERS,
    TOO_MUCH,
    Kept,
    Sent,
    StreamWorld,
    outcome,
    stream_faults,
    truth,
)

REPLACED = ", replaced_rows: until_closed"
SAME_MEMBER = "_by_same_member"
WHOLE_DAYS = ", offline_part: whole_days"


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """Whatever holds the worlds."""
    with FakePinot().serving() as fake:
        yield fake


@pytest.mark.slow
def test_one_member_decides_no_more_than_its_own_counts() -> None:
    """With late rows, clocks that are ahead, retention, keys and offline parts; answers are the truth."""
    totals = stream_campaign(examples(20))
    # Worlds that are all refused would prove nothing.
    assert {"plain", "with keys", "hybrid"} == set(totals.answered)


@pytest.mark.slow
def test_the_worlds_are_answered(pinot: FakePinot) -> None:
    """Worlds of each kind that is promised well are; worlds that are all refused would prove nothing."""
    rows = tuple(Sent(f"m{i % 3}", "abc"[i % 3], -1 - i % 4, i % 2) for i in range(12))
    kinds = [
        StreamWorld(rows, Kept()),
        StreamWorld(rows, Kept(retention=4), start=-2),
        StreamWorld(rows, Kept(key=("member", "day")), REPLACED),
        StreamWorld(rows, Kept(key=("orderer", "day")), REPLACED + SAME_MEMBER),
        StreamWorld(rows, Kept(pushed=-2), WHOLE_DAYS),
        StreamWorld(rows, Kept(pushed=-2, retention=4), WHOLE_DAYS),
    ]
    assert [truth(world) for world in kinds] == [outcome(world, pinot) for world in kinds]


# Of one key, three members have a row each; the first of them comes last.
_ONE_KEY = (Sent("m0", "a", -1), Sent("m1", "b", -1), Sent("m2", "c", -1), Sent("m0", "a", -1))
# In each segment one row of yesterday keeps that of last week beside it.
_LATE = (Sent("m2", "b", -9), Sent("m0", "a", -1), Sent("m2", "c", -8), Sent("m0", "a", -1))
# The offline part lacks rows of its last days, and one row with a late time makes Pinot look for them there.
_MOVED = (Sent("m0", "a", -4), Sent("m1", "a", -4, 1), Sent("m2", "b", -4, 1), Sent("m0", "c", -2))

FAULTY = {
    "require_closed_rows": (StreamWorld(_ONE_KEY, Kept(key=("order", "day")), REPLACED), TOO_MUCH),
    "require_retained": (StreamWorld(_LATE, Kept(flush=2, retention=4)), OTHERS),
    "require_reached": (StreamWorld((*_LATE, Sent("m0", "d", -1)), Kept(), waiting=frozenset({0})), NO_TRUTH),
}


@pytest.mark.slow
@pytest.mark.parametrize("check", FAULTY)
def test_a_check_that_is_taken_out_is_found(
    pinot: FakePinot, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    """With it, the same world is refused."""
    world, fault = FAULTY[check]
    assert isinstance(outcome(world, pinot), str)
    monkeypatch.setattr(real_time, check, lambda *_: None)
    assert fault in stream_faults(world, pinot)


@pytest.mark.slow
def test_a_promise_that_is_not_true_is_found(pinot: FakePinot) -> None:
    """Why the promises are required: the same worlds without them are refused, whichever members they have."""
    shared = StreamWorld(_ONE_KEY, Kept(key=("order", "day")), REPLACED + SAME_MEMBER)
    moved = StreamWorld(_MOVED, Kept(pushed=-1, lacks=1), WHOLE_DAYS)
    for world, without in ((shared, REPLACED), (moved, "")):
        assert [*stream_faults(world, pinot)]
        refused = replace(world, promises=without)
        assert isinstance(outcome(refused, pinot), str)
        assert [] == [*stream_faults(refused, pinot)]
