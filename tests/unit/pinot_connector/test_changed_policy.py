"""The guarantee of a window in which the policy changed: what was charged says what was published then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from dp_service.accounting.composition import PublishedDomain, guarantee
from dp_service.releases.keys import NoiseKey
from dp_service.releases.ticket import ticket_key
from pinot_connector import AsyncPrivateClient
from pinot_connector.embedded import EmbeddedServices, noise_key
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.guarantees import Sharing
from tests.support.clients import client_of
from tests.support.publishing import HEADER, domain_file, policy_of
from tests.support.world import copy

FIRST = (domain_file("one", "5", "1e-9"), domain_file("other", "1/2", "1e-9", table="u"))
SECOND = domain_file("one", "1/4", "1e-9", refresh=2)
NOTHING_PUBLISHED = HEADER + (
    "tables: {t: {member: m, measures: {distinct_members: true}, columns: "
    "{one: {type: string, group_by: true, delta: 1}}}}\n"
)
BUDGET = """
charge_tickets: {key_file: TICKET_KEY}
accounts:
  - path: [acme]
    limit: {information: 9000, calls: 90}
  - path: [acme, "*"]
    limit: {information: 3000, calls: 30}
"""


@asynccontextmanager
async def asking(services: EmbeddedServices, folder: Path, account: str) -> AsyncIterator[AsyncPrivateClient]:
    """Give a client for an account."""
    engine = DuckDBEngine({"t": folder / "t.parquet"})
    async with client_of(services, engine, account=account) as client:
        yield client
    engine.close()


async def served(client: AsyncPrivateClient, before: str) -> str:
    """Wait until another policy is served than that of this id, and return its id."""
    for _ in range(300):
        found = (await client.catalog()).policy_id
        if found != before:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError("the policy file's content is not served")


def worth(information: int, calls: int, *rhos: str) -> tuple[float, float]:
    """Return what a budget is worth with published domains of these rhos, by an independent call of the accounting."""
    found = guarantee(
        Fraction("0.15"),
        Fraction("1e-10"),
        information=information,
        calls=calls,
        slack=Fraction("1e-9"),
        domains=[PublishedDomain(Fraction(rho), Fraction("1e-9")) for rho in rhos],
    )
    return found.epsilon, found.delta


@pytest.mark.usefixtures("starts_processes")
async def test_the_worst_of_a_window_is_told_when_its_policy_changed(tmp_path: Path) -> None:
    """Every publication that a charge of the window lists counts once, with tickets, after the policy has gone.

    An account that was charged nothing under the policies before has only the served one in its own guarantee, and all
    of them in the shared one.
    """
    policy = policy_of(tmp_path, *FIRST)
    copy("SELECT range AS m, 'a' AS one FROM range(100000)", tmp_path / "t.parquet")
    ticket = _written_ticket_key(tmp_path)
    (tmp_path / "budget.yaml").write_text(BUDGET.replace("TICKET_KEY", str(ticket)))
    with EmbeddedServices(
        policy=policy, budget_config=tmp_path / "budget.yaml", directory=tmp_path / "state"
    ) as services:
        async with (
            asking(services, tmp_path, "acme/ana") as ana,
            asking(services, tmp_path, "acme/bob") as bob,
        ):
            first = await served(ana, "")
            assert 2 == (await ana.top_k("t", "one", 1)).charged.information
            policy_of(tmp_path, SECOND)
            second = await served(ana, first)
            refreshed = await ana.guarantee()
            assert 4 == (await ana.top_k("t", "one", 2)).charged.information
            policy.write_text(NOTHING_PUBLISHED)
            await served(ana, second)
            reported, bobs = await ana.guarantee(), await bob.guarantee()
    assert worth(3000, 30, "5", "1/2", "1/4") == _numbers(refreshed.own.guarantee)
    assert worth(3000, 30, "5", "1/2", "1/4") == _numbers(reported.own.guarantee)
    assert (
        worth(9000, 90, "5", "1/2", "1/4") == (reported.epsilon, reported.delta) == (bobs.epsilon, bobs.delta)
    )
    assert Sharing.COSTS is reported.sharing
    assert worth(3000, 30) == _numbers(bobs.own.guarantee)


@pytest.mark.usefixtures("starts_processes")
async def test_where_shared_levels_count_worst_cases_the_shared_guarantee_holds_all_the_same(
    tmp_path: Path,
) -> None:
    """As the ledger tells it: a colleague's own level still counts what releases cost, and admits by it."""
    policy = policy_of(tmp_path, *FIRST)
    copy("SELECT range AS m, 'a' AS one FROM range(100000)", tmp_path / "t.parquet")
    ticket = _written_ticket_key(tmp_path)
    budget = "shared_levels: worst_case\n" + BUDGET.replace("TICKET_KEY", str(ticket))
    (tmp_path / "budget.yaml").write_text(budget)
    with EmbeddedServices(
        policy=policy, budget_config=tmp_path / "budget.yaml", directory=tmp_path / "state"
    ) as services:
        async with asking(services, tmp_path, "acme/ana") as ana:
            await ana.top_k("t", "one", 1)
            reported = await ana.guarantee()
    assert (Sharing.WORST_CASES, ("acme",)) == (reported.sharing, reported.holds.path)
    assert worth(3000, 30, "5", "1/2") == _numbers(reported.own.guarantee)
    assert worth(9000, 90, "5", "1/2") == (reported.epsilon, reported.delta)


def _numbers(found: object) -> tuple[float, float]:
    epsilon, delta = getattr(found, "epsilon", None), getattr(found, "delta", None)
    assert isinstance(epsilon, float)
    assert isinstance(delta, float)
    return epsilon, delta


def _written_ticket_key(folder: Path) -> Path:
    (folder / "state").mkdir()
    secret = bytes.fromhex(noise_key(folder / "state").read_text())
    path = folder / "ticket.key"
    path.touch(mode=0o600)
    path.write_bytes(ticket_key(NoiseKey(secret)))
    return path
