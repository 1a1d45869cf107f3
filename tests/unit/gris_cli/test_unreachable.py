"""What is said of a service that does not answer: where it was expected, and what sets that."""

from __future__ import annotations

import pytest

from gris_cli.app import run
from gris_cli.clients import remaining_after
from pinot_connector import PrivateClient
from pinot_connector.budgets import Cost, questions_left
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ServiceUnavailable

# Nothing listens on this port of this machine, and connecting fails at once.
NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["catalog", "--dp", NOWHERE],
            f"dp_service: no answer at {NOWHERE}; --dp or GRIS_DP says where it is",
        ),
        (
            ["budget", "verify", "--admin", NOWHERE],
            f"budget_service: no answer at {NOWHERE}; --admin or GRIS_BUDGET_ADMIN says where it is",
        ),
        (
            ["budget", "show", "--account", "demo/ana", "--budget", NOWHERE],
            f"budget_service: no answer at {NOWHERE}; --budget or GRIS_BUDGET says where it is",
        ),
        (
            ["catalog", "--gateway", f"gris://{NOWHERE}"],
            f"gateway: no answer at gris://{NOWHERE}; --gateway or GRIS_GATEWAY says where it is",
        ),
    ],
)
def test_a_service_that_does_not_answer_is_named_with_its_address(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with the option and the variable that set the address."""
    assert run(arguments) == 5
    assert f"unavailable: {message}\n" == capsys.readouterr().err


def test_an_answer_is_shown_though_nobody_says_what_is_left() -> None:
    """As in a region whose home is away: it gives again what was paid for, and states no balances."""
    with PrivateClient(dp=NOWHERE, budget=NOWHERE, account="demo/ana", engine=DuckDBEngine({})) as client:
        assert remaining_after((), client) == ()
        with pytest.raises(ServiceUnavailable):
            client.remaining()
    assert questions_left((), Cost(21, 1, "")) is None
