"""A real broker that starts again with a setting that lowers limits."""

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineRefused
from tests.engines.pinot.loading import plain_answer
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.trimmed_table import TrimmedTable
from tests.engines.pinot.waiting import wait_until


def test_a_real_broker_is_refused_only_while_it_lowers_limits(
    pinot_cluster: PinotCluster, trimmed_table: TrimmedTable, engine: PinotEngine
) -> None:
    """With both settings Pinot gives 500 rows of 1,001 and no sign of it; the override alone does nothing."""
    query = count_members("nasty", ("article_id", ColumnType.STRING), limit=1001)
    small = count_members("nasty", ("article_id", ColumnType.STRING), limit=500)
    configs = f"{pinot_cluster.controller_url}/cluster/configs"
    override, most = "pinot.broker.enable.query.limit.override", "pinot.broker.query.response.limit"
    before = HTTP.get(configs, timeout=30).json().get(override, "false")

    def rows_and_outcome(settings: dict[str, str]) -> tuple[int, int | str]:
        HTTP.post(configs, json=settings, timeout=30).raise_for_status()
        pinot_cluster.stop_broker()
        pinot_cluster.start_broker()
        wait_until(lambda: plain_answer(pinot_cluster, query.sql).get("numSegmentsQueried") == 2)
        new = PinotEngine(controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url)
        try:
            assert 500 == len(confirmed(new, small).counts)
            outcome: int | str = len(confirmed(new, query).counts)
        except EngineRefused as error:
            outcome = str(error)
        finally:
            new.close()
        return len(plain_answer(pinot_cluster, query.sql)["resultTable"]["rows"]), outcome

    try:
        assert (1001, 1001) == rows_and_outcome({override: "true"})
        rows, outcome = rows_and_outcome({most: "500"})
        assert (500, True) == (rows, most in str(outcome))
    finally:
        HTTP.delete(f"{configs}/{most}", timeout=30).raise_for_status()
        assert (1001, 1001) == rows_and_outcome({override: before})
