"""The answer to a charge: a builder that is used again says nothing of the account that it was used for before."""

from __future__ import annotations

import pytest
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2
from hypothesis import given
from hypothesis import strategies as st

from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.outcomes import Charged, LevelStatus
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost, Mode
from budget_service.ledger.windows import Window
from budget_service.server.responses import ChargeResponseBuilders, timestamp
from tests.support.budget_samples import charge

amounts = st.sampled_from((0, 1, 7, MAX_AMOUNT)) | st.integers(0, MAX_AMOUNT)
costs = st.builds(Cost, amounts, amounts)
timestamps = st.sampled_from((0, 1, 1_760_000_000_123_456))
windows = st.builds(Window, timestamps, st.none() | timestamps)
# Few enough that one answer often differs from the last in one thing only.
maxima = st.sampled_from((Cost(0, 0), Cost(7, 7), Cost(MAX_AMOUNT, MAX_AMOUNT)))
units = st.sampled_from(("", "0" * 32, "f" * 32))


@st.composite
def reported(draw: st.DrawFn) -> tuple[Charged, Account, str, tuple[str, ...], bool]:
    """Draw what the answer to a charge may report."""
    account = Account(tuple(draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4))))
    depths = draw(st.sets(st.integers(1, account.depth)))
    levels = tuple(
        LevelStatus(depth, draw(maxima), draw(st.sampled_from(Mode)), draw(windows), draw(costs), draw(costs))
        for depth in sorted(depths)
    )
    charged = Charged(draw(costs), draw(st.booleans()), levels)
    return charged, account, draw(units), draw(st.sampled_from([(), ("0" * 16,)])), draw(st.booleans())


def written_out(
    outcome: Charged, account: Account, unit_id: str, blocks: tuple[str, ...], *, replayed: bool
) -> pb.UpdateBudgetResponse:
    """Return the answer as a message that is made anew."""

    def cost(each: Cost, blocks: tuple[str, ...] = ()) -> cost_pb2.Cost:
        return cost_pb2.Cost(information=each.information, calls=each.calls, unit_id=unit_id, blocks=blocks)

    return pb.UpdateBudgetResponse(
        charged=cost(outcome.charged, blocks),
        already_paid=outcome.already_paid,
        replayed=replayed,
        levels=[
            pb.Level(
                path=account.path[: each.depth],
                limit=cost(each.maximum),
                spent=cost(each.spent),
                reserved=cost(each.seen_from(account.depth).reserved),
                remaining=cost(each.seen_from(account.depth).remaining),
                mode=pb.MODE_TRACK if each.mode is Mode.TRACK else pb.MODE_ENFORCE,
                window_start=timestamp(each.window.start),
                window_end=None if each.window.end is None else timestamp(each.window.end),
                over_limit=each.is_over_limit,
            )
            for each in outcome.levels
        ],
    )


def of(account: Account, unit_id: str, blocks: tuple[str, ...]) -> Charge:
    """Return a request of an account that some blocks pay for."""
    paying = charge("r", Cost(0, 0), account=account, unit_id=unit_id)
    return paying.but(blocks=blocks).request


@pytest.mark.slow
@given(st.lists(reported(), min_size=1, max_size=8))
def test_a_form_that_is_used_again_tells_only_the_last_answer(
    answers: list[tuple[Charged, Account, str, tuple[str, ...], bool]],
) -> None:
    """Whatever accounts, limits, windows and currencies follow each other."""
    builders = ChargeResponseBuilders()
    given_away = [
        builders.filled(outcome, of(account, unit_id, blocks), replayed=replayed)
        for outcome, account, unit_id, blocks, replayed in answers
    ]

    wanted = [
        written_out(outcome, account, unit_id, blocks, replayed=replayed)
        for outcome, account, unit_id, blocks, replayed in answers
    ]
    assert [each.SerializeToString() for each in given_away] == [each.SerializeToString() for each in wanted]
