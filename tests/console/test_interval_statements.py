"""What an interval is of is said on every surface alike: agents, console, command line, notebooks and DB-API.

Each release here is a real one, asked through a gateway, and each text is what its reader gets.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from gris_cli.app import run
from gris_mcp.tools import TOOLS
from pinot_connector.dbapi import Connection, connect_gateway
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.questions import sql_question
from pinot_connector.results import Explanation, PrivateResult
from tests.console.people import Visitors
from tests.console.stage import Stage, running_stage
from tests.support.agents import text_of
from tests.support.rings import needs
from tests.support.world import copy

COLUMNS = "{member_id: {type: int64}, country: {type: string, group_by: true, domain: [JP, TW]}}"
RESTRICTED = COLUMNS.replace("TW]}", "TW], delta: 1}")
UNKNOWN = "{user_id: {type: int64}, member_id: {type: int64, group_by: true}}"
BOUNDED = "{bound: in_query, delta_0: 1, units: 400}"
POLICY = f"""
epsilon_per: 0.5
delta: 1e-7
count_noise: gaussian
tables:
  plain:
    {{member: member_id, measures: {{distinct_members: true}}, columns: {COLUMNS}}}
  restricted:
    {{member: member_id, measures: {{distinct_members: true}}, columns: {RESTRICTED}}}
  unknown:
    {{member: user_id, measures: {{events: {{tau: 1, tau_is: assumed}}}}, columns: {UNKNOWN}}}
  clipped:
    {{member: member_id, measures: {{events: {{tau: 2, tau_is: clipped}}}}, columns: {COLUMNS}}}
  bounded:
    {{member: member_id, contributions: {BOUNDED}, measures: {{distinct_members: true}}, columns: {COLUMNS}}}
  clamped:
    member: member_id
    contributions: {{bound: in_query, delta_0: 1, units: 400, sums: {{max_members: 100000, max_rows: 1000000}}}}
    measures: {{distinct_members: true}}
    columns: {COLUMNS}
    values: {{amount: {{type: int64, quantum: 1, lower: 0, upper: 10, row_lower: 0, row_upper: 10}}}}
  quantiles:
    member: member_id
    contributions: {BOUNDED}
    measures: {{distinct_members: true}}
    columns: {COLUMNS}
    quantiles:
      amount:
        type: int64
        quantum: 1
        member_value: total
        max_rows: 1000000
        grid: {{scale: linear, from: 0, to: 100, cells: 20}}
"""
ROWS = """
SELECT range % 300 AS member_id, if(range % 2 = 0, 'JP', 'TW') AS country, range % 7 AS amount, range AS user_id
FROM range(1500)
"""
SQL = {
    "plain": "SELECT country, COUNT(DISTINCT member_id) FROM plain GROUP BY country ORDER BY 2 DESC LIMIT 2",
    "clipped": "SELECT country, COUNT(*) FROM clipped GROUP BY country ORDER BY 2 DESC LIMIT 2",
    "bounded": "SELECT country, COUNT(DISTINCT member_id) FROM bounded GROUP BY country",
    "clamped": "SELECT country, COUNT(DISTINCT member_id), SUM(amount), AVG(amount) FROM clamped GROUP BY country",
    "quantiles": "SELECT country, PERCENTILE(amount, 50) FROM quantiles GROUP BY country",
    "empty": "SELECT member_id, COUNT(*) FROM unknown GROUP BY member_id ORDER BY 2 DESC LIMIT 2",
    "cut": "SELECT country, COUNT(DISTINCT member_id) FROM restricted GROUP BY country ORDER BY 2 DESC LIMIT 1",
    "filtered": (
        "SELECT country, COUNT(DISTINCT member_id) FROM restricted GROUP BY country "
        "HAVING COUNT(DISTINCT member_id) > 9"
    ),
    "ranked": "SELECT country FROM plain GROUP BY country ORDER BY COUNT(DISTINCT member_id) DESC LIMIT 2",
}


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Services and a gateway on one table under seven policies."""
    folder = tmp_path_factory.mktemp("statements")
    copy(ROWS, folder / "rows.parquet")
    tables = ("plain", "restricted", "unknown", "clipped", "bounded", "clamped", "quantiles")
    with running_stage(folder, POLICY, dict.fromkeys(tables, folder / "rows.parquet")) as made:
        yield made


# "Nothing here shows a true count" stands on every page of the console, and is not about intervals.
UNBOUNDED = re.compile(r"\btruth\b|\btrue (?!count\.)|\bactual\b|\breal (?:count|number|sum)", re.IGNORECASE)


