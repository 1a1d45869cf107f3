"""The demonstration that `python -m examples.two_servers` shows, on a smaller table."""

from pathlib import Path

from rich.console import Console

from deploy.pinot.cluster import PinotCluster
from examples.two_servers import Shares, compare, table_of, write_lopsided
from tests.support.some import some

SMALL = Shares(leader=9, heavy=10, light=2, others=5050)


def test_plain_sql_is_wrong_without_a_word_and_the_private_answer_names_the_leaders(
    pinot_cluster: PinotCluster, tmp_path: Path
) -> None:
    """With little noise the private top 10 is of true leaders only, and the plain one is of none, with wrong counts.

    Noise of 3 or more, or another article than a leader, comes about less often than once in 10^10 runs.
    """
    parquet = tmp_path / "lopsided.parquet"
    write_lopsided(SMALL, parquet)
    comparison = compare(pinot_cluster, parquet, tmp_path, epsilon_per="10")
    leaders = {article for article, count in comparison.truth.items() if count == 18}
    assert len(leaders) == 50
    assert all(count == 18 for _, count in some(comparison.leaders))
    assert not leaders & {article for article, _ in comparison.plain}
    assert all(count < comparison.truth[article] for article, count in comparison.plain)
    shown = [(row.element[0], row.noisy_count) for row in comparison.private.rows]
    assert len(shown) == 10
    assert all(article in leaders and count is not None and abs(count - 18) < 3 for article, count in shown)
    console = Console(record=True, width=140)
    console.print(table_of(comparison))
    assert str(shown[0][0]) in console.export_text()
