"""What becomes of Spark's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException

_Found = TypeVar("_Found")


class SparkFailedError(RuntimeError):
    """Spark could not do the work. What it said may hold the data, and is not repeated."""


def guarded(work: Callable[[], _Found]) -> _Found:
    """Do the work, and say nothing of what Spark says if it fails.

    Raises SparkFailedError for errors of Spark's, and whatever else the work raises as it is.
    """
    try:
        return work()
    except Exception as error:
        # Py4J is how Python speaks to Spark; some of its errors are none of PySpark's.
        if not isinstance(error, PySparkException) and not type(error).__module__.startswith("py4j."):
            raise
    # Raised here and not where it was caught: Spark's own error would hang on ours as its context.
    raise SparkFailedError("Spark could not complete the discovery")
