"""All rows of the table."""

from __future__ import annotations

from tests.campaigns.pinot_check import (
    bounding,
    connector,
    own_cluster,
    pinot_itself,
    questions,
    streams,
)
from tests.campaigns.pinot_check.rows import Row

ROWS = tuple(
    found
    for module in (connector, bounding, questions, pinot_itself, streams, own_cluster)
    for found in vars(module).values()
    if isinstance(found, Row)
)
