"""Results as frames of pandas and tables of Arrow. Elements are unchanged: a frame is data, and shows nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from pinot_connector.dbapi.tables import Values, described, listed, totals_described, totals_tabulated
from pinot_connector.engines.base import ColumnType
from pinot_connector.errors import InvalidQuestion
from pinot_connector.results import PrivateResult

_TYPES = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT64: pa.int64(),
    ColumnType.BOOL: pa.bool_(),
    ColumnType.DATE: pa.date32(),
}


def result_frame(result: PrivateResult, *, totals: bool) -> Any:
    """Returns a `pandas.DataFrame`; see `PrivateResult.to_pandas`."""
    names, rows = _tabulated(result, totals=totals)
    frame = pd.DataFrame.from_records(rows, columns=names)
    frame.attrs = {"release_id": result.release_id, "confidence": result.confidence}
    if result.bottom is not None:
        frame.attrs["bottom"] = result.bottom
    return frame


def result_table(result: PrivateResult, *, totals: bool) -> Any:
    """Returns a `pyarrow.Table`; see `PrivateResult.to_arrow`."""
    names, rows = _tabulated(result, totals=totals)
    kinds = _total_kinds(result) if totals else _kinds(result, len(names))
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table(
        [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)], names=names
    )


def _tabulated(result: PrivateResult, *, totals: bool) -> tuple[list[str], list[Values]]:
    if totals and result.totals is None:
        raise InvalidQuestion("totals", "expected the result of a question for totals")
    named, rows = (totals_described, totals_tabulated) if totals else (described, listed)
    return [column[0] for column in named(result, intervals=True)], list(rows(result, intervals=True))


def _kinds(result: PrivateResult, width: int) -> list[Any]:
    """Returns the types of as many columns: those of the elements, of the count, and of what stands behind it."""
    kinds = [_TYPES[column.type] for column in result.columns]
    # Counts relative to a total, or of several looks together, are multiples of a fraction.
    count = pa.float64() if result.parameters.denominator > 1 else pa.int64()
    counts = [] if result.parameters.quantiles else [count, pa.int64(), pa.int64()]
    kinds += counts[: width - len(kinds)]
    # Sums and averages, or quantiles, with the ends of their intervals.
    return kinds + [pa.date32() if result.parameters.has_days else pa.float64()] * (width - len(kinds))


def _total_kinds(result: PrivateResult) -> list[Any]:
    stated = result.parameters.totals
    own = [_TYPES[column.type] for column in result.columns if stated and column.name == stated.column]
    numbers = [pa.int64()] * 3 + [pa.float64()] * 3 * len(result.parameters.aggregates)
    return own + 2 * numbers
