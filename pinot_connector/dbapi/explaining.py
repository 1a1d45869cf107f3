"""`EXPLAIN SELECT ..`: what a question would cost, as rows, for programs that know nothing but SQL."""

from __future__ import annotations

import re

from pinot_connector.dbapi.tables import Column
from pinot_connector.dbapi.types import STRING

# Pinot says EXPLAIN PLAN FOR, everybody else EXPLAIN.
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:PLAN\s+FOR\s+)?(?=(?:SELECT|WITH)\b)", re.IGNORECASE)

EXPLANATION_DESCRIBED: tuple[Column, ...] = (
    ("property", STRING, None, None, None, None, False),
    ("value", STRING, None, None, None, None, False),
)
"""The description of the two columns of EXPLAIN."""


def explained_question(text: str) -> str | None:
    """Returns the question after EXPLAIN; None: the text does not begin with EXPLAIN and a question."""
    found = _EXPLAIN.match(text)
    return None if found is None else text[found.end() :]
