"""What is promised for what an account is shown: its own budget, a shared one, and what was published."""

from __future__ import annotations

import asyncio
import datetime
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import cost_pb2

from dp_service.accounting.composition import PublishedDomain as Price
from dp_service.accounting.composition import guarantee
from pinot_connector import AsyncPrivateClient
from pinot_connector.budgets import Cost
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import AccountUnknown, InvalidQuestion
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain, Sharing
from pinot_connector.shared_budgets import Budgets
from tests.support.clients import blocking_client_of, client_of
from tests.support.publishing import domain_file, policy_of, publication_text
from tests.support.relay import Relay, relayed
from tests.support.rings import needs
from tests.support.world import World, copy

DOMAINS = (domain_file("one", "5", "1e-9"), domain_file("other", "1/2", "1e-9", table="u"))
BUDGET = """
accounts:
  - path: [acme]
    limit: {information: 9000, calls: 90}
  - path: [acme, ops]
    limit: {information: 6000, calls: 60}
    mode: track
  - path: [acme, ops, ana]
    limit: {information: 3000, calls: 30}
  - path: [tracked]
    limit: {information: 9000, calls: 90}
    mode: track
  - path: [tracked, ana]
    limit: {information: 3000, calls: 30}
  - path: [alone, ana]
    limit: {information: 3000, calls: 30}
  - path: [alone, charged]
    limit: {information: 3000, calls: 30}
  - path: [free, ana]
    limit: {information: 3000, calls: 30}
    mode: track
"""


@dataclass(frozen=True)
class Published:
    """Services whose policy has published two domains, and the data of one of them."""

    world: World
    engine: DuckDBEngine

    @asynccontextmanager
    async def client(self, account: str, *, relay: Relay | None = None) -> AsyncIterator[AsyncPrivateClient]:
        """Give a client for an account; by a relay, its calls to both services go through it."""
        dp, budget = (self.world.dp, self.world.budget) if relay is None else (relay.address, relay.address)
        async with AsyncPrivateClient(dp=dp, budget=budget, account=account, engine=self.engine) as client:
            yield client


@pytest.fixture(scope="module")
@needs("process")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Both services as processes."""
    folder = tmp_path_factory.mktemp("published")
    policy_of(folder, *DOMAINS)
    (folder / "budget.yaml").write_text(BUDGET)
    copy("SELECT range AS m, 'a' AS one FROM range(1000)", folder / "t.parquet")
    with EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder / "state"
    ) as services:
        engine = DuckDBEngine({"t": folder / "t.parquet"})
        yield Published(World(services.dp_address, services.budget_address, folder), engine)
        engine.close()


def worth(information: int, calls: int, *rhos: str) -> tuple[float, float]:
    """Return what a budget is worth with published domains of these rhos, by an independent call of the accounting."""
    found = guarantee(
        Fraction("0.15"),
        Fraction("1e-10"),
        information=information,
        calls=calls,
        slack=Fraction("1e-9"),
        domains=[Price(Fraction(rho), Fraction("1e-9")) for rho in rhos],
    )
    return found.epsilon, found.delta


async def test_what_the_policy_has_published_is_part_of_every_guarantee(published: Published) -> None:
    """Also of a budget that is only imagined: 33.78 was reported where 46.67 is true."""
    async with published.client("alone/ana") as client:
        (level,) = await client.remaining()
        found = await client.guarantee(level.limit)
        catalog = await client.catalog()
    assert worth(3000, 30, "5", "1/2") == (found.epsilon, found.delta)
    assert found.epsilon > 46
    prices = [column.published for table in catalog.tables for column in table.columns]
    assert prices == [PublishedDomain(each.rho, each.delta) for each in DOMAINS]


async def test_a_shared_level_is_told_beside_the_accounts_own(published: Published) -> None:
    """The widest level above that is enforced bounds all that its costs can tell."""
    async with published.client("acme/ops/ana") as client:
        found = await client.guarantee()
    own, shared = found.own, found.shared
    assert (Sharing.COSTS, ("acme", "ops", "ana")) == (found.sharing, own.path)
    assert own.guarantee is not None
    assert shared is not None
    assert worth(3000, 30, "5", "1/2") == (own.guarantee.epsilon, own.guarantee.delta)
    assert (("acme",), 9000) == (shared.path, shared.limit and shared.limit.information)
    assert worth(9000, 90, "5", "1/2") == (found.epsilon, found.delta)
    assert found.holds is shared


async def test_without_a_level_above_the_accounts_own_holds(published: Published) -> None:
    """Nothing shared is reported, not even where the account is the only one."""
    async with published.client("alone/ana") as client:
        found = await client.guarantee()
    assert (Sharing.NONE, None, ("alone", "ana")) == (found.sharing, found.shared, found.own.path)
    assert worth(3000, 30, "5", "1/2") == (found.epsilon, found.delta)


async def test_a_level_that_only_records_bounds_nothing(published: Published) -> None:
    """Its costs show what others were shown without a limit; the account's own budget is reported all the same."""
    async with published.client("tracked/ana") as client:
        found = await client.guarantee()
    assert found.own.guarantee is not None
    assert worth(3000, 30, "5", "1/2") == (found.own.guarantee.epsilon, found.own.guarantee.delta)
    assert found.shared is not None
    assert (("tracked",), None, None) == (found.shared.path, found.shared.limit, found.shared.guarantee)
    assert (float("inf"), 1.0) == (found.epsilon, found.delta)
    async with published.client("free/ana") as client:
        alone = await client.guarantee()
        imagined = await client.guarantee(Cost(3000, 30, ""))
    assert (Sharing.NONE, None, None) == (alone.sharing, alone.own.limit, alone.own.guarantee)
    assert float("inf") == alone.epsilon
    assert worth(3000, 30, "5", "1/2")[0] == imagined.epsilon


