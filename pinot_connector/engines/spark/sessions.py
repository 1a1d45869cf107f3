"""Spark sessions: starts one, and opens a session of its own for every question."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer

from pyspark.sql import SparkSession

from pinot_connector.errors import EngineRefused, EngineUnavailable

# At their finest level both write whole queries and answers to the log.
for _name in ("py4j", "pyspark"):
    logging.getLogger(_name).setLevel(logging.INFO)

_CONNECT = "sc://"
_CANCELLED_AGAIN_SECONDS = 0.2

# Whatever the application or its cluster has set, a query means the same.
_QUERY_SETTINGS = {
    # Sums that overflow and texts that are no numbers are errors, not other values.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    # `${env:NAME}` inside a text is the text, and a backslash is the escape that the query was written with.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # A file that is gone or broken is an error, not an answer on the rest of the data.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Days and timestamps before 1582 are those that the file holds, and no error.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # The type of a partition's column would depend on the values in it.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}

# Spark's web page and event log hold exact numbers of rows. A session that is started here has neither, and writes no
# log, because errors in it would repeat values of the data.
_SILENT = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
}
# Two hundred partitions, Spark's default, are for clusters: on one machine the time would go into starting tasks.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}


def started(url: str) -> SparkSession:
    """Returns a session at a URL: `local[4]`, `spark://host:7077`, `yarn`, or `sc://host:15002` for Spark Connect.

    Raises:
        EngineUnavailable: there is no Java, or Spark cannot be reached.
    """
    builder = SparkSession.builder.remote(url) if url.startswith(_CONNECT) else _classic(url)
    try:
        return builder.getOrCreate()
    except Exception:
        problem = f"Spark did not start at {_without_secrets(url)}; it needs Java 17, by JAVA_HOME or in PATH"
    raise EngineUnavailable(problem)


def _classic(url: str) -> SparkSession.Builder:
    _require_java()
    is_local = url.startswith("local")
    if is_local:
        # On this machine Spark's Python is this one, which has what its functions import.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(url).appName("gris")
    for name, value in (_SILENT | (_LOCAL if is_local else {})).items():
        builder = builder.config(name, value)
    return builder


def require_session(session: object) -> None:
    """Checks that another session can be opened in addition to this one, for each question.

    Raises:
        EngineRefused: it is no session, or one of a PySpark that cannot open another one.
    """
    if not isinstance(session, SparkSession) and not _is_connect(session):
        raise EngineRefused("session: expected a SparkSession")
    if not hasattr(session, "newSession"):
        raise EngineRefused("session: Spark Connect needs PySpark 4.3 or newer")


@contextmanager
def own_session(session: SparkSession) -> Iterator[SparkSession]:
    """Gives a session with only the settings above, which nobody else can change.

    Raises:
        EngineRefused: Spark does not take one of the settings.
    """
    fresh = session.newSession()
    try:
        _apply_settings(fresh)
        yield fresh
    finally:
        # Stopping a session of Spark Connect ends that session; stopping any other would end Spark.
        if _is_connect(fresh):
            fresh.stop()


@contextmanager
def deadline(session: SparkSession, seconds: float) -> Iterator[Event]:
    """Interrupts, when the time is over, what this thread runs in the session; then the event is set."""
    timed_out, ended, tag = Event(), Event(), f"gris-{uuid.uuid4().hex}"

    def interrupt() -> None:
        timed_out.set()
        # A query is many jobs, one after the other, and at times none of them runs.
        while not ended.wait(_CANCELLED_AGAIN_SECONDS):
            _cancel(session, tag)

    timer = Timer(seconds, interrupt)
    # The tag belongs to this thread; the timer's ends the jobs by its name.
    _add_tag(session, tag)
    timer.start()
    try:
        yield timed_out
    finally:
        timer.cancel()
        ended.set()
        timer.join()
        _remove_tag(session, tag)


def _add_tag(session: SparkSession, tag: str) -> None:
    if _is_connect(session):
        session.addTag(tag)
    else:
        session.sparkContext.addJobTag(tag)


def _remove_tag(session: SparkSession, tag: str) -> None:
    if _is_connect(session):
        session.removeTag(tag)
    else:
        session.sparkContext.removeJobTag(tag)


def _cancel(session: SparkSession, tag: str) -> None:
    if _is_connect(session):
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def _apply_settings(session: SparkSession) -> None:
    try:
        for name, value in _QUERY_SETTINGS.items():
            session.conf.set(name, value)
        kept = all(session.conf.get(name) == value for name, value in _QUERY_SETTINGS.items())
    except Exception:
        kept = False
    if not kept:
        raise EngineRefused("Spark does not accept the settings under which a query has one meaning")


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        raise EngineUnavailable(
            "Spark needs Java 17: install it (Debian: openjdk-17-jre-headless), or say where it is by JAVA_HOME"
        )


def _without_secrets(url: str) -> str:
    """Returns a URL without its parameters, which may hold tokens."""
    return url.partition(";")[0]


def _is_connect(session: object) -> bool:
    # Importing the module of Spark Connect needs more than PySpark.
    return type(session).__module__.startswith("pyspark.sql.connect.")
