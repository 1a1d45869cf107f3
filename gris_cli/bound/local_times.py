"""What the clocks of a zone show at a time in UTC, as SQL that carries the changes of clocks as numbers.

So the periods of a copy are those by which questions are answered and noise is computed: Python's time zones decide. An
engine's own table of zones may be older or newer. A question of one period would then see parts of two, in each of
which a member of a bounded copy has as many elements as the noise is made for.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.zone_offsets import ZoneOffset, zone_offsets


def duckdb_local_time(time: str, zone: str) -> str:
    """Write what clocks show at a timestamp of DuckDB, in a session whose zone is UTC; `zone` is its IANA name."""
    return _local_time(f"{time}::TIMESTAMP", zone, "{time} + to_seconds({seconds})")


def spark_local_time(time: str, zone: str) -> str:
    """Write what clocks show at a timestamp of Spark, in a session whose zone is UTC; `zone` is its IANA name."""
    moved = "timestamp_micros(unix_micros({time}) + 1000000L * ({seconds}))"
    return _local_time(f"CAST({time} AS TIMESTAMP)", zone, moved)


def _local_time(time: str, zone: str, moved: str) -> str:
    """Write it for a time, and how that is moved. What no question can see stays: there may be no room to move it."""
    seconds = _chosen(time, zone_offsets(FIRST_TIMESTAMP, END_OF_TIMESTAMPS, zone))
    is_asked = f"{time} >= {_literal(FIRST_TIMESTAMP)} AND {time} < {_literal(END_OF_TIMESTAMPS)}"
    return f"(CASE WHEN {is_asked} THEN {moved.format(time=time, seconds=seconds)} ELSE {time} END)"


def _chosen(time: str, offsets: Sequence[ZoneOffset]) -> str:
    """Write the offset of a time by halving: there are hundreds, and a time is compared with few of them."""
    half = (len(offsets) - 1) // 2
    until = offsets[half].until
    if until is None:
        return str(offsets[half].seconds)
    earlier, later = (
        _chosen(time, [*offsets[:half], _last(offsets[half])]),
        _chosen(time, offsets[half + 1 :]),
    )
    return f"CASE WHEN {time} < {_literal(until)} THEN {earlier} ELSE {later} END"


def _last(offset: ZoneOffset) -> ZoneOffset:
    return ZoneOffset(offset.seconds, None)


def _literal(timestamp: datetime.datetime) -> str:
    return f"TIMESTAMP '{timestamp.replace(tzinfo=None).isoformat(' ')}'"
