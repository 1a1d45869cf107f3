"""Whether a bounded copy of a table is the one that the policy says the table is.

A copy that was bounded otherwise would make a member change more than the noise hides, so nothing is asked of it.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from pinot_connector.engines.base import BoundedCopy
from pinot_connector.engines.bounded_copy import RULE, BoundedCopyError, CopyStatement, read_bounded_copy
from pinot_connector.engines.duckdb_files import is_database
from pinot_connector.errors import DataUnreadable

_LONGEST_SHOWN = 200


def require_bounded_copy(path: Path, expected: BoundedCopy | None) -> None:
    """Refuses a file that is not the bounded copy that the policy says the table is. No row is read.

    Raises:
        DataUnreadable: The file says nothing, or something else; the message has both values of what differs.
    """
    if is_database(path):
        raise DataUnreadable(
            f"the policy says that the table is a prepared bounded copy, which must be a Parquet file: {path.name} is "
            "a DuckDB database, which does not say how it was made"
        )
    stated = _stated(path)
    if stated is None or expected is None:
        # What is wrong with the file may be its number of rows, which is nobody's but the owner's to know.
        by = "" if expected is None else f" by {', '.join(expected.elements)}"
        raise DataUnreadable(
            f"the policy says that the table is a prepared bounded copy{by}, and {path.name} is none that "
            "gris bound made"
        )
    wanted: dict[str, object] = {each.name: getattr(expected, each.name) for each in fields(expected)}
    differing = [
        f"{name} is {_shown(getattr(stated, name))} in the file and {_shown(value)} in the policy"
        for name, value in (wanted | {"rule": RULE}).items()
        if getattr(stated, name) != value
    ]
    if differing:
        problem = "; ".join(differing)
        raise DataUnreadable(
            f"{path.name} is another bounded copy than the policy says the table is: {problem}"
        )


def _stated(path: Path) -> CopyStatement | None:
    try:
        return read_bounded_copy(path)
    except BoundedCopyError:
        return None


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)[:_LONGEST_SHOWN]
