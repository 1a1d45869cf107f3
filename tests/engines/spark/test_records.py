"""What Spark writes down about a publication: no secret, and no more shuffles of the data than there should be."""

from __future__ import annotations

import base64
import json
import secrets
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from dp_service.partitions import Method, rounds
from dp_service.partitions.element_noise import round_key
from dp_service.partitions.spark import discover_on_spark
from tests.engines.spark.conftest import scala_context
from tests.engines.spark.pairs import PAIRS, SALT, parameters_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Pairs of member and element."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({PAIRS}) TO '{tmp_path / 'pairs.parquet'}' (FORMAT parquet)")
    return tmp_path / "pairs.parquet"


def _written(event_log: Path) -> str:
    files = sorted(each for each in event_log.rglob("*") if each.is_file() and not each.name.startswith("."))
    return "".join(each.read_text(errors="replace") for each in files)


def _forms(secret: bytes) -> set[str]:
    """Return how a secret may be written: raw, in hexadecimal and base64 at any alignment, as numbers."""
    encoded = {base64.b64encode(b"\0" * shift + secret)[4:-4].decode() for shift in range(3)}
    numbers = {", ".join(map(str, secret[:8])), ",".join(map(str, secret[:8]))}
    signed = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in secret[:8])
    return {secret.hex()[:32], secret.hex().upper()[:32], repr(secret)[2:40], signed} | encoded | numbers


# What is taken away between rounds, and what goes back to members, moves beside the pairs that it is joined with.
_SIPS, _MAD = 3 * (3 - 1) + 2 + (3 - 1), 5 + 1


@pytest.mark.parametrize(("method", "shuffles"), [(Method.SIPS, _SIPS), (Method.MAD, _MAD)])
def test_spark_records_neither_seed_nor_sub_keys_and_few_shuffles(
    spark: SparkSession, event_log: Path, path: Path, method: Method, shuffles: int
) -> None:
    """Its log holds plans and texts of queries, and a shuffle for each of the 3 (I - 1) + 2 that DP-SIPS takes."""
    session = spark.newSession()
    # Plans are written as they are for users: with all details.
    session.conf.set("spark.sql.ui.explainMode", "formatted")
    # Small tables would be sent to all executors instead, and save a shuffle.
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    seed, parameters, before = secrets.token_bytes(32), parameters_of(method), len(_written(event_log))
    discover_on_spark(session.read.parquet(str(path)), parameters, seed=seed, salt=SALT)
    scala_context(spark).listenerBus().waitUntilEmpty()
    written = _written(event_log)[before:]
    assert "ArrowEvalPython" in written
    keys = [round_key(seed, method.value, turn.number) for turn in rounds(parameters)]
    assert not [form for secret in (seed, *keys) for form in _forms(secret) if form in written]
    assert shuffles == _shuffles(written)


def _shuffles(written: str) -> int:
    """Return how many stages wrote rows of the data for others; a stage that only counts writes one row a task."""
    tasks: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for line in written.splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd" and event["Task Type"] == "ShuffleMapTask":
            tasks[event["Stage ID"]] += 1
            rows[event["Stage ID"]] += event["Task Metrics"]["Shuffle Write Metrics"][
                "Shuffle Records Written"
            ]
    return sum(rows[stage] > tasks[stage] for stage in tasks)
