"""Asks the questions of `questions.json` and writes each answer as a few lines of text."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinot_connector import AsyncPrivateClient
from pinot_connector.channels import Timeouts
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from pinot_connector.questions import sql_question
from tests.support.budget_process import service
from tests.support.processes import process
from tests.support.queries.policies import POLICY_TEXT

from .worlds import WORLDS

KEPT = Path(__file__).parent / "cases.txt"
QUESTIONS = Path(__file__).parent / "questions.json"
# Questions of this part are explained and not asked.
TEXTS = "texts"
_KEY = "72656665" * 8
_BUDGET = """
accounts:
  - path: [acme]
    limit: {information: 1000000000000, calls: 1000000000}
    window: never
  - path: [acme, "*"]
    limit: {information: 1000000000, calls: 10000000}
    window: never
"""
# A busy machine must not take a service for dead.
_PATIENT = Timeouts(budget_silence=30, budget_attempt=10)
_LONGEST, _ROWS = 400, 4
_DIALECTS = ("duckdb", "pinot", "spark")


@dataclass(frozen=True)
class Case:
    """A question of a part: a world of `worlds`, or texts."""

    part: str
    name: str
    sql: str


def cases() -> list[Case]:
    """Return the questions, those of a part one after the other."""
    return [Case(**each) for each in json.loads(QUESTIONS.read_text())]


def answers() -> list[str]:
    """Ask all questions and return the lines of all answers."""
    return asyncio.run(_answers())


async def _answers() -> list[str]:
    lines = []
    parts = [(world.name, world.policy) for world in WORLDS] + [(TEXTS, POLICY_TEXT)]
    for part, policy in parts:
        async with _client(part, policy) as client:
            for case in cases():
                if case.part == part:
                    lines += [f"## {part}: {case.name}", *await _answer(client, case)]
    return lines


@asynccontextmanager
async def _client(part: str, policy: str) -> AsyncIterator[AsyncPrivateClient]:
    """Run the services of a part and connect to them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "noise.key").write_text(_KEY)
        (folder / "noise.key").chmod(0o600)
        (folder / "policy.yaml").write_text(policy)
        tables = {
            key: path for world in WORLDS if world.name == part for key, path in world.write(folder).items()
        }
        files = ("--policy", folder / "policy.yaml", "--key-file", folder / "noise.key")
        engine = DuckDBEngine(tables)
        try:
            with (
                process(
                    "tests.referee.still_service", [*files, "--listen", "127.0.0.1:0"], folder / "dp.log"
                ) as ready,
                service(folder, f"sqlite:{folder / 'ledger.sqlite'}", configuration=_BUDGET) as ledger,
            ):
                async with AsyncPrivateClient(
                    dp=ready["address"],
                    budget=ledger.address,
                    account="acme/client",
                    engine=engine,
                    timeouts=_PATIENT,
                ) as client:
                    yield client
        finally:
            engine.close()


async def _answer(client: AsyncPrivateClient, case: Case) -> list[str]:
    try:
        question = sql_question(case.sql)
        explained = (await client.explain(question)).to_dict()
        released = {} if case.part == TEXTS else (await client.ask(question)).to_dict()
    except GrisError as error:
        return [f"refused: {error.code.value} {getattr(error, 'field', '')}".rstrip()]
    return [*_explained(explained), *_released(released)]


def _explained(said: dict[str, Any]) -> Iterator[str]:
    cost = said["worst_case_cost"]
    yield f"price: {cost['information']} information, {cost['calls']} calls in {cost['unit_id'][:8]}"
    yield f"mechanism: {said['mechanism']}: {' '.join(sorted(_leaves(said['parameters'])))}"
    yield f"accuracy: {' '.join(sorted(_leaves(said['accuracy'])))}"
    yield f"says: {_codes(said)}"
    for dialect in _DIALECTS:
        for each in said["queries"]:
            if each["dialect"] == dialect:
                settings, _, statement = each["sql"].rpartition("; ")
                yield f"{dialect}: {_short(statement)}{f'; settings {_digest(settings)}' * bool(settings)}"


def _released(said: dict[str, Any]) -> Iterator[str]:
    if not said:
        return
    yield f"ids: {said['query_id'][:16]} {said['release_id'][:16]} data {said['data_version'][:8]}"
    yield f"cost: {said['cost']['information']} information, {said['cost']['calls']} calls"
    yield f"then says: {_codes(said)}"
    whole = {name: said[name] for name in ("rows", "bottom", "total", "rank_errors", "selected")}
    yield f"answer: {_digest(json.dumps(whole))}, {len(said['rows'])} rows, {said['interval_kind']} intervals"
    for row in said["rows"][:_ROWS]:
        yield f"row: {_short(json.dumps(row, ensure_ascii=True))}"


def _codes(said: dict[str, Any]) -> str:
    return " ".join(each["code"] for each in said["statements"])


def _short(text: str) -> str:
    """Return a text on one line; the end of a long one is a digest."""
    line = re.sub(r"\s+", " ", text)
    # Half of a character is written as JSON writes it.
    line = line.encode(errors="backslashreplace").decode()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}.. {_digest(line)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _leaves(value: Any) -> Iterator[str]:
    """Yield all values of a value of JSON that state something."""
    match value:
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case list():
            for each in value:
                yield from _leaves(each)
        case None | False | "":
            pass
        case _:
            yield str(value)