@dataclass(frozen=True)
class Reader:
    """Somebody who reads the same release on every surface."""

    stage: Stage
    visitors: Visitors
    credentials: Credentials

    async def read(self, sql: str) -> tuple[PrivateResult, Explanation, dict[str, str]]:
        """Return an answer, its price, and what each surface says of one question, which is paid for once."""
        address = Endpoint(self.stage.gateway, self.credentials)
        async with AsyncGatewayClient(address) as client:
            answer, price = [await TOOLS[name].called(client, {"sql": sql}) for name in ("ask", "explain")]
            result = await client.ask(sql_question(sql))
            explanation = await client.explain(sql_question(sql))
        # A client reads one of the two, so both have to say it.
        assert json.loads(text_of(answer)) == answer.structured_content
        person = await self.visitors.analyst("reader")
        shown_price = await person.priced(sql=sql)
        asked, explained = [await asyncio.to_thread(self._printed, name, sql) for name in ("ask", "explain")]
        texts = {
            "agent": text_of(answer),
            "agent's price": text_of(price),
            "console": (await person.send(shown_price.form("/answer"))).text,
            "console's price": shown_price.text,
            "gris ask": asked,
            "gris explain": explained,
            "notebook": str(result),
            "HTML": result._repr_html_(),
            "DB-API": await asyncio.to_thread(self._of_cursor, sql),
            "explain": " ".join(await asyncio.to_thread(self._of_cursor_explaining, sql)),
        }
        return (
            result,
            explanation,
            {surface: " ".join(html.unescape(text).split()) for surface, text in texts.items()},
        )

    def _printed(self, command: str, sql: str) -> str:
        files = ["--ca-file", str(self.credentials.ca_file), "--token-file", str(self.credentials.token_file)]
        with redirect_stdout(StringIO()) as out:
            assert run([*files, command, "--gateway", f"gris://{self.stage.gateway}", "--sql", sql]) == 0
        return " ".join(out.getvalue().split())

    def _of_cursor(self, sql: str) -> str:
        with closing(self._connected()) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            columns = [str(column[0]) for column in cursor.description or ()]
            return "\n".join([*columns, *(str(said) for _, said in cursor.messages)])

    def _of_cursor_explaining(self, sql: str) -> list[str]:
        with closing(self._connected()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"EXPLAIN PLAN FOR {sql}")
            return [str(text) for row in cursor.fetchall() for text in row]

    def _connected(self) -> Connection:
        return connect_gateway(f"gris://{self.stage.gateway}", credentials=self.credentials)


@pytest.fixture
async def reader(stage: Stage, visitors: Visitors, tmp_path: Path) -> Reader:
    """Somebody whose token opens every surface."""
    token = tmp_path / "token"
    token.write_text(stage.token("reader"))
    return Reader(stage, visitors, Credentials(ca_file=stage.authority.ca_file, token_file=token))


# What each kind of bound has to say at least; the surfaces have whatever is said.
CODES = {
    "plain": {"intervals.plain"},
    "clipped": {"counts.clipped"},
    "bounded": {"counts.bounded", "intervals.bounded"},
    "clamped": {"counts.bounded", "sums.of", "sums.clamped", "sums.averages"},
    "quantiles": {"quantiles.of", "quantiles.cells", "quantiles.bounded", "quantiles.rank"},
    "empty": {"list.ended", "order.apart", "intervals.plain"},
    "cut": {"intervals.given_shown"},
    "filtered": {"intervals.simultaneous", "list.filtered"},
    "ranked": {"intervals.none"},
}
PRICES = ("agent's price", "console's price", "gris explain", "explain")
# Agents and cursors leave out how numbers are made: the price says it.
WITHOUT_METHOD = ("agent", "DB-API")


@pytest.mark.parametrize("kind", SQL)
async def test_every_surface_says_the_same_and_none_says_that_it_is_the_truth(
    reader: Reader, kind: str
) -> None:
    """All statements of an answer and of its price stand on each surface, and no other sentence about them."""
    result, explanation, texts = await reader.read(SQL[kind])
    assert {each.code for each in result.statements} >= CODES[kind]
    missing = [
        (surface, each.code)
        for surface, text in texts.items()
        for each in (explanation if surface in PRICES else result).statements
        if not (surface in WITHOUT_METHOD and each.is_method) and each.text not in text
    ]
    assert missing == []
    assert [
        (surface, found[0]) for surface, text in texts.items() for found in UNBOUNDED.finditer(text)
    ] == []


def test_every_kind_says_something() -> None:
    """A kind that is added has to say what it counts."""
    assert set(CODES) == set(SQL)
