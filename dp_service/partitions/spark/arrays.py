"""Functions of arrays as functions of columns: Spark hands them whole Arrow batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql.pandas.functions import pandas_udf


def of_columns(function: Callable[..., NDArray[Any]], type_: str) -> Callable[..., Column]:
    """Return a function of arrays of shape (n,) as one of columns, with results of a type of Spark's.

    What it holds is pickled for the executors, and is no part of a query's text or plan.
    """

    def on_batch(*columns: pd.Series) -> pd.Series:
        return pd.Series(np.asarray(function(*(column.to_numpy() for column in columns))))

    made: Any = pandas_udf
    of: Callable[..., Column] = made(on_batch, type_)
    return of
