"""Names of tables: a table of Pinot, or the offline part of one that takes in data in real time too.

A name that ends with a type means that part alone: Pinot's broker answers `FROM events_OFFLINE` from the offline
segments of `events`, and its controller lists nothing else under that name.
"""

from __future__ import annotations

from urllib.parse import quote

from pinot_connector.errors import EngineRefused

_OFFLINE, _REALTIME = "_OFFLINE", "_REALTIME"


def path_of(name: str) -> str:
    """Returns the name of a table or a segment as it stands in the paths of the controller."""
    return quote(name, safe="")


def path_of_offline_part(table: str) -> str:
    """Returns the name of a table's offline part as it stands in paths; an offline part is its own."""
    return path_of(table.removesuffix(_OFFLINE) + _OFFLINE)


def names_of(table: str) -> tuple[str, str]:
    """Returns the names that a policy may give a table of Pinot: its own, and that of its offline part."""
    return table, table + _OFFLINE


def require_no_real_time_part(table: str) -> None:
    """Refuses a name that means the real-time part of a table.

    Raises:
        EngineRefused: the name ends with `_REALTIME`.
    """
    if table.endswith(_REALTIME):
        raise real_time_refused(table.removesuffix(_REALTIME))


def real_time_refused(table: str) -> EngineRefused:
    """Returns the refusal of a table's real-time part, which says what can be asked instead.

    A segment that rows still arrive in has no checksum, and its replicas hold different numbers of rows.
    """
    return EngineRefused(
        f"the table {table} takes in data in real time, and has no version that an answer could be on; "
        f"a policy that names {table}{_OFFLINE} asks its offline part alone"
    )
