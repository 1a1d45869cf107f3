"""Results as frames of pandas and tables of Arrow. Elements are unchanged: a frame is data, and shows nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from pinot_connector.dbapi.tables import kinds, tabulated
from pinot_connector.dbapi.types import Kind
from pinot_connector.results import PrivateResult

_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.TRUTH: pa.bool_(),
    Kind.WHOLE: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.DAY: pa.date32(),
}


def result_frame(result: PrivateResult) -> Any:
    """Returns a `pandas.DataFrame`; see `PrivateResult.to_pandas`."""
    names = [name for name, _ in kinds(result, intervals=True)]
    frame = pd.DataFrame.from_records(list(tabulated(result, intervals=True)), columns=names)
    frame.attrs = {"release_id": result.release_id, "confidence": result.confidence}
    if result.bottom is not None:
        frame.attrs["bottom"] = result.bottom
    return frame


def result_table(result: PrivateResult) -> Any:
    """Returns a `pyarrow.Table`; see `PrivateResult.to_arrow`."""
    columns, rows = kinds(result, intervals=True), list(tabulated(result, intervals=True))
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = [pa.array(each, _TYPES[kind]) for each, (_, kind) in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[name for name, _ in columns])
