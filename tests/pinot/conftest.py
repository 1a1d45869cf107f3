"""One Apache Pinot with two servers for all tests here, with real data and with a table made to be nasty."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from deploy.pinot.cluster import PinotCluster, Ports
from examples.load import TABLES, load

# Each server sees 5,975 groups of four rows before the fifty that lead on both servers together with three rows
# each; a server that keeps only 5,000 groups therefore never tells the broker about the leaders.
LEADERS = 50
LOPSIDED = 5_975
NASTY_ROWS = f"""
    SELECT article_id, format('m{{}}', row_number() OVER (ORDER BY place, server)) AS member_id
    FROM (
        SELECT *, row_number() OVER (PARTITION BY server ORDER BY article_id) AS place
        FROM (
            SELECT format('leader-{{:02d}}', number) AS article_id, server
            FROM range({LEADERS}) AS leaders(number), range(2) AS servers(server), range(3)
            UNION ALL
            SELECT format('lopsided-{{}}-{{:04d}}', heavy, number), server
            FROM range({LOPSIDED}) AS others(number), range(2) AS halves(heavy), range(2) AS servers(server),
                 range(4) AS copies(copy)
            WHERE copy = 0 OR server = heavy
        )
    )
    ORDER BY place, server
"""


@dataclass(frozen=True)
class NastyTable:
    """A table whose plain top-k is wrong, and its truth: every article's number of members."""

    name: str
    truth: dict[str, int]

    def top(self, k: int) -> list[tuple[str, int]]:
        """Return the true top k, ties by name."""
        return sorted(self.truth.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


@pytest.fixture(scope="session")
def pinot_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PinotCluster]:
    """A running Apache Pinot with two servers, on ports that nothing else uses."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("a real Pinot needs Java 17 and Maven (Debian: openjdk-17-jre-headless and maven)")
    with PinotCluster(directory=tmp_path_factory.mktemp("pinot"), ports=Ports.free(servers=2)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def loaded_pinot(pinot_cluster: PinotCluster) -> PinotCluster:
    """The cluster, with the table `cofacts` in four segments on two servers."""
    load(
        TABLES["cofacts"], "cofacts", controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url
    )
    return pinot_cluster


@pytest.fixture(scope="session")
def nasty_table(pinot_cluster: PinotCluster, tmp_path_factory: pytest.TempPathFactory) -> NastyTable:
    """A table on which each server, left to itself, trims away the true leaders."""
    return create_nasty_table(pinot_cluster, tmp_path_factory.mktemp("nasty"))


def create_nasty_table(cluster: PinotCluster, folder: Path) -> NastyTable:
    """Load the nasty table: 12,000 articles in two segments, one on each server."""
    parquet = folder / "nasty.parquet"
    with duckdb.connect() as connection:
        connection.sql(NASTY_ROWS).write_parquet(str(parquet))
        counts = connection.execute(
            "SELECT article_id, count(*) FROM read_parquet(?) GROUP BY 1", [str(parquet)]
        )
        truth = dict(counts.fetchall())
    # Rows alternate between the servers, and so do the two segments that rows are dealt to.
    load(parquet, "nasty", controller=cluster.controller_url, broker=cluster.broker_url, segments=2)
    return NastyTable("nasty", truth)
