"""What callers try who are not who they say, or want what is not theirs: at every port alike."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.gateways import AUDIENCE, GatewayWorld, write_configuration
from tests.support.processes import process
from tests.support.rings import needs
from tests.unit.gris_gateway.calls import all_held, client_of
from tests.unit.gris_gateway.ports import PORTS, Grpc, Outcome, Port, Refused, ledger_of, token_of

BY_APP = (
    "SELECT app, COUNT(DISTINCT member_id) AS people FROM feedback GROUP BY app ORDER BY people DESC LIMIT 2"
)
TOP = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback WHERE day >= '{}-01-01' "
    "GROUP BY article_id LIMIT 100"
)
PER_SECOND, BURST = 0.01, 8

_names = itertools.count()


@pytest.fixture(params=PORTS)
def port(request: pytest.FixtureRequest) -> Port:
    """Each of the ports."""
    return PORTS[request.param]


def new_name() -> str:
    """Return an analyst who has asked nothing."""
    return f"port-{next(_names)}"


async def settled(gateway: GatewayWorld, name: str) -> int:
    """Return the information units that an analyst has spent, once nothing is reserved."""
    async with asyncio.timeout(20):
        while (level := await ledger_of(gateway, "app", "acme", name)).reserved.information:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return level.spent.information


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"key": ec.generate_private_key(ec.SECP256R1())},
        {"sub": "../globex"},
        {"sub": None},
        {"org": None, "sub": "acme"},
    ],
)
async def test_a_token_that_names_nobody_is_nobody(
    gateway: GatewayWorld, port: Port, claims: dict[str, Any]
) -> None:
    """One that is forged or old; a subject that tries to be a path. `test_attacks` has all of them, at one port."""
    wanted: dict[str, Any] = {"audience": AUDIENCE, "org": "acme", "sub": "ana", **claims}
    token = gateway.issuer.token(wanted.pop("audience"), **wanted)
    assert Refused.CALLER is (await port.ask(gateway, BY_APP, token)).refused


@pytest.mark.parametrize("token", ["", "Bearer x", "é", "x" * 7000])
async def test_what_is_no_token_is_refused(gateway: GatewayWorld, port: Port, token: str) -> None:
    """Also none at all; what is not ASCII never leaves gRPC's own client."""
    is_sent = token.isascii() or not isinstance(port, Grpc)
    expected = Refused.CALLER if is_sent else Refused.FAILED
    assert expected is (await port.ask(gateway, BY_APP, token)).refused


@pytest.mark.parametrize(
    "account",
    [
        "app/acme/bob",
        "app/acme",
        "app/acme/ana/notebook",
        "app/acme/\u0430na",
        "app/acme/bob/../ana",
    ],
)
async def test_nobody_asks_as_another_account(gateway: GatewayWorld, port: Port, account: str) -> None:
    """Neither as one beside, above or below their own, nor as one whose name looks alike; their own name is theirs."""
    name = f"ana-{len(account)}"
    token = token_of(gateway, name)
    refused = await port.ask(gateway, BY_APP, token, account.replace("ana", name))
    assert Refused.CALLER is refused.refused
    assert (await port.ask(gateway, BY_APP, token, f"app/acme/{name}")).rows


async def test_an_answer_that_another_account_has_paid_for_is_not_given_away(
    gateway: GatewayWorld, port: Port
) -> None:
    """Each account pays for itself, whatever the others at any port have asked."""
    first, second = new_name(), new_name()
    paid = [
        (await each.ask(gateway, BY_APP, token_of(gateway, name))).charged
        for each, name in ((port, first), (port, second))
    ]
    assert paid[0] == paid[1] > 0
    for name in (first, second):
        assert paid[0] == (await ledger_of(gateway, "app", "acme", name)).spent.information


@pytest.mark.parametrize("order", [tuple(PORTS), tuple(reversed(PORTS))], ids="-".join)
async def test_a_question_is_paid_for_once_at_all_ports_together(
    gateway: GatewayWorld, order: tuple[str, ...]
) -> None:
    """The same text, twice at each: the first pays, all get the same numbers."""
    name = new_name()
    token = token_of(gateway, name)
    outcomes = [await PORTS[each].ask(gateway, BY_APP, token) for each in (*order, *order)]
    assert {outcomes[0].rows} == {each.rows for each in outcomes}
    assert [each.charged for each in outcomes[1:]] == [0] * 5
    level = await ledger_of(gateway, "app", "acme", name)
    assert (outcomes[0].charged, 0) == (level.spent.information, level.reserved.information)
    assert outcomes[0].charged > 0


async def test_a_question_that_comes_by_all_ports_at_once_is_paid_for_once(gateway: GatewayWorld) -> None:
    """Ten times by each."""
    name = new_name()
    token = token_of(gateway, name)
    asked = (port.ask(gateway, BY_APP, token) for port in PORTS.values() for _ in range(10))
    outcomes = await asyncio.gather(*asked)
    assert {outcomes[0].rows} == {each.rows for each in outcomes}
    spent = (await ledger_of(gateway, "app", "acme", name)).spent.information
    assert spent == sum(each.charged for each in outcomes) == max(each.charged for each in outcomes)


