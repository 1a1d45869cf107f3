"""Every kind of answer on every surface: each has all rows, numbers and statements, and says the same.

Each release here is a real one, asked through a gateway, and each text is what its reader gets. Surfaces are the two
clients, agents, the page, the command line, notebooks, frames and DB-API.
"""

from __future__ import annotations

import asyncio
import datetime
import html
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from fractions import Fraction
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import pandas
import pytest
from gris_api.app.v1 import app_pb2

from gris_cli import terminal
from gris_cli.app import run
from gris_gateway.faces.mcp.tools import TOOLS
from gris_gateway.faces.page.asking import Form, seen_by
from gris_gateway.faces.page.rendering import rendered
from gris_gateway.messages import element_chunks, result_message
from pinot_connector import dbapi
from pinot_connector.coverage import AnyEnds, TwoSided, written
from pinot_connector.dbapi import Connection, connect
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from pinot_connector.explanation_rows import explanation_rows, leading
from pinot_connector.formats import cost
from pinot_connector.gateway_client import AsyncGatewayClient, result_of
from pinot_connector.parameters import IntervalKind, Parameters
from pinot_connector.questions import sql_question
from pinot_connector.release_store.receipts import with_elements, without_elements
from pinot_connector.results import Explanation, PrivateResult, Row, Total
from pinot_connector.statements import Statement
from tests.support.agents import text_of
from tests.support.clients import Counted, blocking_client_of
from tests.support.rings import needs
from tests.support.stage import BUDGET, Stage, running_stage
from tests.support.web_page import PageSeen
from tests.surfaces.kinds import KINDS, POLICY, TABLES, write_rows

# "Nothing here shows a true count" stands on the page, and is not about intervals.
UNBOUNDED = re.compile(r"\btruth\b|\btrue (?!count\.)|\bactual\b|\breal (?:count|number|sum)", re.IGNORECASE)
PRICES = ("agent's price", "page's price", "gris explain", "explain")
FEW = ("gris explain", "explain")
# Agents and cursors leave out how numbers are made: the price says it.
WITHOUT_METHOD = ("agent", "DB-API")
# What has rows for people; agents and programs get numbers.
WRITTEN = ("page", "gris ask", "notebook", "HTML")
# There cells have lines or brackets around them, and numbers commas between thousands.
_PLAIN = str.maketrans("│();:", " " * 5, ",")


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Services and a gateway on the tables of all kinds."""
    folder = tmp_path_factory.mktemp("kinds")
    write_rows(folder / "rows.parquet")
    tables, budget = dict.fromkeys(TABLES, folder / "rows.parquet"), BUDGET.replace("3000", "100000")
    with running_stage(folder, POLICY, tables, budget) as made:
        yield made


@dataclass(frozen=True)
class Seen:
    """One release, its price, and what each surface makes of them: texts, and those that people read line by line."""

    result: PrivateResult
    explanation: Explanation
    texts: dict[str, str]
    lines: dict[str, list[str]]
    agent: dict[str, Any]
    printed: dict[str, Any]
    columns: list[Any]
    rows: list[Any]


@dataclass(frozen=True)
class Reader:
    """Somebody who reads the same release on every surface."""

    stage: Stage
    credentials: Credentials

    async def read(self, sql: str) -> Seen:
        """Return what each surface says of one question, which is paid for once."""
        address = Endpoint(self.stage.gateway, self.credentials)
        async with AsyncGatewayClient(address) as client:
            answer, price = [await TOOLS[name].called(client, {"sql": sql}) for name in ("ask", "explain")]
            result = await client.ask(sql_question(sql))
            explanation = await client.explain(sql_question(sql))
        # A client reads one of the two, so both have to say it.
        assert json.loads(text_of(answer)) == answer.structured_content
        shown_price = await self.page("price", sql)
        page = await self.page("ask", sql, explanation.worst_case_cost.information)
        ask, explain, as_json = [
            await asyncio.to_thread(self._printed, name, sql, *more)
            for name, *more in (["ask", "--verbose"], ["explain"], ["ask", "--json"])
        ]
        columns, rows, said = await asyncio.to_thread(self._of_cursor, sql)
        texts = {
            "agent": text_of(answer),
            "agent's price": text_of(price),
            "page": page.text,
            "page's price": shown_price.text,
            "gris ask": ask,
            "gris explain": explain,
            "notebook": str(result),
            "HTML": _without_tags(result._repr_html_()),
            "DB-API": said,
            "explain": " ".join(await asyncio.to_thread(self._of_cursor_explaining, sql)),
        }
        lines = {surface: texts[surface].splitlines() for surface in ("gris ask", "notebook")}
        for surface, source in (("page", page.html), ("HTML", result._repr_html_())):
            lines[surface] = [_without_tags(each) for each in _BLOCK.split(source)]
        texts = {surface: " ".join(html.unescape(text).split()) for surface, text in texts.items()}
        printed = json.loads(as_json)
        return Seen(
            result, explanation, texts, lines, answer.structured_content or {}, printed, columns, rows
        )

    async def page(self, act: str, sql: str, most: int | None = None) -> PageSeen:
        """Return the page once somebody has sent a question in its form."""
        async with AsyncGatewayClient(Endpoint(self.stage.gateway, self.credentials)) as client:
            seen = await seen_by(client, Form(act, sql, "reader", most))
        return PageSeen(seen.status, rendered(seen))

    def _printed(self, command: str, sql: str, *more: str) -> str:
        code, printed = self.run(command, "--sql", sql, *more)
        assert code == 0, printed
        return printed

    def run(self, command: str, *more: str) -> tuple[int, str]:
        """Return the exit code of a command that asks the gateway, and all that it prints."""
        files = ["--ca-file", str(self.credentials.ca_file), "--token-file", str(self.credentials.token_file)]
        words = [command, "--gateway", f"gris://{self.stage.gateway}", *more]
        with redirect_stdout(StringIO()) as out, redirect_stderr(out):
            code = run([*files, *words])
        return code, out.getvalue()

    def _of_cursor(self, sql: str) -> tuple[list[Any], list[Any], str]:
        with closing(self._connected()) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            columns = list(cursor.description or ())
            said = "\n".join(
                [*(str(each[0]) for each in columns), *(str(text) for _, text in cursor.messages)]
            )
            return columns, cursor.fetchall(), said

    def _of_cursor_explaining(self, sql: str) -> list[str]:
        return [str(text) for row in self.fetched(f"EXPLAIN PLAN FOR {sql}") for text in row]

    def fetched(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows that a cursor fetches."""
        with closing(self._connected()) as connection:
            return connection.execute(sql).fetchall()

    def _connected(self) -> Connection:
        return connect(f"gris://{self.stage.gateway}/?intervals=1", credentials=self.credentials)


