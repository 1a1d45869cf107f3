"""The line to Redis when something happens that nobody foresaw."""

from __future__ import annotations

import pytest

from budget_service.ledger.values import Account, Cost
from budget_service.stores.interface import OutcomeUnknownError
from budget_service.stores.redis import RedisStore
from tests.budget.conftest import closing
from tests.budget.redis_server import RedisServer
from tests.budget.samples import charge, levels

ACCOUNT = Account(("only-the-line", "ann"))


async def test_a_fault_between_question_and_answer_leaves_the_outcome_unknown(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeat settles it; what is told of the fault is its kind alone, for its text may name an account."""

    async def fails(*_: object) -> None:
        raise ValueError(ACCOUNT.text)

    async with closing(await RedisStore.open(shared_redis.address)) as store:
        with monkeypatch.context() as patched:
            patched.setattr("budget_service.stores.redis_line._read", fails)
            with pytest.raises(OutcomeUnknownError) as told:
                await store.apply(charge("c", account=ACCOUNT))
        assert "ValueError" in str(told.value)
        assert ACCOUNT.text not in str(told.value)
        await store.apply(charge("c", account=ACCOUNT))
        assert (await store.read(ACCOUNT, levels(ACCOUNT))).levels[-1].spent == Cost(4, 1)


async def test_a_command_that_cannot_be_written_is_its_own_callers_fault(shared_redis: RedisServer) -> None:
    """Nothing is sent of it, and the next one is served."""
    store = await RedisStore.open(shared_redis.address)
    async with closing(store):
        with pytest.raises(TypeError):
            await store._line.ask("GET", None)  # type: ignore[arg-type]
        await store.apply(charge("d", account=ACCOUNT))
