"""Plain SQL on two servers of Apache Pinot is silently wrong: true, plain and private counts side by side.

    python -m examples.two_servers        # some minutes

Starts a Pinot with two servers, loads a table of more than 5,000 articles whose true leaders no server sees among its
own 5,000 most read, and asks for the top 10 three times: of the file, of Pinot in plain SQL, and through Gris.
Needs Java 17 and, the first time, Maven.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pinotdb
from rich.console import Console
from rich.table import Table

from deploy.pinot.cluster import ClusterError, PinotCluster, Ports
from examples.load import load
from pinot_connector import PrivateClient
from pinot_connector.coverage import written
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.results import PrivateResult, Row

TABLE = "lopsided"
K = 10
SEGMENTS = 4
LEADERS = 50
PLAIN_SQL = (
    f"SELECT article_id, COUNT(DISTINCT member_id) FROM {TABLE} GROUP BY article_id "  # noqa: S608 - our own table
    f"ORDER BY COUNT(DISTINCT member_id) DESC, article_id LIMIT {K}"
)
POLICY = """
epsilon_per: {epsilon_per}
delta: 1e-11
tables:
  lopsided:
    member: member_id
    measures: {{distinct_members: true}}
    columns:
      article_id: {{type: string, group_by: true}}
"""
BUDGET = """
accounts:
  - path: [demo]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [demo, "*"]
    limit: {information: 3000, calls: 300}
"""


@dataclass(frozen=True)
class Shares:
    """How many members read what on each server: a leader on both alike, any other article on one much more.

    Leaders lead in truth if `leader` > (`heavy` + `light`) / 2, and on no server if `heavy` > `leader`.
    """

    leader: int
    heavy: int
    light: int
    others: int


# Far enough ahead to be shown under the default epsilon and delta: about 154 + 10 / 0.15 members.
LARGE = Shares(leader=270, heavy=271, light=35, others=5050)


@dataclass(frozen=True)
class Comparison:
    """The top 10 of a table in truth, in plain SQL and private; each article's true count is in `truth`."""

    truth: dict[str, int]
    plain: list[tuple[str, int]]
    private: PrivateResult

    @property
    def leaders(self) -> list[tuple[str, int]]:
        """The true top 10, ties by name."""
        return sorted(self.truth.items(), key=lambda pair: (-pair[1], pair[0]))[:K]


def write_lopsided(shares: Shares, parquet: Path) -> None:
    """Write a table whose rows alternate between two servers; every member has one row."""
    rows = f"""
        SELECT article_id, format('m{{}}', row_number() OVER (ORDER BY position, server)) AS member_id
        FROM (
            SELECT *, row_number() OVER (PARTITION BY server ORDER BY article_id) AS position
            FROM (
                SELECT format('leader-{{:02d}}', number) AS article_id, server
                FROM range({LEADERS}) AS leaders(number), range(2) AS servers(server), range({shares.leader})
                UNION ALL
                SELECT format('lopsided-{{}}-{{:04d}}', preferred, number), server
                FROM range({shares.others}) AS others(number), range(2) AS halves(preferred),
                     range(2) AS servers(server), range({shares.heavy}) AS copies(copy)
                WHERE copy < {shares.light} OR server = preferred
            )
        )
        ORDER BY position, server
    """  # noqa: S608 - numbers of our own
    with duckdb.connect() as connection:
        connection.sql(rows).write_parquet(str(parquet))


def true_counts(parquet: Path) -> dict[str, int]:
    """Return each article's number of members."""
    with duckdb.connect() as connection:
        counts = "SELECT article_id, count(DISTINCT member_id) FROM read_parquet(?) GROUP BY 1"
        return dict(connection.execute(counts, [str(parquet)]).fetchall())


def compare(cluster: PinotCluster, parquet: Path, folder: Path, *, epsilon_per: str = "0.15") -> Comparison:
    """Load a table and ask for its top 10 in three ways; services keep their files in `folder`."""
    load(parquet, TABLE, controller=cluster.controller_url, broker=cluster.broker_url, segments=SEGMENTS)
    private = _private_top(cluster, folder, epsilon_per)
    return Comparison(true_counts(parquet), _plain_top(cluster), private)


def _plain_top(cluster: PinotCluster) -> list[tuple[str, int]]:
    address = pinotdb.connect(host="localhost", port=cluster.broker_port, path="/query/sql", scheme="http")
    with closing(address) as connection:
        # pinotdb raises if Pinot reports an error, or if a server did not answer.
        return [(article, count) for article, count in connection.cursor().execute(PLAIN_SQL).fetchall()]


def _private_top(cluster: PinotCluster, folder: Path, epsilon_per: str) -> PrivateResult:
    policy, budget = folder / "policy.yaml", folder / "budget.yaml"
    policy.write_text(POLICY.format(epsilon_per=epsilon_per))
    budget.write_text(BUDGET)
    engine = PinotEngine(controller=cluster.controller_url, broker=cluster.broker_url)
    try:
        with (
            EmbeddedServices(policy=policy, budget_config=budget, directory=folder) as services,
            PrivateClient(
                dp=services.dp_address, budget=services.budget_address, account="demo/analyst", engine=engine
            ) as client,
        ):
            return client.top_k(TABLE, "article_id", K)
    finally:
        engine.close()


def table_of(comparison: Comparison) -> Table:
    """Return the three lists side by side, each article with its true count where a list says another."""
    table = Table(title="The ten most read articles, by members")
    for name in ("", "in truth", "plain SQL on Pinot", "(true)", "private, through Gris", "(true)"):
        table.add_column(name)
    for position in range(K):
        article, count = comparison.leaders[position]
        plain_article, plain_count = comparison.plain[position]
        table.add_row(
            str(position + 1),
            f"{article}  {count}",
            f"{plain_article}  {plain_count}",
            str(comparison.truth[plain_article]),
            *_private_cells(comparison, position),
        )
    return table


def _private_cells(comparison: Comparison, position: int) -> tuple[str, str]:
    rows = comparison.private.rows
    if position >= len(rows):
        return "", ""
    row: Row = rows[position]
    article = str(row.element[0])
    shown = () if row.noisy_count is None or row.interval is None else written(row.noisy_count, row.interval)
    return f"{article}  {'  '.join(shown)}", str(comparison.truth[article])


def main() -> int:
    """Start, load, ask, print, stop."""
    console = Console()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            print(
                "starting an Apache Pinot; the first time, its jars are fetched (about 200 MB)",
                file=sys.stderr,
            )
            with PinotCluster(2, directory=folder / "pinot", ports=Ports.free(2)) as cluster:
                parquet = folder / "lopsided.parquet"
                write_lopsided(LARGE, parquet)
                print("loading 3 million rows", file=sys.stderr)
                comparison = compare(cluster, parquet, folder)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 5
    wrong = sum(comparison.truth[article] != count for article, count in comparison.plain)
    console.print(table_of(comparison))
    console.print(f"Plain SQL: {wrong} of {K} counts are wrong, and Pinot reported no error.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
