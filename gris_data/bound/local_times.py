"""What the clocks of a zone show at a time in UTC, as SQL that carries the changes of clocks as numbers.

So the periods of a copy are those by which questions are answered and noise is computed: Python's time zones decide. An
engine's own table of zones may be older or newer. A question of one period would then see parts of two, in each of
which a member of a bounded copy has as many elements as the noise is made for.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from dp_service.queries.elements import microseconds_of
from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.zone_offsets import ZoneOffset, zone_offsets

# In microseconds, 64 days: some thousand of them reach over all times, and few have more than one change of clocks.
_STRETCH = 64 * 24 * 3600 * 10**6


def duckdb_local_time(time: str, zone: str) -> str:
    """Write what clocks show at a timestamp of DuckDB, in a session whose zone is UTC; `zone` is its IANA name."""
    time = f"{time}::TIMESTAMP"
    seconds = _chosen(time, zone_offsets(FIRST_TIMESTAMP, END_OF_TIMESTAMPS, zone))
    return _if_asked(time, f"{time} + to_seconds({seconds})")


def spark_local_time(time: str, zone: str) -> str:
    """Write what clocks show at a timestamp of Spark, in a session whose zone is UTC; `zone` is its IANA name.

    A CASE of hundreds of changes takes Spark seconds to plan, and ten times as long to run. So arrays hold the
    changes: one says how many there are before each stretch of time, and a time is compared with those in its own.
    """
    time = f"CAST({time} AS TIMESTAMP)"
    micros = f"unix_micros({time})"
    offsets = zone_offsets(FIRST_TIMESTAMP, END_OF_TIMESTAMPS, zone)
    changes = [microseconds_of(each.until) for each in offsets if each.until is not None]
    first = microseconds_of(FIRST_TIMESTAMP)
    stretches = range(first, microseconds_of(END_OF_TIMESTAMPS) + _STRETCH, _STRETCH)
    before = [bisect_right(changes, each) for each in stretches]
    most = max(later - earlier for earlier, later in pairwise(before))
    index = f"get({_array(before)}, CAST(({micros} - {first}L) div {_STRETCH}L AS INT))"
    passed = "".join(
        f" + IF({micros} >= get({_array(changes, 'L')}, {index} + {number}), 1, 0)" for number in range(most)
    )
    seconds = f"get({_array(each.seconds for each in offsets)}, {index}{passed})"
    return _if_asked(time, f"timestamp_micros({micros} + 1000000L * {seconds})")


def _if_asked(time: str, shown: str) -> str:
    """Write what is shown at a time. One that no question can see stays: there may be no room to move it."""
    is_asked = f"{time} >= {_literal(FIRST_TIMESTAMP)} AND {time} < {_literal(END_OF_TIMESTAMPS)}"
    return f"(CASE WHEN {is_asked} THEN {shown} ELSE {time} END)"


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


def _array(numbers: Iterable[int], suffix: str = "") -> str:
    return f"array({', '.join(f'{number}{suffix}' for number in numbers)})"


def _literal(timestamp: datetime.datetime) -> str:
    return f"TIMESTAMP '{timestamp.replace(tzinfo=None).isoformat(' ')}'"
