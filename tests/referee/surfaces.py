"""What each surface says to a question: the clients, SQL, the command line, notebooks, agents and the console."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from gris_api.app.v1 import app_pb2_grpc
from gris_api.dp.v1 import question_pb2
from grpc_status import rpc_status

from gris_cli.__main__ import main
from pinot_connector import AsyncGatewayClient, AsyncPrivateClient, Credentials, Endpoint
from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.dbapi import connect_gateway
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from pinot_connector.questions import sharpened_question, sql_question
from tests.console.people import PageSeen, Person, Visitors
from tests.console.stage import Stage, running_gateway
from tests.support.agents import Agent, over_stdio, text_of
from tests.support.budget_process import service
from tests.support.pki import Authority, Issuer
from tests.support.processes import process

from .questions import Asked
from .worlds import World

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
# A busy machine must not take a service for dead.
UNHURRIED = Timeouts(budget_silence=10, budget_attempt=6)
Said = dict[str, Any]
_ATTEMPTS = 10
_DAY_SECONDS = 86_400
_SILENT = re.compile("does not answer|took too long|unavailable")


@contextmanager
def stage_of(world: World, folder: Path) -> Iterator[Stage]:
    """Run the services and the gateway of a world, with the keys and the time that every record has."""
    folder.mkdir(parents=True)
    for name in ("noise.key", "releases.key"):
        (folder / name).write_text(KEY)
        (folder / name).chmod(0o600)
    (folder / "policy.yaml").write_text(world.policy)
    tables = world.write(folder)
    authority, issuer = Authority.new(folder), Issuer(folder)
    store = {"file": str(folder / "releases.sqlite"), "key_file": str(folder / "releases.key")}
    with (
        still_service(folder) as dp,
        service(
            folder,
            f"sqlite:{folder / 'ledger.sqlite'}",
            *("--admin-listen", "127.0.0.1:0"),
            configuration=_BUDGET,
        ) as ledger,
    ):
        admin = ledger.admin_address or ""
        made = Stage(folder, dp, ledger.address, admin, "", authority, issuer, tables)
        # Few questions a second are let through by default.
        limits = {"per_second": 10_000, "burst": 10_000}
        with running_gateway(folder, "gateway", made, releases=store, limits=limits) as address:
            yield replace(made, gateway=address)


@contextmanager
def still_service(folder: Path) -> Iterator[str]:
    """Run dp_service by the policy and the key of a folder, with a clock that stands still; give its address."""
    files = ("--policy", folder / "policy.yaml", "--key-file", folder / "noise.key")
    words = [*files, "--listen", "127.0.0.1:0"]
    with process("tests.referee.still_service", words, folder / "dp.log") as ready:
        yield ready["address"]


class Overheard:
    """The calls of a gateway, and what it sent to the last one, in terms of JSON."""

    def __init__(self, address: Endpoint) -> None:
        self.channel = open_channel(address)
        self.sent: list[Any] = []
        self._stub: Any = app_pb2_grpc.PrivateQueryServiceStub(self.channel)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._stub, name)
        return partial(self._streamed if name == "Ask" else self._called, call)

    async def _called(self, call: Any, request: Message, **options: Any) -> Message:
        self.sent = []
        with self._hearing():
            answer: Message = await call(request, **options)
        self.sent.append(_message(answer))
        return answer

    async def _streamed(self, call: Any, request: Message, **options: Any) -> AsyncIterator[Message]:
        self.sent = []
        with self._hearing():
            async for answer in call(request, **options):
                self.sent.append(_message(answer))
                yield answer

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            status: Any = rpc_status.from_call(error)  # type: ignore[arg-type]  # as rpc_errors does
            self.sent.append({"status": str(error.code()), "message": error.details(), "details": []})
            if status is not None:
                self.sent[-1]["details"] = _message(status).get("details", [])
            raise


@dataclass(frozen=True)
class Desk:
    """Everybody who can ask, each in front of the same services."""

    client: AsyncPrivateClient
    noise: DpServiceClient
    calls: Overheard
    gateway: AsyncGatewayClient
    agent: Agent
    person: Person
    address: str
    credentials: Credentials
    _requests: Iterator[int] = field(default_factory=itertools.count)

    async def said(self, asked: Asked, *, everywhere: bool) -> Said:
        """Return what is said to a question: before it is asked, and where it is, by the client or by every surface."""
        for _ in range(_ATTEMPTS):
            said = await or_error(self._said(asked, everywhere=everywhere))
            # On a busy machine a service may be too slow for somebody; asked again, nothing is paid again.
            if not _SILENT.search(json.dumps(said)):
                break
            await asyncio.sleep(1)
        return said

    async def _said(self, asked: Asked, *, everywhere: bool) -> Said:
        said = await explained(self.client, self.noise, asked)
        for part in _parts(asked):
            said["released"] = await or_error(as_dict(self.client.ask(part)))
        return said | await self._everywhere(asked) if everywhere else said

    async def _everywhere(self, asked: Asked) -> Said:
        flags = [word for units in asked.sharpen for word in ("--sharpen", str(units))]
        words = ("--sql", asked.sql, *flags)
        explained, price = await self._sent(self.gateway.explain(question_of(asked)))
        for part in _parts(asked):
            # A request of its own name is listed even if the question was asked before.
            name = f"request {next(self._requests)}"
            released, answer = await self._sent(self.gateway.ask(part, request_id=name))
        await self.gateway.remaining()
        left = self.calls.sent
        more: Said = {
            "gateway": {"explain": price, "ask": _but(price[0], answer), "left": left},
            "cli": {name: await self._command(name, *words) for name in ("ask", "explain")},
            "cli_json": await self._json(words, explained, released),
            "notebook": await or_error(self._notebook(asked)),
        }
        if not asked.sharpen:
            more["dbapi"] = await asyncio.to_thread(self._cursor, asked.sql)
            more["mcp"] = {name: await self._agent(name, sql=asked.sql) for name in ("explain", "ask")}
        more["console"] = await self._pages(asked)
        if "error" not in released:
            more["history"] = await self._history(answer, released, more.get("mcp", {}).get("ask", {}))
        return more

    async def _sent(self, call: Awaitable[Any]) -> tuple[Said, list[Said]]:
        """Return what a client of the gateway makes of what it was sent, and that."""
        said = await or_error(_dict(call))
        return said, self.calls.sent

    async def _json(self, words: Sequence[str], explained: Said, released: Said) -> Said:
        ask = await self._command("ask", *words, "--json")
        explain = await self._command("explain", *words, "--json")
        # Whose names are nowhere else.
        parameters = {"parameters": released.pop("parameters", None)}
        return {"ask": _but(released, ask), "explain": _but(explained | parameters, explain)}

    async def _history(self, answer: list[Said], released: Said, mcp: Said) -> Said:
        """Return how the newest result of the account is listed; what of it is as it was is only said to be so."""
        async for _ in self.gateway.releases(page_size=1):
            break
        page = await self.person.get("/history")
        rows = re.search("<tbody>.*?</tr>", page.html, re.DOTALL)
        (listed,) = self.calls.sent
        (past,) = listed["releases"]
        sent = {"elements": answer[0]["chunk"]} if len(answer) == 2 else {}
        past = _but(sent, past) | {"result": _but(answer[-1]["end"], past["result"])}
        (printed,) = (await self._command("history", "--most", "1", "--json"))[1]["releases"]
        of_agent = await self._agent("history", most=1)
        return {
            "gateway": listed | {"releases": [past]},
            "cli": await self._command("history", "--most", "1"),
            "cli_json": printed | {"result": _but(released, printed["result"])},
            "mcp": [
                each | {"answer": _but(mcp, each["answer"])} if "answer" in each else each
                for each in of_agent.get("answers", [of_agent])
            ],
            "console": _page_text(rows.group() if rows else page.html),
        }

    async def _command(self, name: str, *words: str) -> Any:
        trust = ["--ca-file", str(self.credentials.ca_file), "--token-file", str(self.credentials.token_file)]
        words = (*trust, name, *words, "--gateway", f"gris://{self.address}")
        return await asyncio.to_thread(_printed, list(words))

    async def _notebook(self, asked: Asked) -> Said:
        result = await self.gateway.ask(question_of(asked))
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
                return {"error": type(error).__name__, "message": _named(str(error))}
            said: Said = {"columns": [[str(part) for part in column] for column in cursor.description or ()]}
            said["rows"] = [[str(value) for value in row] for row in cursor.fetchall()]
            said["messages"] = [str(message) for message in cursor.messages]
            return said

    async def _agent(self, tool: str, **arguments: Any) -> Any:
        try:
            result = await self.agent.client.call_tool(tool, arguments)
        except RuntimeError as error:
            # The SDK refuses what its tool's schema does not have.
            return {"error": str(error)[:200]}
        return _still(json.loads(text_of(result)))

    async def _pages(self, asked: Asked) -> list[str]:
        page = await self.person.priced(sql=asked.sql)
        pages = [page]
        for units in (*asked.sharpen, None):
            if page.status != 200:
                break
            page = await self.person.send(page.form("/answer"))
            pages.append(page)
            if units is None or "/price" not in page.actions():
                break
            page = await self.person.send(page.form("/price"), units=str(units))
            pages.append(page)
        return [_page_text(each.html) for each in pages]


@asynccontextmanager
async def desk_of(stage: Stage) -> AsyncIterator[Desk]:
    """Connect everybody to a stage."""
    token = stage.folder / "token"
    ends = int(time.time()) + _DAY_SECONDS
    token.write_text(stage.token(_WHO, exp=ends))
    token.chmod(0o600)
    credentials = Credentials(ca_file=stage.authority.ca_file, token_file=token)
    async with AsyncExitStack() as opened:
        with ExitStack() as closing:
            engine = DuckDBEngine(stage.tables)
            closing.callback(engine.close)
            client = AsyncPrivateClient(
                dp=stage.dp, budget=stage.budget, account="acme/client", engine=engine, timeouts=UNHURRIED
            )
            visitors = Visitors(stage)
            opened.push_async_callback(visitors.close)
            calls = Overheard(Endpoint(stage.gateway, credentials))
            opened.push_async_callback(calls.channel.close)
            noise = DpServiceClient(stage.dp, UNHURRIED)
            opened.push_async_callback(noise.close)
            yield Desk(
                await opened.enter_async_context(client),
                noise,
                calls,
                AsyncGatewayClient(calls),
                await opened.enter_async_context(over_stdio(stage.gateway, credentials)),
                await visitors.analyst(_WHO, exp=ends),
                stage.gateway,
                credentials,
            )


def question_of(asked: Asked) -> question_pb2.Question:
    """Return a question as a message."""
    question = sql_question(asked.sql)
    return sharpened_question(question, asked.sharpen) if asked.sharpen else question


def _parts(asked: Asked) -> Iterator[question_pb2.Question]:
    """Yield the questions that have to be paid for, in order: a sharpening has a release before it."""
    for number in range(len(asked.sharpen) + 1):
        yield question_of(replace(asked, sharpen=asked.sharpen[:number]))


async def explained(client: AsyncPrivateClient, noise: DpServiceClient, asked: Asked) -> Said:
    """Return what is said before a question is asked: the SQL for each engine, the price, and the plan."""
    try:
        question = question_of(asked)
    except GrisError as error:
        # Half of a character reaches no service.
        return {"explained": _refusal(error)}
    said = await or_error(as_dict(client.explain(question)))
    queries = said.pop("queries", [])
    sql = {
        dialect: [each["sql"] for each in queries if each["dialect"] == dialect]
        for dialect in ("duckdb", "pinot", "spark")
    }
    return {"sql": sql, "explained": said, "plan": await or_error(_plan(noise, question))}


async def _plan(noise: DpServiceClient, question: question_pb2.Question) -> Said:
    translated = await noise.translate(question, "a version", "duckdb")
    signed = translated.plan
    # Neither is how well it was compressed, nor the signature of that.
    if not signed:
        return {"plan": "none: it needs no release"}
    head, content = signed[:9], zlib.decompress(signed[41:])
    translated.ClearField("plan")
    translated.ClearField("engine_queries")
    translated.ClearField("parameters")
    read = json.loads(content)
    specified = bytes.fromhex(read.pop("specification"))
    return {
        "head": head.hex(),
        "hash": hashlib.sha256(content).hexdigest()[:16],
        # Its texts are preceded by their lengths.
        "specification": re.sub(rb"\0{6}..", b" ", specified, flags=re.DOTALL).decode(
            "ascii", "backslashreplace"
        ),
        "content": read,
        "translated": _message(translated),
    }


async def as_dict(call: Awaitable[Any]) -> Said:
    """Return a result or an explanation in terms of JSON, without the budget, of which the gateway says as much."""
    found = await _dict(call)
    # Which field of which class states a parameter may change; that it is stated, and as what, may not.
    return {name: each for name, each in found.items() if name not in _OF_BUDGET} | {
        name: " ".join(sorted(_leaves(found[name])))
        for name in ("parameters", "alternatives")
        if name in found
    }


async def _dict(call: Awaitable[Any]) -> Said:
    said: Said = _still((await call).to_dict())
    return said


def _but(known: Said, said: Any) -> Any:
    """Return what is said, with only the names of those fields that known words have as well."""
    match said:
        case dict():
            same = [name for name, each in said.items() if name in known and known[name] == each]
            rest = {name: _but(known, each) for name, each in said.items() if name not in same}
            return rest | {"as before": " ".join(same)} if same else rest
        case list():
            return [_but(known, each) for each in said]
    return said


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
        return _refusal(error)


def _refusal(error: GrisError) -> Said:
    return {"error": error.code.value, "field": getattr(error, "field", ""), "message": str(error)}


def _printed(words: list[str]) -> Any:
    out, err = io.StringIO(), io.StringIO()
    # A narrower table leaves out letters.
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    if "--json" in words:
        printed = [out.getvalue(), err.getvalue()]
        return [code, *(_still(json.loads(text)) for text in printed if text)]
    return _text(f"{code} {out.getvalue()} {err.getvalue()}")


def _page_text(html: str) -> str:
    page = PageSeen(httpx.Response(200, text=html))
    # What stands around every page.
    return _text(page.text.partition("Log out ")[2].rpartition(" Answers are diff")[0] or page.text)


def _message(message: Message) -> Said:
    said: Said = _still(MessageToDict(message, preserving_proto_field_name=True))
    return said


_OF_BUDGET = frozenset({"charged", "remaining", "shares", "narrowest"})
# What is left depends on what was asked before, and when it was asked.
_MOVING = frozenset(
    {
        *("charged", "remaining", "left", "spent", "reserved", "held", "narrowest", "questions_left"),
        *("released_at", "asked_at", "request_id", "next_page_token"),
    }
)
_LARGE = re.compile(r"(?<!/)\b(?:\d{1,3}(?:,\d{3}){2,}|\d{7,})\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_REQUEST = re.compile(r"\b(request|Request|gris why) [0-9a-f-]{32,36}\b")


def _still(value: Any) -> Any:
    """Return a value of JSON without what is left of a budget, and without times of this machine."""
    match value:
        case dict():
            return {
                name: ".." if name in _MOVING and each else _still(each)
                for name, each in value.items()
                # Empty if the question was paid for before.
                if not (name == "remaining" and isinstance(each, list))
            }
        case list():
            return [_still(each) for each in value]
    return value


def _text(text: str) -> str:
    """Return a text on one line, however it was wrapped, without what is left of a budget."""
    return _TIME.sub("..", _LARGE.sub("..", _named(" ".join(text.split()))))


def _named(text: str) -> str:
    """Return a text without the id of a refused request."""
    return _REQUEST.sub(r"\1 ..", text)
