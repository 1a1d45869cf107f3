"""Services and a gateway with a port for clients of PostgreSQL and one for clients of Pinot, and who calls them."""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from pinot_connector import Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Level, level_of
from tests.support.embedded import embedded
from tests.support.pki import ISSUER, Issuer
from tests.support.processes import process
from tests.support.world import copy

AUDIENCE = "gris-gateway"
ELEMENT = "Datenmarke"
"""Begins the name of every element of the data."""

REFUSED, ONCE, EXACT, GOOD = "refused", "once", "exact", "good"
"""Who asks: what is never a question; one question among what is none; mutated questions; what has to be answered."""

QUESTION = "SELECT country, COUNT(DISTINCT member_id) AS people FROM engagement GROUP BY country LIMIT 2"
_POLICY = """
epsilon_per: 0.5
delta: 1e-10
tables:
  engagement:
    member: member_id
    time: {column: day, type: date}
    measures: {distinct_members: true, events: {tau: 3, tau_is: assumed}}
    columns:
      member_id: {type: int64}
      article_id: {type: string, group_by: true, filter: [in, not_in], delta: 1}
      country: {type: string, group_by: true, filter: [in, not_in], domain: [DE, FR], delta: 1}
      score: {type: int64, group_by: true, filter: [in, not_in, range], domain: [-1, 0, 1], delta: 1}
      day: {type: date, group_by: true, filter: [in, not_in, range]}
"""
_BUDGET = """
accounts:
  - path: [wires]
    limit: {information: 1000000000, calls: 100000000}
  - path: [wires, "*"]
    limit: {information: 100000000, calls: 10000000}
"""
_GATEWAY = """
listen: 127.0.0.1:0
dp: {{address: "{dp}"}}
budget: {{address: "{budget}"}}
engine: {{duckdb: {{engagement: {table}}}}}
identity:
  jwt:
    key_file: {issuer}
    algorithms: [ES256]
    issuer: {iss}
    audience: {audience}
    accounts: [{{claim: iss, equals: {iss}, prefix: [wires], append: sub}}]
broker: {{listen: 127.0.0.1:0, tls: false}}
postgres: {{listen: 127.0.0.1:0, tls: false}}
limits: {{per_second: 10000, burst: 10000, concurrent: 64, waiting: 1000}}
timeouts: {{budget_silence: 10, budget_attempt: 6, caller: 5, handshake: 2}}
"""


@dataclass(frozen=True)
class Stage:
    """What runs."""

    broker: str
    postgres: str
    budget: str
    pid: int
    tokens: dict[str, str]
    log: Path

    async def level(self, name: str) -> Level:
        """Return what the ledger says of who asks."""
        ledger = BudgetServiceClient(self.budget, ("wires", name), Timeouts(budget_silence=10))
        try:
            return level_of((await ledger.levels())[-1])
        finally:
            await ledger.close()

    def answers(self) -> tuple[object, object]:
        """Return the answers to a good client of each port, as it gets them."""
        token, (host, _, port) = self.tokens[GOOD], self.postgres.rpartition(":")
        with psycopg.connect(
            host=host, port=port, user="-", password=token, dbname="gris", autocommit=True, connect_timeout=20
        ) as connection:
            rows = connection.execute(QUESTION.encode()).fetchall()
        response = httpx.post(
            f"http://{self.broker}/query/sql",
            json={"sql": QUESTION},
            headers={"Authorization": f"Bearer {token}"},
            timeout=20,
        )
        return [list(row) for row in rows], response.json()["resultTable"]["rows"]

    def memory(self, field: str = "VmRSS") -> int:
        """Return the gateway's resident memory in bytes; 0: it has ended. `VmHWM`: the most that it ever was."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        kilobytes = (line.split()[1] for line in lines if line.startswith(f"{field}:"))
        return int(next(kilobytes, "0")) * 1024


@contextmanager
def running_stage(folder: Path) -> Iterator[Stage]:
    """Run services and gateway."""
    copy(
        f"SELECT range AS member_id, '{ELEMENT}-' || range % 7 AS article_id, ['DE', 'FR'][1 + range % 2] AS country, "
        "range % 3 - 1 AS score, DATE '2019-01-01' + (range % 90)::INTEGER AS day FROM range(3000)",
        folder / "engagement.parquet",
    )
    issuer = Issuer(folder)
    with embedded(folder, _POLICY, _BUDGET) as services:
        config = _GATEWAY.format(
            dp=services.dp_address,
            budget=services.budget_address,
            table=folder / "engagement.parquet",
            issuer=issuer.key_file,
            iss=ISSUER,
            audience=AUDIENCE,
        )
        (folder / "gateway.yaml").write_text(config)
        tokens = {
            name: issuer.token(AUDIENCE, sub=name, exp=int(time.time()) + 86_400)
            for name in (REFUSED, ONCE, EXACT, GOOD)
        }
        log = folder / "gateway.log"
        with process("gris_gateway", ["--config", folder / "gateway.yaml"], log) as ready:
            yield Stage(
                ready["broker_address"],
                ready["postgres_address"],
                services.budget_address,
                int(ready["pid"]),
                tokens,
                log,
            )
