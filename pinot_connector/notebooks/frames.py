"""Results as frames of pandas and tables of Arrow. Elements are unchanged: a frame is data, and shows nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from pinot_connector.dbapi.tables import Values, described, tabulated
from pinot_connector.engines.base import ColumnType
from pinot_connector.results import PrivateResult

_TYPES = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT64: pa.int64(),
    ColumnType.BOOL: pa.bool_(),
    ColumnType.DATE: pa.date32(),
}


def result_frame(result: PrivateResult) -> Any:
    """Returns a `pandas.DataFrame`; see `PrivateResult.to_pandas`."""
    names, rows = _tabulated(result)
    frame = pd.DataFrame.from_records(rows, columns=names)
    frame.attrs = {"release_id": result.release_id, "confidence": result.confidence}
    if result.bottom is not None:
        frame.attrs["bottom"] = result.bottom
    return frame


def result_table(result: PrivateResult) -> Any:
    """Returns a `pyarrow.Table`; see `PrivateResult.to_arrow`."""
    names, rows = _tabulated(result)
    kinds = _kinds(result, len(names))
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table(
        [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)], names=names
    )


def _tabulated(result: PrivateResult) -> tuple[list[str], list[Values]]:
    names = [column[0] for column in described(result, intervals=True)]
    return names, list(tabulated(result, intervals=True))


def _kinds(result: PrivateResult, width: int) -> list[Any]:
    """Returns the types of as many columns: those of the elements, of the count, and of what stands behind it."""
    kinds = [_TYPES[column.type] for column in result.columns]
    # Counts of weighted members, and counts relative to a total, are multiples of a fraction.
    count = pa.float64() if result.parameters.denominator > 1 else pa.int64()
    counts = [] if result.parameters.quantiles else [count, pa.int64(), pa.int64()]
    kinds += counts[: width - len(kinds)]
    # Sums and averages, or quantiles, with the ends of their intervals.
    return kinds + [pa.date32() if result.parameters.has_days else pa.float64()] * (width - len(kinds))
