"""A table whose top-k every Pinot server trims away unless the query forbids it."""

from dataclasses import dataclass
from pathlib import Path

from deploy.pinot.cluster import PinotCluster
from examples.load import load
from examples.two_servers import Shares, true_counts, write_lopsided

# Each server sees 5,975 groups of four rows before the fifty that lead on both servers together with three rows
# each; a server that keeps only 5,000 groups therefore never tells the broker about the leaders.
_SHARES = Shares(leader=3, heavy=4, light=1, others=5975)


@dataclass(frozen=True)
class TrimmedTable:
    """A table, the file it was made of, and its truth: every article's number of members, who have one row each."""

    name: str
    parquet: Path
    truth: dict[str, int]

    def top(self, k: int) -> list[tuple[str, int]]:
        """Return the true top k, ties by name."""
        return sorted(self.truth.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


def create_trimmed_table(cluster: PinotCluster, folder: Path) -> TrimmedTable:
    """Load 12,000 articles in two segments, one on each of two servers."""
    parquet = folder / "nasty.parquet"
    write_lopsided(_SHARES, parquet)
    # Rows alternate between the servers, and so do the two segments that rows are dealt to.
    load(parquet, "nasty", controller=cluster.controller_url, broker=cluster.broker_url, segments=2)
    return TrimmedTable("nasty", parquet, true_counts(parquet))
