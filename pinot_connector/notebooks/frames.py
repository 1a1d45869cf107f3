"""Results as frames of pandas and tables of Arrow. Elements are unchanged: a frame is data, and shows nothing."""

from __future__ import annotations

from typing import Any

import pandas as pd

from pinot_connector.dbapi.tables import kinds, tabulated
from pinot_connector.results import PrivateResult


def result_frame(result: PrivateResult) -> Any:
    """Returns a `pandas.DataFrame`; see `PrivateResult.to_pandas`."""
    names = [name for name, _ in kinds(result, intervals=True)]
    frame = pd.DataFrame.from_records(list(tabulated(result, intervals=True)), columns=names)
    frame.attrs = {"release_id": result.release_id, "confidence": result.confidence}
    if result.bottom is not None:
        frame.attrs["bottom"] = result.bottom
    return frame
