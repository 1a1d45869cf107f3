"""What a caller of ShowRelease or AddNoise can send or get that ends outside of the promised errors."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from dp_service.releases.kinds.parts import covering
from dp_service.releases.kinds.views import IntervalKind
from tests.support.dp_questions import error_of, question, showing, shown_again, translated
from tests.unit.dp_service.kept_releases import whole


@pytest.mark.parametrize("part", ["information", "calls"])
async def test_a_price_below_nothing_is_not_authentic(dp: Any, part: str) -> None:
    """It is no internal error."""
    kept = (await whole(dp, question("cohort"), "cohort")).kept
    setattr(kept.bill.cost, part, -1)
    request = showing((await translated(dp, question("cohort"))).plan, kept)
    code, reason, _ = await error_of(shown_again(dp, request))
    assert (grpc.StatusCode.FAILED_PRECONDITION, "RELEASE_NOT_AUTHENTIC") == (code, reason)


def test_no_statement_says_that_an_interval_always_covers() -> None:
    """A confidence is strictly below 1, so no sentence rounds it to 100 %."""
    said = covering(IntervalKind.PLAIN, 0.9999999, bounds=False)
    assert "100 %" not in said.text
    assert said.values == ("99.99999 %",)
