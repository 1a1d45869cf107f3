"""Names of tables: a table of Pinot, or one part of a table that takes in data in real time.

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


def offline_part(table: str) -> str:
    """Returns the name of a table's offline part."""
    return table + _OFFLINE


def real_time_part(table: str) -> str:
    """Returns the name of a table's real-time part."""
    return table + _REALTIME


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
    """Returns the refusal of a question about a table that takes in a stream; it says what can be asked instead.

    A segment that rows still arrive in has no checksum, and its replicas hold different numbers of rows.
    """
    return EngineRefused(
        f"the table {table} takes in data in real time, and has no version that an answer could be on; a policy whose "
        f"time states refresh, delay_minutes and complete_by asks it in closed periods, and one that names "
        f"{table}{_OFFLINE} asks its offline part alone"
    )
