"""Translates Spark's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException

_Found = TypeVar("_Found")


class SparkFailedError(RuntimeError):
    """Spark could not do the work. Its own message may contain data and is not repeated."""


def guarded(work: Callable[[], _Found]) -> _Found:
    """Do the work without repeating the message of an error of Spark.

    Raises:
        SparkFailedError: Spark failed. Other errors pass unchanged.
    """
    try:
        return work()
    except Exception as error:
        # Py4J connects Python to Spark; not all of its errors are PySpark's.
        if not isinstance(error, PySparkException) and not type(error).__module__.startswith("py4j."):
            raise
    # Raised outside of the handler: otherwise Spark's own error would be attached as the context.
    raise SparkFailedError("Spark could not complete the discovery")