async def test_bad_arguments_and_unknown_accounts_are_told_apart(published: Published) -> None:
    """By field, and by account."""
    async with published.client("alone/ana") as client:
        with pytest.raises(InvalidQuestion, match=r"domains\[1\]\.rho"):
            await client.guarantee(
                domains=[PublishedDomain("0.1", "1e-9"), PublishedDomain("1e999999", "1e-9")]
            )
        with pytest.raises(InvalidQuestion, match="slack"):
            await client.guarantee(slack="2")
    async with published.client("nobody") as client:
        with pytest.raises(AccountUnknown):
            await client.guarantee()


async def test_earlier_refreshes_can_be_added_by_hand(published: Published) -> None:
    """As a catalogue says them, or as they were asked for."""
    async with published.client("acme/ops/ana") as client:
        more = [PublishedDomain(Fraction(1, 4), Fraction(1, 10**9)), PublishedDomain("0.25", "1e-9")]
        found = await client.guarantee(domains=more)
    assert found.own.guarantee is not None
    assert worth(3000, 30, "5", "1/2", "1/4", "1/4")[0] == found.own.guarantee.epsilon
    assert worth(9000, 90, "5", "1/2", "1/4", "1/4")[0] == found.epsilon
    assert 4 == found.own.guarantee.domain_count


async def test_a_charge_carries_what_its_policy_had_published(published: Published) -> None:
    """Into the ledger, with the ticket that covers it, also where the charge is repeated."""
    statement = ",".join(sorted(map(publication_text, DOMAINS)))
    async with relayed(published.world) as relay:
        relay.refusals["UpdateBudget"] = grpc.StatusCode.UNAVAILABLE
        async with published.client("alone/charged", relay=relay) as client:
            asking = asyncio.ensure_future(client.top_k("t", "one", 1))
            await relay.called("UpdateBudget", 2)
            relay.refusals.clear()
            result = await asking
    assert 2 == result.charged.information
    sent = [budget_pb2.UpdateBudgetRequest.FromString(each) for each in relay.requests("UpdateBudget")]
    assert len(sent) >= 2
    assert {statement} == {each.policy_statement for each in sent}


