"""An administrator cannot take away the limit that bounds accounts which are made at first use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.limits import StoredLimits
from budget_service.server.hosting import administering
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from tests.support.budget_client import failure

ENFORCED = pb.Limit(information=7, calls=3, mode=budget_pb2.MODE_ENFORCE, period=pb.PERIOD_MONTH)
TRACKED = pb.Limit(information=7, calls=3, mode=budget_pb2.MODE_TRACK, period=pb.PERIOD_MONTH)


def settings(*, makes: bool = True) -> LiveSettings:
    """Return a configuration in which two levels bound the guests, and one the analysts, if wildcards make them."""
    bound = {"information": 90, "calls": 9}
    paths = (["acme"], ["acme", "*"], ["acme", "guests"], ["acme", "guests", "*"])
    entries = [{"path": path, "limit": bound} for path in paths if makes or "*" not in path]
    return LiveSettings(Settings(Configuration.model_validate({"accounts": entries})))


@asynccontextmanager
async def admin_on(store: Store, with_: LiveSettings) -> AsyncIterator[Any]:
    """Serve the administrator."""
    async with (
        administering(Ledger(store), with_, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield admin_pb2_grpc.BudgetAdminServiceStub(channel)


def setting(id_: str, **limits: pb.Limit | None) -> pb.SetLimitsRequest:
    """Return a request for levels that are written with underscores; None removes a limit."""
    changes = [pb.LimitChange(path=name.split("_"), limit=limit) for name, limit in limits.items()]
    return pb.SetLimitsRequest(request_id=id_, changes=changes)


async def test_the_level_that_bounds_a_pattern_keeps_refusing(any_store: Store) -> None:
    """In mode track, anyone who chooses names could begin with a new budget again and again."""
    async with admin_on(any_store, settings()) as admin:
        error = await failure(admin.SetLimits(setting("a", acme=TRACKED)))
        assert (grpc.StatusCode.FAILED_PRECONDITION, "ACCOUNTS_WITHOUT_END") == (
            error.code,
            error.info.reason,
        )
        assert "acme/*" in error.message
        # Other limits of it, and in mode track those that something above still bounds.
        await admin.SetLimits(setting("b", acme=ENFORCED))
        await admin.SetLimits(setting("c", acme_guests=TRACKED, acme_ann=TRACKED))
        await admin.SetLimits(setting("d", acme=None))
        stored = (await any_store.all_limits("acme")).limits
        assert {"acme/guests", "acme/ann"} == {level.text for level in stored}


async def test_without_wildcards_any_level_may_only_record(any_store: Store) -> None:
    """Nobody chooses names there."""
    async with admin_on(any_store, settings(makes=False)) as admin:
        assert (await admin.SetLimits(setting("a", acme=TRACKED))).version > 0


@pytest.mark.parametrize("mend", [None, ENFORCED])
async def test_what_an_earlier_version_took_away_can_be_put_back(
    any_store: Store, mend: pb.Limit | None
) -> None:
    """A limit that is stored already in mode track stays until it is changed, and stops no other change."""
    async with admin_on(any_store, settings(makes=False)) as admin:
        first = setting("a", acme=TRACKED)
        await admin.SetLimits(first)
    async with admin_on(any_store, settings()) as admin:
        assert (await admin.SetLimits(first)).replayed
        await admin.SetLimits(setting("b", acme_ann=ENFORCED))
        await admin.SetLimits(setting("c", acme=mend))
        error = await failure(admin.SetLimits(setting("d", acme=TRACKED)))
        assert "ACCOUNTS_WITHOUT_END" == error.info.reason


async def test_what_opens_no_pattern_is_changed_without_reading_all_limits_of_its_root(
    any_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root may have 100,000 of them, and every other call waits while they are read."""
    reads: list[str] = []
    all_limits = any_store.all_limits

    async def counted(root: str) -> StoredLimits:
        reads.append(root)
        return await all_limits(root)

    monkeypatch.setattr(any_store, "all_limits", counted)
    async with admin_on(any_store, settings()) as admin:
        await admin.SetLimits(setting("a", acme=ENFORCED, acme_ann=ENFORCED, acme_bob=TRACKED))
        await admin.SetLimits(setting("b", acme=None))
        eve = budget_pb2.Account(path=["acme", "eve"])
        await admin.CloseAccount(pb.CloseAccountRequest(account=eve, request_id="c", reason="left"))
        await admin.ReopenAccount(pb.ReopenAccountRequest(account=eve, request_id="d", reason="back"))
        assert reads == []
        await failure(admin.SetLimits(setting("f", acme=TRACKED)))
        assert reads == ["acme"]
