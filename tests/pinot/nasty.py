"""A table whose top-k every Pinot server trims away unless it is told not to."""

from dataclasses import dataclass
from pathlib import Path

import duckdb

from deploy.pinot.cluster import PinotCluster
from examples.load import load

# Each server sees 5,975 groups of four rows before the fifty that lead on both servers together with three rows
# each; a server that keeps only 5,000 groups therefore never tells the broker about the leaders.
_ROWS = """
    SELECT article_id, format('m{}', row_number() OVER (ORDER BY place, server)) AS member_id
    FROM (
        SELECT *, row_number() OVER (PARTITION BY server ORDER BY article_id) AS place
        FROM (
            SELECT format('leader-{:02d}', number) AS article_id, server
            FROM range(50) AS leaders(number), range(2) AS servers(server), range(3)
            UNION ALL
            SELECT format('lopsided-{}-{:04d}', heavy, number), server
            FROM range(5975) AS others(number), range(2) AS halves(heavy), range(2) AS servers(server),
                 range(4) AS copies(copy)
            WHERE copy = 0 OR server = heavy
        )
    )
    ORDER BY place, server
"""


@dataclass(frozen=True)
class NastyTable:
    """A table, the file it was made of, and its truth: every article's number of members, who have one row each."""

    name: str
    parquet: Path
    truth: dict[str, int]

    def top(self, k: int) -> list[tuple[str, int]]:
        """Return the true top k, ties by name."""
        return sorted(self.truth.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


def create_nasty_table(cluster: PinotCluster, folder: Path) -> NastyTable:
    """Load 12,000 articles in two segments, one on each of two servers."""
    parquet = folder / "nasty.parquet"
    with duckdb.connect() as connection:
        connection.sql(_ROWS).write_parquet(str(parquet))
        counts = connection.execute(
            "SELECT article_id, count(*) FROM read_parquet(?) GROUP BY 1", [str(parquet)]
        )
        truth = dict(counts.fetchall())
    # Rows alternate between the servers, and so do the two segments that rows are dealt to.
    load(parquet, "nasty", controller=cluster.controller_url, broker=cluster.broker_url, segments=2)
    return NastyTable("nasty", parquet, truth)
