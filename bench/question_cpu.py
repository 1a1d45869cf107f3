"""The CPU that a question costs beside its engine, in each process, and the calls that it makes.

    python -m bench cpu

A private top 10, whose engine gives at once what DuckDB answered the first time: what is left is Gris, the connector in
this process and both services.

    empty        a call that does nothing, through the interceptors of the services
    new          a question that nobody has asked before, structured, by one caller after the other
    in SQL       the same text again and again, drawn and charged each time
    viewers      a hundred accounts ask one new question at the same time, as those who open a dashboard do
    at a gateway a new question of a caller who is known by a token, at a gateway in a process of its own

The kinds take turns, and the last column is the ratio to the empty call of the same turns. CPU depends less than time
on what else runs; still, compare only figures of one run. With --beside DIRECTORY, a checkout of another version, new
questions are asked in both by turns instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from google.protobuf.empty_pb2 import Empty

from bench.cpu import cpu_seconds
from bench.empty_server import METHOD
from bench.gateways import calling, running_gateway
from bench.new_questions import StubEngine, client_of, new_question
from bench.tables import BUDGET, EXAMPLES, Table, feedback
from bench.versions import compared
from gris_serving.garbage_collection import spared_collector
from pinot_connector import AsyncPrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.release_store import MemoryReleaseStore, ReleaseStore
from tests.support.forgetful_store import ForgetfulStore
from tests.support.pki import Issuer
from tests.support.processes import process
from tests.support.relay import relayed
from tests.support.world import World

TURNS = 5
WARM_UP = 100
VIEWERS = 100
COUNTED = 20
SQL = """
    SELECT article_id, COUNT(DISTINCT member_id) AS members FROM cofacts_feedback
    WHERE score = 1 AND day BETWEEN DATE '2019-01-01' AND DATE '2020-12-31'
    GROUP BY article_id ORDER BY members DESC LIMIT 10"""

Ask: TypeAlias = Callable[[], Awaitable[object]]
# How each kind is asked, and how many questions that is.
Kinds: TypeAlias = dict[str, tuple[Ask, int]]
Found: TypeAlias = dict[str, dict[str, float]]


def main() -> None:
    """Measures, and prints a table for people or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=500, help="of each kind")
    parser.add_argument("--beside", type=Path, help="a checkout of another version, to take turns with it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.beside is not None:
        _print_compared(options.beside, options.questions)
        return
    # As a gateway does.
    with spared_collector():
        found, calls = asyncio.run(_measured(options.questions))
    if options.json:
        print(json.dumps({"milliseconds": found, "calls": calls, "load": os.getloadavg()[0]}))
        return
    print(f"ms of CPU a question, beside its engine; load {os.getloadavg()[0]:.1f}")
    empty = sum(found["empty"].values())
    for kind, each in found.items():
        parts = ", ".join(f"{name} {value:.2f}" for name, value in sorted(each.items()) if value)
        whole = sum(each.values())
        print(f"{kind:>12}: {whole:6.2f} = {parts}; {whole / empty:.1f} empty calls")
    print("calls of a new question: " + ", ".join(f"{name} {number:g}" for name, number in calls.items()))


def _print_compared(beside: Path, questions: int) -> None:
    found = compared(beside, questions)
    print(f"ms of CPU of a new question, medians of turns; load {os.getloadavg()[0]:.1f}")
    for name, each in (("this version", found.here), (str(beside), found.beside)):
        parts = ", ".join(f"{process} {value:.2f}" for process, value in sorted(each.items()) if value)
        print(f"{name}: {sum(each.values()):.2f} = {parts}")
    print(f"this version takes {found.ratio:.2f} of what the other one takes")


async def _measured(questions: int) -> tuple[Found, dict[str, float]]:
    table = feedback()
    engine = StubEngine({table.name: table.parquet})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text())
        (folder / "budget.yaml").write_text(BUDGET)
        with EmbeddedServices(
            policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
        ) as services:
            async with _kinds(services, engine, table, folder) as kinds:
                found = await _in_turns(kinds, questions)
            calls = await _calls(services, engine, table, folder)
    engine.close()
    return found, calls


@asynccontextmanager
async def _kinds(
    services: EmbeddedServices, engine: StubEngine, table: Table, folder: Path
) -> AsyncIterator[Kinds]:
    async with AsyncExitStack() as opened:
        one = await opened.enter_async_context(_client(services, engine, ForgetfulStore()))
        dashboard = await opened.enter_async_context(_client(services, engine, MemoryReleaseStore()))
        accounts = [dashboard.on_behalf_of(["bench", f"viewer {each}"]) for each in range(VIEWERS)]
        issuer = Issuer(folder)
        gateway = opened.enter_context(
            running_gateway("gateway", folder, table, dp=services.dp_address, budget=services.budget_address)
        )
        caller = await opened.enter_async_context(calling(gateway["address"], issuer, "caller"))
        server = opened.enter_context(process("bench.empty_server", [], folder / "empty.log"))
        channel = await opened.enter_async_context(grpc.aio.insecure_channel(server["address"]))
        nothing: Any = channel.unary_unary(
            METHOD, request_serializer=Empty.SerializeToString, response_deserializer=Empty.FromString
        )

        async def all_at_once() -> None:
            question = new_question(table.name)
            await asyncio.gather(*(each.ask(question) for each in accounts))

        yield {
            "empty": (lambda: nothing(Empty()), 1),
            "new": (lambda: one.ask(new_question(table.name)), 1),
            "in SQL": (lambda: one.sql(SQL), 1),
            "viewers": (all_at_once, VIEWERS),
            "at a gateway": (lambda: caller.ask(new_question(table.name)), 1),
        }


def _client(services: EmbeddedServices, engine: StubEngine, releases: ReleaseStore) -> AsyncPrivateClient:
    return client_of(services.dp_address, services.budget_address, engine, releases)


async def _in_turns(kinds: Kinds, questions: int) -> Found:
    """Returns the milliseconds of CPU of a question of each kind in each process."""
    for ask, size in kinds.values():
        for _ in range(-(-WARM_UP // size)):
            await ask()
    found: Found = {kind: {} for kind in kinds}
    for _ in range(TURNS):
        for kind, (ask, size) in kinds.items():
            rounds = max(1, questions // TURNS // size)
            before = cpu_seconds()
            for _ in range(rounds):
                await ask()
            for name, now in cpu_seconds().items():
                spent = 1e3 * (now - before[name]) / (rounds * size * TURNS)
                found[kind][name] = found[kind].get(name, 0.0) + spent
    return found


async def _calls(
    services: EmbeddedServices, engine: StubEngine, table: Table, folder: Path
) -> dict[str, float]:
    """Returns how often a new question calls each method of the services."""
    async with (
        relayed(World(services.dp_address, services.budget_address, folder)) as relay,
        client_of(relay.address, relay.address, engine, MemoryReleaseStore()) as client,
    ):
        await client.ask(new_question(table.name))
        before = len(relay.methods)
        for _ in range(COUNTED):
            await client.ask(new_question(table.name))
        return {name: number / COUNTED for name, number in Counter(relay.methods[before:]).items()}


if __name__ == "__main__":
    main()
