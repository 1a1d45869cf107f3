"""A broker that stands still while others exchange segments by new ones with as many rows."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from deploy.pinot.cluster import PinotCluster
from pinot_connector.engines.base import ColumnType
from pinot_connector.engines.pinot import PinotEngine
from tests.engines.pinot.loading import create_table, upload, wait_for_rows
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import count_members, outcome
from tests.engines.pinot.waiting import wait_until


@contextmanager
def stopped_broker(cluster: PinotCluster) -> Iterator[None]:
    """Stop the broker as a long collection of garbage does."""
    broker = cluster._processes["broker"]
    broker.send(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.send(signal.SIGCONT)


def test_old_rows_of_a_late_broker_are_never_answered_under_a_new_version(
    pinot_cluster: PinotCluster, engine: PinotEngine
) -> None:
    """The version is exchanged by segment lineage while the broker stands still, longer than it is waited for."""
    table = "late_broker"

    def rows(country: str) -> list[dict[str, object]]:
        return [{"member_id": f"m{i}", "country": country, "day": 17000} for i in range(10)]

    create_table(pinot_cluster, table, {"member_id": "STRING", "country": "STRING"})
    upload(pinot_cluster, table, "g0", rows("G0"))
    wait_for_rows(pinot_cluster, table, 10)
    query = count_members(table, ("country", ColumnType.STRING))
    wait_until(lambda: outcome(engine, query, engine.data_version(table)) == (["G0"],))
    url = f"{pinot_cluster.controller_url}/segments/{table}"
    kind = {"type": "OFFLINE"}
    outcomes: list[object] = []
    for number in range(1, 4):
        names = {"segmentsFrom": [f"g{number - 1}"], "segmentsTo": [f"g{number}"]}
        begun = HTTP.post(f"{url}/startReplaceSegments", params=kind, json=names, timeout=30).json()
        upload(pinot_cluster, table, f"g{number}", rows(f"G{number}"))
        entry = {"segmentLineageEntryId": begun["segmentLineageEntryId"]}
        # Until it is loaded, nobody may use it, and the broker would have learned of it too.
        time.sleep(4)
        with stopped_broker(pinot_cluster), ThreadPoolExecutor(6) as threads:
            HTTP.post(f"{url}/endReplaceSegments", params={**kind, **entry}, timeout=30).raise_for_status()
            time.sleep(0.5)
            engine._controller._latest.clear()
            version = engine.data_version(table)
            asked = [threads.submit(outcome, engine, query, version) for _ in range(6)]
            resumed = threading.Timer(0.5, lambda: pinot_cluster._processes["broker"].send(signal.SIGCONT))
            resumed.start()
            outcomes += [each.result() for each in asked]
        confirmed_ones = [each for each in outcomes if isinstance(each, tuple)]
        assert [] == [each for each in confirmed_ones if each != ([f"G{number}"],)], outcomes
        outcomes.clear()
        wait_until(lambda: outcome(engine, query, version) == ([f"G{number}"],))  # noqa: B023
