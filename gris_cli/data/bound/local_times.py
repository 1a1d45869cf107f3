"""What the clocks of a zone show at a time in UTC, as SQL that carries the changes of clocks as numbers.

So the periods of a copy are those by which questions are answered and noise is computed: Python's time zones decide. An
engine's own table of zones may be older or newer. A question of one period would then see parts of two, in each of
which a member of a bounded copy has as many elements as the noise is made for.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from dp_service.queries.elements import microseconds_of
from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.zone_offsets import zone_offsets
from gris_cli.data.bound.source import Columns
from gris_cli.data.dialects import DataDialect

# In microseconds, 64 days: some thousand of them reach over all times, and few have more than one change of clocks.
_STRETCH = 64 * 24 * 3600 * 10**6


def local_time(dialect: DataDialect, time: str, zone: str) -> str:
    """Write what clocks show at a timestamp, in a session whose zone is UTC; `zone` is its IANA name.

    A CASE of hundreds of changes takes Spark seconds to plan, and ten times as long to run. So arrays hold the
    changes: one says how many there are before each stretch of time, and a time is compared with those in its own.
    A time that no question can see stays: there may be no room to move it.
    """
    time = f"CAST({time} AS TIMESTAMP)"
    micros = dialect.microseconds(time)
    offsets = zone_offsets(FIRST_TIMESTAMP, END_OF_TIMESTAMPS, zone)
    changes = [microseconds_of(each.until) for each in offsets if each.until is not None]
    first = microseconds_of(FIRST_TIMESTAMP)
    stretches = range(first, microseconds_of(END_OF_TIMESTAMPS) + _STRETCH, _STRETCH)
    before = [bisect_right(changes, each) for each in stretches]
    most = max(later - earlier for earlier, later in pairwise(before))
    index = dialect.item(dialect.array(before), dialect.divided(f"({micros} - {first})", _STRETCH))
    passed = "".join(
        f" + CASE WHEN {micros} >= {dialect.item(dialect.array(changes), f'{index} + {number}')} THEN 1 ELSE 0 END"
        for number in range(most)
    )
    seconds = dialect.item(dialect.array(each.seconds for each in offsets), f"{index}{passed}")
    shown = dialect.timestamp(f"{micros} + CAST(1000000 AS BIGINT) * {seconds}")
    return f"(CASE WHEN {is_asked(dialect, time)} THEN {shown} ELSE {time} END)"


def first_day(dialect: DataDialect, columns: Columns) -> str:
    """Write the first day of the period of the calendar that a row of `given` falls into."""
    time = dialect.time(f"given.{dialect.quoted(columns.period)}")
    if columns.zone:
        time = local_time(dialect, time, columns.zone)
    return f"CAST(date_trunc({dialect.of_questions.text(columns.calendar)}, {time}) AS DATE)"


def is_asked(dialect: DataDialect, time: str) -> str:
    """Write the condition that questions can see a timestamp."""
    first, end = map(dialect.of_questions.timestamp, (FIRST_TIMESTAMP, END_OF_TIMESTAMPS))
    return f"{time} >= {first} AND {time} < {end}"
