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
from tests.console.people import Visitors
from tests.console.stage import Stage, running_stage
from tests.support.agents import text_of
from tests.support.rings import needs
from tests.support.world import copy

COLUMNS = "{member_id: {type: int64}, country: {type: string, group_by: true, domain: [JP, TW]}}"
BOUNDED = "{bound: in_query, delta_0: 1, units: 400}"
POLICY = f"""
epsilon_per: 0.5
delta: 1e-7
count_noise: gaussian
tables:
  plain:
    {{member: member_id, measures: {{distinct_members: true}}, columns: {COLUMNS}}}
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
ROWS = "SELECT range % 300 AS member_id, if(range % 2 = 0, 'JP', 'TW') AS country, range % 7 AS amount FROM range(1500)"
SQL = {
    "plain": "SELECT country, COUNT(DISTINCT member_id) FROM plain GROUP BY country ORDER BY 2 DESC LIMIT 2",
    "clipped": "SELECT country, COUNT(*) FROM clipped GROUP BY country ORDER BY 2 DESC LIMIT 2",
    "bounded": "SELECT country, COUNT(DISTINCT member_id) FROM bounded GROUP BY country",
    "clamped": "SELECT country, COUNT(DISTINCT member_id), SUM(amount), AVG(amount) FROM clamped GROUP BY country",
    "quantiles": "SELECT country, PERCENTILE(amount, 50) FROM quantiles GROUP BY country",
}


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Services and a gateway on one table under five policies."""
    folder = tmp_path_factory.mktemp("statements")
    copy(ROWS, folder / "rows.parquet")
    with running_stage(folder, POLICY, dict.fromkeys(SQL, folder / "rows.parquet")) as made:
        yield made


# What is said of numbers, and so of their intervals; a surface that leaves one out lets people take it for another.
BEFORE_NOISE = "the number before noise with 95 %"
ROWS_LEFT_OUT = (
    "counts and intervals are of at most 2 rows of a member in each element, and leave out the others"
)
IN_ELEMENTS = "of bounded contributions: a member counts in at most 1 element"
BETWEEN_BOUNDS = (
    "sums, averages and their intervals are of members' totals in an element, each brought between the bounds"
)
A_CELL = "each is a cell of a public grid, which is no confidence interval"
OF_AGENTS = "the number of an element before noise lies between lower and upper"
STATED = {
    "plain": {
        "agent": (OF_AGENTS,),
        "console": (BEFORE_NOISE,),
        "gris ask": (BEFORE_NOISE,),
        # Nothing is left out that a reader has to know of.
        "notebook": ("95 % interval",),
        "HTML": ("95 % interval",),
        "DB-API": ("count_lower", "count_upper"),
        "explain": ("Counts by country", "each by at most 1"),
    },
    "clipped": {
        "agent": (OF_AGENTS, ROWS_LEFT_OUT),
        "console": (BEFORE_NOISE, ROWS_LEFT_OUT),
        "gris ask": (BEFORE_NOISE, ROWS_LEFT_OUT),
        "notebook": (ROWS_LEFT_OUT,),
        "HTML": (ROWS_LEFT_OUT,),
        "DB-API": (ROWS_LEFT_OUT,),
        "explain": (
            "At most 2 rows of a member count in each element; counts and intervals are without the others",
        ),
    },
    "bounded": {
        "agent": (OF_AGENTS, IN_ELEMENTS),
        "console": (BEFORE_NOISE, IN_ELEMENTS),
        "gris ask": (BEFORE_NOISE, IN_ELEMENTS, "so are the intervals"),
        "notebook": (IN_ELEMENTS,),
        "HTML": (IN_ELEMENTS,),
        "DB-API": (IN_ELEMENTS,),
        "explain": (IN_ELEMENTS, "Intervals are of the bounded counts"),
    },
    "clamped": {
        "agent": (OF_AGENTS, IN_ELEMENTS, BETWEEN_BOUNDS),
        "console": (BEFORE_NOISE, IN_ELEMENTS, BETWEEN_BOUNDS),
        "gris ask": (
            BEFORE_NOISE,
            IN_ELEMENTS,
            "they are of members' totals, and so are the intervals",
            "amount between 0 and 10",
        ),
        "notebook": (IN_ELEMENTS, BETWEEN_BOUNDS),
        "HTML": (IN_ELEMENTS, BETWEEN_BOUNDS),
        "DB-API": (IN_ELEMENTS, BETWEEN_BOUNDS),
        "explain": (IN_ELEMENTS, "A member's total of amount counts with 0 to 10"),
    },
    "quantiles": {
        "agent": ("Quantiles have no intervals", IN_ELEMENTS, A_CELL),
        "console": ("there are no intervals", IN_ELEMENTS, A_CELL),
        "gris ask": (IN_ELEMENTS, "shown are the middle and the ends of the cell that was chosen"),
        "notebook": (IN_ELEMENTS, A_CELL),
        "HTML": (IN_ELEMENTS, A_CELL),
        "DB-API": (IN_ELEMENTS, A_CELL, "amount_p50_cell_from"),
        "explain": (
            "A member has values in at most 1 element",
            "A result is a cell, and no value of the data",
        ),
    },
}
# "Nothing here shows a true count" stands on every page of the console, and is not about intervals.
UNBOUNDED = re.compile(r"\btruth\b|\btrue (?!count\.)|\bactual\b|\breal (?:count|number|sum)", re.IGNORECASE)


@dataclass(frozen=True)
class Reader:
    """Somebody who reads the same release on every surface."""

    stage: Stage
    visitors: Visitors
    credentials: Credentials

    async def texts(self, sql: str) -> dict[str, str]:
        """Return what each surface says of one question, which is paid for once."""
        address = Endpoint(self.stage.gateway, self.credentials)
        async with AsyncGatewayClient(address) as client:
            answer, price = [await TOOLS[name].called(client, {"sql": sql}) for name in ("ask", "explain")]
            result = await client.ask(sql_question(sql))
        # A client reads one of the two, so both have to say it.
        assert json.loads(text_of(answer)) == answer.structured_content
        person = await self.visitors.analyst("reader")
        shown_price = await person.priced(sql=sql)
        asked, explained = [await asyncio.to_thread(self._printed, name, sql) for name in ("ask", "explain")]
        return {
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


@pytest.mark.parametrize("kind", STATED)
async def test_every_surface_says_what_is_counted_and_none_says_that_it_is_the_truth(
    reader: Reader, kind: str
) -> None:
    """Agents, console, command line, notebook and DB-API, of one release that each kind of bound applies to."""
    texts = await reader.texts(SQL[kind])
    missing = [
        (surface, stated)
        for surface, statements in STATED[kind].items()
        for stated in statements
        if stated.lower() not in html.unescape(texts[surface]).lower()
    ]
    assert missing == []
    assert [
        (surface, found[0]) for surface, text in texts.items() for found in UNBOUNDED.finditer(text)
    ] == []
    if kind != "plain":
        # What is said before somebody pays is said wherever the price is.
        assert all(
            statement.lower() in texts[surface].lower()
            for statement in STATED[kind]["explain"]
            for surface in ("agent's price", "console's price")
        )


def test_the_table_has_every_kind_on_every_surface() -> None:
    """A kind that is added has to say on each of them what it counts."""
    assert set(STATED) == set(SQL)
    assert len({frozenset(each) for each in STATED.values()}) == 1