# Where another line begins on a page.
_BLOCK = re.compile(r"<(?:tr|p|li|div|h2)\b")


def _without_tags(source: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", source))


@pytest.fixture
async def reader(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Somebody whose token opens every surface, and whose terminal is wide enough for every cell."""
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(terminal, "MAX_WIDTH", 500)
    token = tmp_path / "token"
    token.write_text(stage.token("reader"))
    return Reader(stage, Credentials(ca_file=stage.authority.ca_file, token_file=token))


@pytest.mark.parametrize("kind", KINDS)
async def test_every_surface_says_the_same(reader: Reader, kind: str) -> None:
    """All rows, all numbers and all statements of an answer and its price; none says that it is the truth."""
    seen = await reader.read(KINDS[kind].sql)
    codes = {each.code for each in seen.result.statements}
    assert codes >= KINDS[kind].codes
    assert bool(seen.result.rows) is not kind.startswith("empty")
    require_statements(seen)
    require_written_numbers(seen)
    require_own_numbers(seen)
    require_agent_numbers(seen)
    require_program_numbers(seen)
    require_json(seen)
    require_messages(seen.result)
    require_same_by_own_services(reader.stage, KINDS[kind].sql, seen.result)


def require_statements(seen: Seen) -> None:
    """Assert that each statement stands on each surface, and no other sentence about the truth."""
    missing = [
        (surface, each.code)
        for surface, text in seen.texts.items()
        for each in said_on(surface, seen)
        if not (surface in WITHOUT_METHOD and each.is_method) and each.text not in text
    ]
    assert missing == []
    assert [
        (surface, found[0]) for surface, text in seen.texts.items() for found in UNBOUNDED.finditer(text)
    ] == []


def said_on(surface: str, seen: Seen) -> Sequence[Statement]:
    """Return the statements that a surface shows: before asking, people are shown few of them."""
    if surface in FEW:
        return leading(seen.explanation)
    return (seen.explanation if surface in PRICES else seen.result).statements


def lines_of(result: PrivateResult, surface: str) -> Iterator[list[str]]:
    """Yield what stands together in one line, in its order: an element or the value of a total, with its numbers."""
    decimals = result.parameters.decimals
    for row in result.rows:
        element = [str(each) for each in row.element]
        values = [
            [] if value is None else _cells(value.value, value.interval, digits)
            for value, digits in zip(row.values, decimals, strict=True)
        ]
        if result.parameters.quantiles is not None and surface == "gris ask":
            # There each quantile of an element has a line of its own.
            for shown, cells in zip(result.parameters.quantiles.shown, values, strict=True):
                yield [*element, shown.title, *cells]
            continue
        yield [*element, *_counted(row), *chain(*values)]
    if result.total is not None:
        yield _counted(result.total)


def _counted(row: Row | Total) -> list[str]:
    return [] if row.interval is None or row.noisy_count is None else _cells(row.noisy_count, row.interval)


def _cells(number: float | Fraction | datetime.date, ends: AnyEnds, least: int = 2) -> list[str]:
    return [each.translate(_PLAIN) for each in written(number, ends, least)]


def missing(result: PrivateResult, seen: Seen, surface: str) -> list[list[str]]:
    """Return the lines that are not among those of a surface."""
    shown = [f" {each} ".translate(_PLAIN) for each in seen.lines[surface]]
    lines = [(line, r"\s(?:.*\s)?".join(map(re.escape, line))) for line in lines_of(result, surface)]
    return [line for line, pattern in lines if not any(re.search(pattern, each) for each in shown)]


def require_written_numbers(seen: Seen) -> None:
    """Assert that people read every element and total with its own numbers and intervals, and the price."""
    for surface in WRITTEN:
        assert missing(seen.result, seen, surface) == [], surface
        assert cost(seen.result.cost) in seen.texts[surface].replace(",", ""), surface
        if not seen.result.rows:
            continue
        parameters = seen.result.parameters
        counts = [] if seen.result.interval_kind is IntervalKind.NONE else [parameters.coverage]
        heads = {each.head(seen.result.confidence) for each in (*counts, *parameters.coverages)}
        assert all(head in seen.texts[surface] for head in heads), surface
        # Nothing that can be cut is headed as what holds the number in the table.
        assert (TwoSided().head(seen.result.confidence) in heads) is (
            TwoSided() in (*counts, *parameters.coverages)
        )


def require_own_numbers(seen: Seen) -> None:
    """Assert that it would be noticed if one of the first two elements had the numbers of the other."""
    first, second, *others = (*seen.result.rows, None, None)
    if first is not None and second is not None and (first.values or first.interval):
        wrong = [replace(first, element=second.element), replace(second, element=first.element), *others[:-2]]
        # Noise may give both the same numbers.
        if wrong[:2] != [second, first]:
            exchanged = replace(seen.result, rows=tuple(wrong))
            assert all(missing(exchanged, seen, surface) for surface in WRITTEN)


def _numbers(value: Any) -> Any:
    """Return a value of JSON as agents get it: fractions are floats, and days are texts."""
    number, ends = value.value, value.interval
    return [float(each) if hasattr(each, "denominator") else str(each) for each in (number, *ends)]


def require_agent_numbers(seen: Seen) -> None:
    """Assert that an agent gets every row with all its numbers."""
    result = seen.result

    def of_value(value: dict[str, Any] | None) -> Any:
        return value and [value["value"], *value["interval"].values()]

    for got, row in zip(seen.agent["rows"], result.rows, strict=True):
        assert [str(each) for each in got["element"]] == [str(each) for each in row.element]
        assert (got["count"], got["interval"]) == (row.noisy_count, row.interval and row.interval._asdict())
        for value, ends in zip(got["values"], row.values, strict=True):
            assert (value and list(value["interval"])) == (ends and list(ends.interval._fields))
        assert list(map(of_value, got["values"])) == [each and _numbers(each) for each in row.values]
    assert (seen.agent["rank_errors"], seen.agent["release_id"]) == (
        list(map(float, result.rank_errors)),
        result.release_id,
    )


def _program_value(number: Any) -> Any:
    return float(number) if isinstance(number, Fraction) else number


def program_numbers(row: Row, parameters: Parameters) -> list[Any]:
    """Return numbers as programs get them: a count with its ends, and each value with its own; NULL where none is."""
    found: list[Any] = [] if row.noisy_count is None else [row.noisy_count, *(row.interval or ())]
    for value, covers in zip(row.values, parameters.coverages if row.values else (), strict=True):
        ends = [None] * len(covers.names) if value is None else value.interval
        found += map(_program_value, (value and value.value, *ends))
    return found


def names_of(result: PrivateResult) -> list[str]:
    """Return the names of these numbers: those of the question, with the ends of an interval or a cell behind them."""
    parameters = result.parameters
    numbers = [(result.count_alias or "count", parameters.coverage.names)]
    numbers *= result.interval_kind is not IntervalKind.NONE
    numbers += [
        (each.title, covers.names)
        for each, covers in zip(parameters.values, parameters.coverages, strict=True)
    ]
    return [name for title, ends in numbers for name in (title, *(f"{title}_{end}" for end in ends))]


def require_program_numbers(seen: Seen) -> None:
    """Assert that cursors and frames have the result's own numbers under the same names."""
    result = seen.result
    names = [*(column.title for column in result.columns), *names_of(result)]
    rows = [(*row.element, *program_numbers(row, result.parameters)) for row in result.rows]
    frame = result.to_pandas()
    assert [column[0] for column in seen.columns] == list(frame.columns) == names
    assert rows_of(frame) == rows
    assert seen.rows == rows


def rows_of(frame: pandas.DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a frame, with NULL as programs have it."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


def require_json(seen: Seen) -> None:
    """Assert that the command prints the result, but for how much is left after another question."""
    of_budget = ("charged", "remaining", "questions_left")
    printed, said = (
        {name: each for name, each in whole.items() if name not in of_budget}
        for whole in (seen.printed, json.loads(json.dumps(seen.result.to_dict())))
    )
    assert printed == said


def require_messages(result: PrivateResult) -> None:
    """Assert that a gateway's messages, and its history, make the same result again."""
    chunks, end = list(element_chunks(result)), result_message(result)
    assert result_of(chunks, app_pb2.Result.FromString(end.SerializeToString())) == result
    for elements in chunks:
        past = app_pb2.PastRelease(result=end, elements=elements)
        receipt = without_elements(past)
        assert (with_elements(receipt, None) == past) is not with_elements(receipt, None).elements_omitted


def require_same_by_own_services(stage: Stage, sql: str, result: PrivateResult) -> None:
    """Assert that a program with services of its own is given the same release, for the same price."""
    engine = DuckDBEngine(stage.tables)
    with blocking_client_of(stage, engine, account="acme/own") as client:
        own, price = client.sql(sql), client.explain(sql)
    engine.close()
    assert (own.rows, own.total) == (result.rows, result.total)
    assert (own.release_id, own.cost, own.statements) == (result.release_id, result.cost, result.statements)
    assert price.parameters.mechanism is result.mechanism


class Untouched(Counted):
    """DuckDB that also counts how often it is asked for the version of its data."""

    versions = 0

    def data_version(self, table: str) -> str:
        """Answer as DuckDB does."""
        self.versions += 1
        return super().data_version(table)


@pytest.mark.parametrize("kind", KINDS)
async def test_explain_in_sql_is_the_price_that_each_surface_shows(
    reader: Reader, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each form that engines know, before every kind of question: nothing is charged, read or listed as paid."""
    plain = KINDS[kind].sql
    explained = f"-- of a tool\n/* Pinot's */ {next(_WORDS)} {plain};"
    async with AsyncGatewayClient(Endpoint(reader.stage.gateway, reader.credentials)) as client:
        before = await client.remaining(), [each async for each in client.releases()]
        explanation = await client.explain(plain)
        result = await client.ask(sql_question(explained), request_id=f"explained {kind}", max_cost=0)
        assert (result.explanation, result.rows, result.charged.information) == (explanation, (), 0)
        assert await client.explain(explained) == explanation
        asked, price = [
            (await TOOLS[name].called(client, {"sql": sql})).structured_content or {}
            for name, sql in (("ask", explained), ("explain", plain))
        ]
        assert (asked["explanation"], asked["rows"]) == (price, [])
        for more in ([], ["--json"]):
            shown = await asyncio.to_thread(reader.run, "explain", "--sql", plain, *more)
            assert shown == await asyncio.to_thread(reader.run, "ask", "--sql", explained, *more)
        rows = list(explanation_rows(explanation))
        assert await asyncio.to_thread(reader.fetched, explained.replace("%", "%%")) == rows
        require_notebook(result, explanation)
        await require_page(reader, explained, plain)
        one_line = explained.splitlines()[1].removeprefix("/* Pinot's */ ")
        monkeypatch.setattr("sys.stdin", StringIO(f"{one_line}\n"))
        assert (await asyncio.to_thread(reader.run, "shell"))[1] == (
            await asyncio.to_thread(reader.run, "explain", "--sql", plain)
        )[1]
        assert before == (await client.remaining(), [each async for each in client.releases()])
    await asyncio.to_thread(require_untouched, reader.stage, explained, plain)


_WORDS = itertools.cycle(["EXPLAIN", "explain plan for", "Explain\tPlan /* */ For"])


def require_notebook(result: PrivateResult, explanation: Explanation) -> None:
    """Assert that a notebook shows the explanation instead of a table without rows."""
    assert result._repr_html_() == explanation._repr_html_()
    assert all(each.text in str(result) for each in leading(explanation))


async def require_page(reader: Reader, explained: str, plain: str) -> None:
    """Assert that the page shows the price, also where somebody asks."""
    pages = [
        await reader.page("price", explained),
        await reader.page("price", plain),
        await reader.page("ask", explained, 0),
    ]
    prices = {each.text.partition("The price At most")[2] for each in pages}
    assert len(prices) == 1
    assert "" not in prices


def require_untouched(stage: Stage, explained: str, plain: str) -> None:
    """Assert that a program with services of its own gets the same, and that its engine hears of nothing."""
    engine = Untouched(stage.tables)
    with blocking_client_of(stage, engine, account="acme/own") as client:
        before = client.remaining()
        for _ in range(2):
            assert client.sql(explained).explanation == client.explain(plain)
        assert (client.remaining(), engine.queries, engine.versions) == (before, [], 0)
    engine.close()


@pytest.mark.parametrize("kind", ["plain", "quantiles"])
async def test_columns_alone_are_free_through_a_gateway(reader: Reader, kind: str) -> None:
    """By LIMIT 0, under the names of the answer; a request id does not make them something that was paid for."""
    sql = f"{KINDS[kind].sql.partition(' ORDER')[0]} LIMIT 0"
    async with AsyncGatewayClient(Endpoint(reader.stage.gateway, reader.credentials)) as client:
        before = [each async for each in client.releases()]
        result = await client.ask(sql_question(sql), request_id="columns", max_cost=0)
        assert (result.columns[0].name, result.rows) == ("country", ())
        assert before == [each async for each in client.releases()]


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("EXPLAIN SELECT country, COUNT(*) FROM nowhere GROUP BY country", "line 1, column 39"),
        ("-- é\nEXPLAIN PLAN FOR SELECT * FROM plain", "line 2, column 25"),
        ("/* x */ EXPLAIN ANALYZE SELECT country, COUNT(*) FROM plain GROUP BY country", "line 1, column 17"),
    ],
)
async def test_what_is_wrong_under_explain_is_named_where_the_caller_wrote_it(
    reader: Reader, sql: str, place: str
) -> None:
    """On each surface, in the text as it was sent."""
    async with AsyncGatewayClient(Endpoint(reader.stage.gateway, reader.credentials)) as client:
        with pytest.raises(GrisError, match=place):
            await client.ask(sql_question(sql))
        said = [text_of(await TOOLS[name].called(client, {"sql": sql})) for name in ("ask", "explain")]
    code, printed = await asyncio.to_thread(reader.run, "ask", "--sql", sql)
    assert code in (2, 3)
    page = await reader.page("price", sql)
    with pytest.raises(dbapi.Error) as refused:
        await asyncio.to_thread(reader.fetched, sql)
    assert [] == [each for each in (*said, printed, page.text, str(refused.value)) if place not in each]