async def test_statements_of_a_window_count_where_they_were_charged(published: Published) -> None:
    """Those of the account's own charges in both guarantees, those of its colleagues in the shared one alone."""
    before, colleagues = (
        domain_file("one", "3", "1e-9", refresh=0),
        domain_file("one", "1", "1e-9", refresh=2),
    )
    own_level = level_message(["alone", "ana"], statements=[publication_text(before)])
    both = sorted(
        [publication_text(before), ",".join(sorted(map(publication_text, (DOMAINS[0], colleagues))))]
    )
    above = level_message(["alone"], information=9000, calls=90, statements=both)
    async with relayed(published.world) as relay:
        relay.replies["GetBudget"] = budget_pb2.GetBudgetResponse(
            levels=[above, own_level]
        ).SerializeToString()
        async with published.client("alone/ana", relay=relay) as client:
            found = await client.guarantee()
            relay.replies["GetBudget"] = budget_pb2.GetBudgetResponse(
                levels=[
                    level_message(["alone"], information=9000, calls=90, worst_case=True, statements=both),
                    own_level,
                ]
            ).SerializeToString()
            apart = await client.guarantee()
    (first, _) = (budget_pb2.GetBudgetRequest.FromString(each) for each in relay.requests("GetBudget"))
    assert first.with_policy_statements
    assert found.own.guarantee is not None
    assert worth(3000, 30, "5", "1/2", "3") == (found.own.guarantee.epsilon, found.own.guarantee.delta)
    assert worth(9000, 90, "5", "1/2", "3", "1") == (found.epsilon, found.delta)
    assert Sharing.WORST_CASES is apart.sharing
    assert apart.own.guarantee is not None
    assert worth(3000, 30, "5", "1/2", "3") == (apart.own.guarantee.epsilon, apart.own.guarantee.delta)
    assert worth(9000, 90, "5", "1/2", "3", "1") == (apart.epsilon, apart.delta)


async def test_a_statement_that_cannot_be_read_is_no_guarantee(published: Published) -> None:
    """No matter who wrote it into the ledger, nobody knows what was published."""
    async with relayed(published.world) as relay:
        relay.replies["GetBudget"] = budget_pb2.GetBudgetResponse(
            levels=[level_message(["alone", "ana"], statements=["x"])]
        ).SerializeToString()
        async with published.client("alone/ana", relay=relay) as client:
            with pytest.raises(InvalidQuestion, match=r"policy_statements\[0\]"):
                await client.guarantee()


@pytest.mark.parametrize(
    ("levels", "own", "shared", "bounded", "sharing"),
    [
        (["enforce", "enforce", "enforce"], 3, 1, True, Sharing.COSTS),
        (["track", "enforce", "enforce"], 3, 1, False, Sharing.COSTS),
        (["track", "enforce", "track"], 2, 1, False, Sharing.COSTS),
        (["enforce", "track", "track"], 1, 1, True, Sharing.COSTS),
        (["enforce*", "enforce", "enforce"], 3, 1, True, Sharing.COSTS),
        (["track*", "track", "enforce"], 3, 1, False, Sharing.COSTS),
        (["enforce*", "enforce*", "enforce"], 3, 1, True, Sharing.WORST_CASES),
        (["track*", "enforce*", "enforce"], 3, 1, False, Sharing.WORST_CASES),
        ([None, None, "enforce"], 3, None, False, Sharing.NONE),
        ([None, "enforce", None], 2, 2, True, Sharing.COSTS),
        ([None, "enforce*", None], 2, 2, True, Sharing.WORST_CASES),
        ([None, None, "track"], None, None, False, Sharing.NONE),
    ],
)
def test_the_budgets_of_a_guarantee_follow_from_the_levels(
    levels: list[str | None], own: int | None, shared: int | None, *, bounded: bool, sharing: Sharing
) -> None:
    """Own: the narrowest limit; shared: the widest level above, also where it counts worst cases (*)."""
    messages = [
        level_message(["a", "b", "c"][:depth], tracked="track" in mode, worst_case="*" in mode)
        for depth, mode in enumerate(levels, start=1)
        if mode is not None
    ]
    found = Budgets.of(("a", "b", "c"), messages)
    assert own == (None if found.own is None else len(found.own_path))
    assert shared == (None if found.shared is None else len(found.shared.path))
    assert (bounded, sharing) == (found.bounding is not None, found.sharing)


async def reported(world: World, *levels: budget_pb2.Level, budget: Cost | None = None) -> AccountGuarantee:
    """Return what is reported where the ledger has these levels."""
    async with relayed(world) as relay:
        relay.replies["GetBudget"] = budget_pb2.GetBudgetResponse(levels=levels).SerializeToString()
        async with client_of(relay.address, DuckDBEngine({}), account="alone/ana") as client:
            return await client.guarantee(budget)


