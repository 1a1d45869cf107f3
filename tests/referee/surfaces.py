"""What each surface says to a question: the clients, SQL, the command line, notebooks, agents and the console."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from gris_api.dp.v1 import question_pb2

from gris_cli.__main__ import main
from pinot_connector import AsyncGatewayClient, AsyncPrivateClient, Credentials, Endpoint
from pinot_connector.dbapi import connect_gateway
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from pinot_connector.questions import sharpened_question, sql_question
from tests.console.people import PageSeen, Person, Visitors
from tests.console.stage import Stage, running_stage
from tests.support.agents import Agent, over_stdio, text_of

from .questions import Asked
from .worlds import TOPICS, World, write_rows

KEY = "72656665" * 8
_WHO = "referee"
_BUDGET = """
create_at_first_use: true
accounts:
  - path: [acme]
    limit: {information: 1000000000000, calls: 1000000000}
    window: never
  - path: [acme, "*"]
    limit: {information: 1000000000, calls: 10000000}
    window: never
"""
Said = dict[str, Any]
_ATTEMPTS = 10
_SILENT = re.compile("does not answer|took too long|unavailable")


@contextmanager
def stage_of(world: World, folder: Path) -> Iterator[Stage]:
    """Run the services and the gateway of a world, with the keys that every record has."""
    state = folder / "state"
    state.mkdir(parents=True)
    for name in ("noise.key", "releases.key"):
        (state / name).write_text(KEY)
        (state / name).chmod(0o600)
    (folder / "topics.csv").write_bytes(TOPICS)
    write_rows(folder / "rows.parquet")
    tables = dict.fromkeys(world.tables, folder / "rows.parquet")
    with running_stage(folder, world.policy, tables, _BUDGET) as stage:
        yield stage


@dataclass(frozen=True)
class Desk:
    """Everybody who can ask, each in front of the same services."""

    client: AsyncPrivateClient
    gateway: AsyncGatewayClient
    agent: Agent
    person: Person
    address: str
    credentials: Credentials

    async def said(self, asked: Asked, *, everywhere: bool) -> Said:
        """Return what is said to a question: before it is asked, and where it is, by the client or by every surface."""
        for _ in range(_ATTEMPTS):
            said = await self._said(asked, everywhere=everywhere)
            # On a busy machine a service may be too slow for somebody; asked again, nothing is paid again.
            if not _SILENT.search(json.dumps(said)):
                break
            await asyncio.sleep(1)
        return said

    async def _said(self, asked: Asked, *, everywhere: bool) -> Said:
        question = _question(asked)
        said: Said = {"asked": f"{asked.sql} {list(asked.sharpen)}"}
        said["explained"] = await or_error(as_dict(partial(self.client.explain, question)))
        for part in _parts(asked):
            said["released"] = await or_error(as_dict(partial(self.client.ask, part)))
            if everywhere:
                by_gateway = await or_error(as_dict(partial(self.gateway.ask, part)))
                said["gateway"] = "as released" if by_gateway == said["released"] else by_gateway
        return said | await self._everywhere(asked) if everywhere else said

    async def _everywhere(self, asked: Asked) -> Said:
        flags = [word for units in asked.sharpen for word in ("--sharpen", str(units))]
        said: Said = {
            "ask": await self._command("ask", "--sql", asked.sql, *flags),
            "explain": await self._command("explain", "--sql", asked.sql, *flags),
            "notebook": await or_error(self._notebook(asked)),
        }
        if not asked.sharpen:
            said["sql"] = await asyncio.to_thread(self._cursor, asked.sql)
            said["agent"] = await self._agent(asked.sql)
            said["console"] = await self._pages(asked.sql)
        return said

    async def _command(self, name: str, *words: str) -> str:
        trust = ["--ca-file", str(self.credentials.ca_file), "--token-file", str(self.credentials.token_file)]
        return await asyncio.to_thread(
            _printed, [*trust, name, *words, "--gateway", f"gris://{self.address}"]
        )

    async def _notebook(self, asked: Asked) -> Said:
        result = await self.gateway.ask(_question(asked))
        frame = result.to_pandas()
        totals = None if result.totals is None else result.to_pandas(totals=True).to_csv()
        return {
            "text": _text(str(result)),
            "html": _page_text(result._repr_html_()),
            "frame": frame.to_csv(),
            "notes": {name: str(value) for name, value in frame.attrs.items() if name != "result"},
            "totals": totals,
        }

    def _cursor(self, sql: str) -> Said:
        credentials = self.credentials
        opened = connect_gateway(f"gris://{self.address}", credentials=credentials, intervals=True)
        with contextlib.closing(opened) as connection, contextlib.closing(connection.cursor()) as cursor:
            try:
                cursor.execute(sql)
            except Exception as error:
                return {"error": type(error).__name__, "message": str(error)}
            said: Said = {"columns": [[str(part) for part in column] for column in cursor.description or ()]}
            said["rows"] = [[str(value) for value in row] for row in cursor.fetchall()]
            said["messages"] = [str(message) for message in cursor.messages]
            return said

    async def _agent(self, sql: str) -> Said:
        return {
            tool: _without_budget(json.loads(text_of(await self.agent.client.call_tool(tool, {"sql": sql}))))
            for tool in ("explain", "ask")
        }

    async def _pages(self, sql: str) -> Said:
        price = await self.person.priced(sql=sql)
        if price.status != 200:
            return {"price": _text(price.text)}
        answer = await self.person.send(price.form("/answer"))
        return {"price": _text(price.text), "answer": _text(answer.text)}


@asynccontextmanager
async def desk_of(stage: Stage) -> AsyncIterator[Desk]:
    """Connect everybody to a stage."""
    token = stage.folder / "token"
    token.write_text(stage.token(_WHO))
    token.chmod(0o600)
    credentials = Credentials(ca_file=stage.authority.ca_file, token_file=token)
    async with AsyncExitStack() as opened:
        with ExitStack() as closing:
            engine = DuckDBEngine(stage.tables)
            closing.callback(engine.close)
            client = AsyncPrivateClient(
                dp=stage.dp, budget=stage.budget, account="acme/client", engine=engine
            )
            visitors = Visitors(stage)
            opened.push_async_callback(visitors.close)
            yield Desk(
                await opened.enter_async_context(client),
                await opened.enter_async_context(AsyncGatewayClient(Endpoint(stage.gateway, credentials))),
                await opened.enter_async_context(over_stdio(stage.gateway, credentials)),
                await visitors.analyst(_WHO),
                stage.gateway,
                credentials,
            )


def _question(asked: Asked) -> question_pb2.Question:
    question = sql_question(asked.sql)
    return sharpened_question(question, asked.sharpen) if asked.sharpen else question


def _parts(asked: Asked) -> Iterator[question_pb2.Question]:
    """Yield the questions that have to be paid for, in order: a sharpening has a release before it."""
    question = sql_question(asked.sql)
    yield question
    for number in range(1, len(asked.sharpen) + 1):
        yield sharpened_question(question, asked.sharpen[:number])


async def as_dict(call: Callable[[], Awaitable[Any]]) -> Said:
    """Return a result or an explanation in terms of JSON, without what is left of a budget."""
    found = _without_budget((await call()).to_dict())
    # Which field of which class states a parameter may change; that it is stated, and as what, may not.
    return found | {
        name: sorted(_leaves(found[name])) for name in ("parameters", "alternatives") if name in found
    }


def _leaves(value: Any) -> Iterator[str]:
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


async def or_error(said: Awaitable[Said]) -> Said:
    """Return what is said, or the error that is."""
    try:
        return await said
    except GrisError as error:
        return {"error": error.code.value, "field": getattr(error, "field", ""), "message": str(error)}


def _printed(words: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    # A narrower table leaves out letters.
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return _text(f"{code} {out.getvalue()} {err.getvalue()}")


def _page_text(html: str) -> str:
    return PageSeen(httpx.Response(200, text=html)).text


# What is left depends on what was asked before.
_OF_BUDGET = ("charged", "remaining", "shares", "narrowest", "budget", "questions_left")
_LARGE = re.compile(r"\b\d{1,3}(?:,\d{3}){2,}\b|\b\d{7,}\b")


def _without_budget(said: Mapping[str, Any]) -> Said:
    return {name: value for name, value in said.items() if name not in _OF_BUDGET}


def _text(text: str) -> str:
    """Return a text on one line, however it was wrapped, without what is left of a budget."""
    return _LARGE.sub("..", " ".join(text.split()))
