"""One local Apache Spark with two threads for all tests here."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pinot_connector.engines.spark import SparkEngine
from tests.support.java_options import QUICK_JAVA
from tests.support.programs import found, is_hidden
from tests.support.rings import needs

# What an operator may have set for every session of a cluster: none of it is what we need.
_HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "Pacific/Kiritimati",
    "spark.sql.variable.substitute": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
}

# With less memory, code is thrown away to be compiled again, and garbage is collected while tables are small.
MEMORY = ("-XX:ReservedCodeCacheSize=240M", "-XX:MetaspaceSize=400M", "-Xms1G", "-Xmn600M")
QUICK_JVM = {"spark.driver.extraJavaOptions": " ".join((*QUICK_JAVA, *MEMORY))}


@pytest.fixture(scope="package")
def event_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of Spark's log of events."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture
def event_log(spark: SparkSession, event_directory: Path) -> Iterator[Path]:
    """The directory in which Spark keeps a log of all that it does while a test has this fixture."""
    context = scala_context(spark)
    context.addSparkListener(context.eventLogger().get())
    yield event_directory
    context.removeSparkListener(context.eventLogger().get())


def scala_context(spark: SparkSession) -> Any:
    """Return Spark's own context, with its listeners, which PySpark does not expose."""
    return spark.sparkContext._jsc.sc()


@pytest.fixture(scope="package")
@needs("spark")
def spark(event_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A running Spark, as an application would have set it up: with few partitions, for the tables are small."""
    if found("java") is None and (is_hidden("java") or "JAVA_HOME" not in os.environ):
        pytest.skip("Apache Spark needs Java 17: deploy/test-servers")
    # When Python ends, py4j still writes of closed connections, into streams that are closed too.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # Spark's Python is this one, which has what its functions import.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("gris-tests")
    settings = (
        _HOSTILE
        | QUICK_JVM
        | {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "OFF",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": event_directory.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.ui.showConsoleProgress": "false",
            # Every plan is described to the listeners, and again whenever it changes.
            "spark.sql.ui.explainMode": "simple",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        }
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # A log of all tests would be read by few of them.
    context = scala_context(session)
    context.removeSparkListener(context.eventLogger().get())
    yield session
    session.stop()


@pytest.fixture(autouse=True, scope="package")
def unhurried_engines() -> Iterator[None]:
    """Let no engine give up a query because the machine is busy, unless a test sets its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkEngine.__init__, "__kwdefaults__", {"timeout_seconds": 600.0})
        yield