async def test_a_shared_level_counts_as_often_as_its_windows_can_meet_the_accounts(
    published: Published,
) -> None:
    """A day's limit above a month's own bounds no month; what holds is never below what the account itself pays for."""
    shared = level_message(["alone"], information=200, calls=5, window=("2026-11-21", "2026-11-22"))
    own = level_message(["alone", "ana"], window=("2026-11-01", "2026-12-01"))
    found = await reported(published.world, shared, own)
    assert found.own.guarantee is not None
    assert found.epsilon >= found.own.guarantee.epsilon
    assert found.delta >= found.own.guarantee.delta
    assert worth(200 * 32, 5 * 32, "5", "1/2") == (found.epsilon, found.delta)
    assert Cost(200 * 32, 5 * 32, "") == found.holds.limit


async def test_what_holds_is_never_below_the_accounts_own(published: Published) -> None:
    """Also of a budget that is only imagined; where neither is the larger, one pair covers both."""
    shared = level_message(["alone"], information=9000, calls=90)
    own = level_message(["alone", "ana"])
    huge = await reported(published.world, shared, own, budget=Cost(20_000, 300, ""))
    assert worth(20_000, 300, "5", "1/2") == (huge.epsilon, huge.delta)
    crossed = await reported(published.world, shared, own, budget=Cost(20_000, 2, ""))
    expected = (worth(20_000, 2, "5", "1/2")[0], worth(9000, 90, "5", "1/2")[1])
    assert expected == (crossed.epsilon, crossed.delta)


async def test_a_limit_below_what_was_spent_bounds_nothing(published: Published) -> None:
    """At no level: what was spent is no budget that was fixed beforehand. What is held may still be spent."""
    spent, reserved = (8000, 80), (10, 1)
    lowered = level_message(["alone", "ana"], information=100, calls=2, spent=spent, reserved=reserved)
    alone = await reported(published.world, lowered)
    assert (math.inf, 1.0, Cost(100, 2, "")) == (alone.epsilon, alone.delta, alone.own.limit)
    for budget, field in ((Cost(8009, 81, ""), "information"), (Cost(8010, 80, ""), "calls")):
        with pytest.raises(InvalidQuestion, match=f"{field}: expected at least what was spent"):
            await reported(published.world, lowered, budget=budget)
    named = await reported(published.world, lowered, budget=Cost(9000, 90, ""))
    assert worth(9000, 90, "5", "1/2") == (named.epsilon, named.delta)
    above = level_message(["alone"], information=9000, calls=81, spent=spent, reserved=reserved)
    covered = await reported(published.world, above, lowered)
    assert worth(9000, 81, "5", "1/2") == (covered.epsilon, covered.delta)
    assert covered.own.guarantee is None
    too_little = level_message(["alone"], information=9000, calls=80, spent=spent, reserved=reserved)
    assert math.inf == (await reported(published.world, too_little, level_message(["alone", "ana"]))).epsilon


async def test_the_largest_limit_of_the_window_counts(published: Published) -> None:
    """Also where more was spent than the present one allows; only of those that the ledger knows."""
    largest = cost_pb2.Cost(information=9000, calls=40)
    lowered = level_message(["alone", "ana"], information=100, calls=40, spent=(8000, 20))
    lowered.over_limit = True
    assert math.inf == (await reported(published.world, lowered)).epsilon
    lowered.largest_limit.CopyFrom(largest)
    own = await reported(published.world, lowered)
    assert worth(9000, 40, "5", "1/2") == (own.epsilon, own.delta)
    assert Cost(9000, 40, "") == own.holds.limit
    above = level_message(["alone"], information=100, calls=40, spent=(8000, 20))
    above.largest_limit.CopyFrom(largest)
    shared = await reported(published.world, above, level_message(["alone", "ana"], information=10, calls=1))
    assert worth(9000, 40, "5", "1/2") == (shared.epsilon, shared.delta)
    # What others hold there is not reported, but is too much for the limit.
    held = level_message(["alone"], information=9000, calls=40, spent=(8999, 20))
    held.over_limit = True
    held.largest_limit.CopyFrom(largest)
    seen = await reported(published.world, held, level_message(["alone", "ana"], information=10, calls=1))
    assert math.inf == seen.epsilon
    held.largest_limit.information = 9001
    seen = await reported(published.world, held, level_message(["alone", "ana"], information=10, calls=1))
    assert worth(9001, 40, "5", "1/2") == (seen.epsilon, seen.delta)
    lowered.spent.calls = 41
    assert math.inf == (await reported(published.world, lowered)).epsilon


