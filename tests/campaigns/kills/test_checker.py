"""The checker is checked: every way to break a promise is found, and an honest history is not accused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.campaigns.kills.checker import Fault, findings_of
from tests.campaigns.kills.history import NOTHING, Amount, FinalState, Heard, Level, Line, Path, Shown
from tests.campaigns.kills.questions import Asked

ANN: Path = ("shared", "c1", "ann")
COST = Amount(4, 1)
ASKED = Asked("live", 1, "histogram")
FIRST = Shown(ANN, ASKED, "id", "query", "release", b"rows", COST, COST)
FREE = replace(FIRST, charged=NOTHING, request_id="")
REPLAY = replace(FIRST, replayed=True)
NEW = replace(FIRST, account=("roomy", "newcomer"), request_id="")
PAID = Line(ANN, "query", "release", COST)
LEVEL = Level(Amount(10, 2), COST, NOTHING)
HEARD = Heard(
    shown=[FIRST, FREE], refused=Counter({"UNAVAILABLE": 3, "code CANCELLED": 1}), seen=[(ANN, LEVEL)]
)
AFTER = FinalState(
    journal=(PAID,),
    grown=0,
    anew=(NEW,),
    again=(FREE,),
    repeated=((FIRST, REPLAY),),
    levels={ANN[:2]: LEVEL, ANN: LEVEL},
    refused=(),
    differences=0,
)


def faults(heard: Heard = HEARD, after: FinalState = AFTER) -> set[Fault]:
    """Return every kind of fault that is found."""
    return {finding.fault for finding in findings_of(heard, after)}


def test_an_honest_history_is_not_accused() -> None:
    """Also where the first answer never arrived: it is charged, and given afterwards."""
    assert faults() == set()
    assert faults(replace(HEARD, shown=[])) == set()


def test_a_question_that_ended_after_its_noise_is_charged_and_may_be_asked_again() -> None:
    """It counts as spent, and neither as a second charge for the release nor as its price."""
    unanswered = replace(PAID, release_id="", cost=Amount(5, 1))
    spent = replace(LEVEL, spent=Amount(9, 2))
    for journal in ((unanswered, PAID), (PAID, unanswered)):
        assert faults(after=replace(AFTER, journal=journal, levels={ANN[:2]: spent, ANN: spent})) == set()


@pytest.mark.parametrize(
    ("heard", "fault"),
    [
        ({"shown": [FIRST, replace(FREE, content=b"other rows")]}, Fault.DIFFERING),
        ({"shown": [FIRST, replace(FREE, account=("tight", "bob"))]}, Fault.UNPAID),
        ({"shown": [FIRST, replace(FREE, query_id="another")]}, Fault.UNPAID),
        ({"shown": [replace(FIRST, charged=Amount(5, 1))]}, Fault.LOST),
        ({"seen": [(ANN, Level(Amount(10, 2), Amount(8, 1), Amount(3, 1)))]}, Fault.OVER),
        ({"refused": Counter({"INTEGRITY": 1})}, Fault.UNEXPECTED),
        ({"refused": Counter({"code INTERNAL": 1})}, Fault.UNEXPECTED),
    ],
)
def test_what_callers_must_not_hear_is_found(heard: dict[str, object], fault: Fault) -> None:
    """By the answers themselves, by the journal, or by the reason of a refusal."""
    assert {fault} == faults(replace(HEARD, **heard))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ({"anew": (replace(NEW, content=b"other rows"),)}, {Fault.DIFFERING}),
        ({"anew": (replace(NEW, release_id="second"),)}, {Fault.TWO_RELEASES, Fault.PRICE}),
        ({"journal": (PAID, PAID)}, {Fault.TWICE, Fault.UNEQUAL}),
        ({"journal": ()}, {Fault.UNPAID, Fault.UNEQUAL}),
        ({"journal": (replace(PAID, cost=Amount(3, 1)),)}, {Fault.PRICE, Fault.LOST, Fault.UNEQUAL}),
        ({"again": ()}, {Fault.NOT_GIVEN}),
        ({"again": (FIRST,)}, {Fault.PAID_AGAIN}),
        ({"grown": 1}, {Fault.PAID_AGAIN}),
        ({"repeated": ((FIRST, replace(REPLAY, query_id="another")),)}, {Fault.FORGOTTEN}),
        ({"levels": {ANN: replace(LEVEL, spent=Amount(5, 1))}}, {Fault.UNEQUAL}),
        ({"levels": {ANN: replace(LEVEL, limit=Amount(3, 1))}}, {Fault.OVER}),
        ({"levels": {ANN: replace(LEVEL, reserved=Amount(0, 1))}}, {Fault.HELD}),
        ({"refused": ("INTEGRITY: a question",)}, {Fault.UNEXPECTED}),
        ({"differences": 1}, {Fault.UNVERIFIED}),
    ],
)
def test_what_must_not_be_left_behind_is_found(after: dict[str, object], found: set[Fault]) -> None:
    """Charges, levels and kept answers, once all is at rest."""
    assert found == faults(after=replace(AFTER, **after))  # type: ignore[arg-type]