async def test_who_leaves_while_the_question_waits_has_paid_nothing(
    gateway: GatewayWorld, port: Port
) -> None:
    """All of the budget is held by another question; once that ends all of it is there."""
    name = new_name()
    async with all_held(gateway, gateway.analyst(name)):
        asking = asyncio.ensure_future(port.ask(gateway, BY_APP, token_of(gateway, name)))
        await asyncio.sleep(0.5)
        assert not asking.done()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert 0 == await settled(gateway, name)


async def test_who_leaves_at_any_moment_and_comes_back_pays_for_each_draw(
    gateway: GatewayWorld, port: Port
) -> None:
    """By whichever port they come back: who leaves has paid nothing or one price, for an answer or for none."""
    name = new_name()
    token = token_of(gateway, name)
    spent = 0
    for year, seconds in enumerate((0, 0.01, 0.02, 0.04, 0.06, 0.1), 2000):
        sql = TOP.format(year)
        asking = asyncio.ensure_future(port.ask(gateway, sql, token))
        await asyncio.sleep(seconds)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        async with client_of(gateway, gateway.analyst(name)) as client:
            result = await client.sql(sql)
            price = (await client.explain(sql)).worst_case_cost.information
        before, spent = spent, await settled(gateway, name)
        of_return = result.charged.information
        of_leaving = spent - before - of_return
        # Who leaves before noise is drawn pays nothing; who comes back pays unless the answer was kept and charged.
        assert (of_leaving, of_return) in {(0, price), (price, 0), (price, price)}
        assert 0 == (await port.ask(gateway, sql, token)).charged
    assert spent == await settled(gateway, name) > 0


async def test_a_budget_that_is_spent_at_one_port_is_spent_at_all(gateway: GatewayWorld, port: Port) -> None:
    """Each says with the price when it is refreshed; what was paid for stays free."""
    name = new_name()
    token = token_of(gateway, name)
    first = await port.ask(gateway, BY_APP, token)
    years = iter(range(1900, 2020))
    for year in years:
        if (await port.ask(gateway, TOP.format(year), token)).refused is Refused.BUDGET:
            break
    for each in PORTS.values():
        refused = await each.ask(gateway, TOP.format(next(years)), token)
        assert Refused.BUDGET is refused.refused
        assert "the budget does not hold this question" in refused.said
        assert "refreshed" in refused.said
        again = await each.ask(gateway, BY_APP, token)
        assert (first.rows, 0) == (again.rows, again.charged)
    level = await ledger_of(gateway, "app", "acme", name)
    assert level.spent.information <= level.limit.information


async def test_a_flood_of_strangers_keeps_nobody_out(gateway: GatewayWorld, port: Port) -> None:
    """Two hundred, fifty of them at a time, none of whom is anybody: who is known is answered among them."""
    turns = asyncio.Semaphore(50)

    async def ask(token: str) -> Outcome:
        async with turns:
            return await port.ask(gateway, BY_APP, token)

    known = token_of(gateway, "among-strangers")
    outcomes = await asyncio.gather(*(ask(known if number == 50 else "a.b.c") for number in range(201)))
    assert outcomes.pop(50).rows
    assert {Refused.CALLER} == {each.refused for each in outcomes}


@pytest.fixture(scope="module")
@needs("process")
def strict(gateway: GatewayWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayWorld]:
    """A gateway that lets a caller ask a few questions, and after them hardly any more."""
    folder: Path = tmp_path_factory.mktemp("strict")
    for name in ("wide.parquet", "small.parquet"):
        (folder / name).symlink_to(gateway.folder / name)
    config = write_configuration(folder, gateway.authority, gateway.issuer, gateway.dp, gateway.budget)
    before, _, after = config.read_text().partition("limits: {")
    limits = f"per_second: {PER_SECOND}, burst: {BURST}, concurrent: 4, waiting: 0"
    config.write_text(f"{before}limits: {{{limits}{after[after.index('}') :]}")
    with process("gris_gateway", ["--config", config], folder / "gateway.log") as ready:
        yield replace(
            gateway,
            address=ready["address"],
            broker_address=ready["broker_address"],
            postgres_address=ready["postgres_address"],
        )


async def test_the_limit_of_a_caller_is_one_for_all_ports(strict: GatewayWorld) -> None:
    """As many questions as the burst are answered wherever they come in; further ones are refused."""
    name = new_name()
    token = token_of(strict, name)
    ports = itertools.islice(itertools.cycle(PORTS.values()), BURST + len(PORTS))
    outcomes = [await each.ask(strict, TOP.format(year), token) for year, each in enumerate(ports, 2000)]
    assert [None] * BURST + [Refused.BUSY] * len(PORTS) == [each.refused for each in outcomes]
    spent = (await ledger_of(strict, "app", "acme", name)).spent.information
    assert sum(each.charged for each in outcomes) == spent
    for each in PORTS.values():
        assert (await each.ask(strict, BY_APP, token_of(strict, f"{name}-calm"))).rows