@pytest.mark.parametrize("said", ["no limit at first", "previous_currency"])
async def test_a_window_without_one_budget_has_no_guarantee(published: Published, said: str) -> None:
    """At no level; where units of two currencies count, no budget that is only imagined has one either."""
    own = level_message(["alone", "ana"], spent=(3000, 30))
    shared = level_message(["alone"])
    for level in (own, shared):
        if said == "previous_currency":
            level.previous_currency = True
        else:
            level.ClearField("largest_limit")
    budget = Cost(4000, 40, "")
    found = [await reported(published.world, own, budget=each) for each in (None, budget)]
    holds = [math.inf, math.inf if said == "previous_currency" else worth(4000, 40, "5", "1/2")[0]]
    assert holds == [each.epsilon for each in found]
    seen = await reported(published.world, shared, level_message(["alone", "ana"]))
    assert math.inf == seen.epsilon
    assert seen.own.guarantee is not None


async def test_a_window_that_never_ends_meets_others_without_bound(published: Published) -> None:
    """Whatever the limit of each of them; the other way round one counts."""
    day, never = ("2026-11-21", "2026-11-22"), ("1970-01-01", "")
    found = await reported(
        published.world, level_message(["alone"], window=day), level_message(["alone", "ana"], window=never)
    )
    assert (float("inf"), 1.0, None) == (found.epsilon, found.delta, found.holds.guarantee)
    assert found.own.guarantee is not None
    once = await reported(
        published.world, level_message(["alone"], window=never), level_message(["alone", "ana"], window=day)
    )
    assert worth(3000, 30, "5", "1/2") == (once.epsilon, once.delta)


async def test_a_sum_that_no_budget_can_hold_is_no_bound(published: Published) -> None:
    """More units than can be described are as good as none, and no error."""
    shared = level_message(["alone"], information=2**52, calls=5, window=("2026-11-21", "2026-11-22"))
    found = await reported(
        published.world, shared, level_message(["alone", "ana"], window=("2026-11-01", "2026-12-01"))
    )
    assert (float("inf"), None) == (found.epsilon, found.holds.guarantee)


@pytest.mark.parametrize(
    ("budget", "field"),
    [(Cost(2**63, 1, ""), "information"), (Cost(1, 2**63, ""), "calls"), (Cost(-1, 1, ""), "information")],
)
async def test_a_budget_that_cannot_be_one_is_refused_by_its_field(
    published: Published, budget: Cost, field: str
) -> None:
    """Before it is sent, where a message could not hold it."""
    async with published.client("alone/ana") as client:
        with pytest.raises(InvalidQuestion, match="expected 0 to 2") as refused:
            await client.guarantee(budget)
    assert field == refused.value.field


def test_the_blocking_client_tells_it_too(published: Published) -> None:
    """With the same arguments."""
    world = published.world
    with blocking_client_of(world, published.engine, account="alone/ana") as client:
        found = client.guarantee(slack="1e-10", domains=[PublishedDomain("0.1", "1e-9")])
    assert found.delta == pytest.approx(9.1e-9)


def level_message(
    path: list[str],
    *,
    information: int = 3000,
    calls: int = 30,
    tracked: bool = False,
    worst_case: bool = False,
    statements: list[str] | None = None,
    window: tuple[str, str] = ("", ""),
    spent: tuple[int, int] = (0, 0),
    reserved: tuple[int, int] = (0, 0),
) -> budget_pb2.Level:
    """Return a level as a ledger tells it."""
    limit = cost_pb2.Cost(information=information, calls=calls)
    message = budget_pb2.Level(
        path=path,
        limit=limit,
        largest_limit=None if tracked else limit,
        spent=cost_pb2.Cost(information=spent[0], calls=spent[1]),
        reserved=cost_pb2.Cost(information=reserved[0], calls=reserved[1]),
        mode=budget_pb2.MODE_TRACK if tracked else budget_pb2.MODE_ENFORCE,
        worst_case=worst_case,
        policy_statements=statements,
    )
    for timestamp, day in ((message.window_start, window[0]), (message.window_end, window[1])):
        if day:
            timestamp.FromDatetime(datetime.datetime.fromisoformat(day))
    return message
