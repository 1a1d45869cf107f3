"""Whether a bounded copy of a table is the one that the policy says the table is.

A copy that was bounded otherwise would make a member change more than the noise hides, so nothing is asked of it.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from pinot_connector.engines.base import BoundedCopy
from pinot_connector.engines.bounded_copy import RULE, BoundedCopyError, CopyStatement, read_bounded_copy
from pinot_connector.errors import EngineRefused

_LONGEST_SHOWN = 200


def require_bounded_copy(path: Path, expected: BoundedCopy | None) -> None:
    """Refuses a file that is not the bounded copy that the policy says the table is. No row is read.

    Raises:
        EngineRefused: The file says nothing, or something else; the message has both values of what differs.
    """
    stated = _stated(path)
    if stated is None or expected is None:
        # What is wrong with the file may be its number of rows, which is nobody's but the owner's to know.
        raise EngineRefused(
            "the policy says that the table is a prepared bounded copy, and its file is none as gris bound made it"
        )
    wanted: dict[str, object] = {each.name: getattr(expected, each.name) for each in fields(expected)}
    differing = [
        f"{name} is {_shown(getattr(stated, name))} in the file and {_shown(value)} in the policy"
        for name, value in (wanted | {"rule": RULE}).items()
        if getattr(stated, name) != value
    ]
    if differing:
        raise EngineRefused(f"the table is another bounded copy than the policy says: {'; '.join(differing)}")


def _stated(path: Path) -> CopyStatement | None:
    try:
        return read_bounded_copy(path)
    except BoundedCopyError:
        return None


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)[:_LONGEST_SHOWN]
