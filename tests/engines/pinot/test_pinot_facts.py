"""What a real Pinot does without a word, and what the connector's queries do about it."""

from typing import Any

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.pinot.configuration import EXACT
from tests.engines.pinot.facts import Facts
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import count_members
from tests.engines.pinot.trimmed_table import TrimmedTable

TOP_TEN = (
    "SELECT article_id, COUNT(*) FROM nasty GROUP BY article_id ORDER BY COUNT(*) DESC, article_id LIMIT 10"
)


def ask(cluster: PinotCluster, sql: str) -> dict[str, Any]:
    """Return the broker's answer to a query, as it is."""
    answer = HTTP.post(f"{cluster.broker_url}/query/sql", json={"sql": sql}, timeout=30)
    content: dict[str, Any] = answer.json()
    return content


def rows(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of an answer."""
    return [tuple(row) for row in answer["resultTable"]["rows"]]


def is_unflagged(answer: dict[str, Any]) -> bool:
    """Tell whether the answer looks perfect."""
    flags = ("numGroupsLimitReached", "partialResult", "groupsTrimmed")
    is_complete = answer["numServersQueried"] == answer["numServersResponded"] == 2
    return is_complete and not answer["exceptions"] and not any(answer.get(flag) for flag in flags)


def test_plain_sql_gives_a_wrong_top_ten_without_a_flag(
    pinot_cluster: PinotCluster, trimmed_table: TrimmedTable
) -> None:
    """Each server keeps 5,000 groups, so every count is wrong and no true leader is named."""
    answer = ask(pinot_cluster, TOP_TEN)
    leaders = {article for article, _ in trimmed_table.top(50)}
    assert is_unflagged(answer)
    assert not any(article in leaders for article, _ in rows(answer))
    assert all(count != trimmed_table.truth[article] for article, count in rows(answer))


def test_the_exact_prefix_gives_the_true_top_ten(
    pinot_cluster: PinotCluster, trimmed_table: TrimmedTable
) -> None:
    """With trimming off, the same query is right."""
    answer = ask(pinot_cluster, EXACT + TOP_TEN)
    assert is_unflagged(answer)
    assert rows(answer) == trimmed_table.top(10)


def test_a_misspelt_option_is_ignored(pinot_cluster: PinotCluster, trimmed_table: TrimmedTable) -> None:
    """Pinot does not say that it does not know an option, so the wrong answer is back."""
    answer = ask(pinot_cluster, EXACT.replace("minServerGroupTrimSize", "minServerGroupsTrimSize") + TOP_TEN)
    assert is_unflagged(answer)
    assert rows(answer) != trimmed_table.top(10)


def test_an_old_pinot_without_a_match_calls_every_column_a_string(
    loaded_pinot: PinotCluster, facts: Facts
) -> None:
    """There the types of an answer without rows say nothing, so they cannot be demanded of any version."""
    answer = ask(loaded_pinot, "SELECT day, COUNT(*) FROM cofacts_feedback WHERE day > 100000 GROUP BY day")
    assert rows(answer) == []
    kind = "INT" if facts.empty_answers_have_types else "STRING"
    assert kind == answer["resultTable"]["dataSchema"]["columnDataTypes"][0]


def test_a_table_that_is_not_there_is_told_by_version(pinot_cluster: PinotCluster, facts: Facts) -> None:
    """An old controller says that it has nothing of it, a newer one that there is none."""
    found = HTTP.get(f"{pinot_cluster.controller_url}/tables/nowhere", timeout=30)
    assert (404 if facts.missing_tables_are_not_found else 200) == found.status_code


def test_only_a_broker_with_a_response_limit_overrides(pinot_cluster: PinotCluster, facts: Facts) -> None:
    """What a newer controller sets for every cluster by itself says nothing against a cluster."""
    settings = HTTP.get(f"{pinot_cluster.controller_url}/cluster/configs", timeout=30).json()
    override = settings.get("pinot.broker.enable.query.limit.override")
    assert override == str(facts.override_is_on).lower()


def test_count_distinct_is_exact(loaded_pinot: PinotCluster) -> None:
    """The head of the ranking is that of the published data, across four segments and two servers."""
    query = count_members("cofacts_feedback", ("article_id", ColumnType.STRING), limit=5)
    assert [count for _, count in rows(ask(loaded_pinot, query.sql))] == [1127, 970, 802, 787, 742]
