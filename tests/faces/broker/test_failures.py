"""Which of a broker's codes an error has."""

from __future__ import annotations

import pytest

from gris_gateway.faces.broker.failures import code_of
from pinot_connector.errors import (
    GrisError,
    OutcomeUnknown,
    RefusedByPolicy,
    ServiceRefused,
    ServiceUnavailable,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RefusedByPolicy("no", "table"), 190),
        (RefusedByPolicy("no", "measure"), 700),
        (RefusedByPolicy("no"), 700),
        (ServiceRefused("gateway", "no", "CALLER_WITHOUT_ACCOUNT"), 180),
        (ServiceRefused("gateway", "ask the operator", "REFUSED"), 450),
        (ServiceUnavailable("gateway", "away"), 450),
        (OutcomeUnknown("gateway", "lost"), 250),
    ],
)
def test_a_caller_is_blamed_only_for_what_the_caller_can_mend(error: GrisError, code: int) -> None:
    """What a policy forbids, who may ask, and what fails are kept apart."""
    assert code_of(error) == code
