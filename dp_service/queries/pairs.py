"""Whether a question can be asked of a pairs copy in the place of the raw table.

It can be if COUNT(*) of the copy is the raw table's count of distinct members, whatever the data are:

- it counts members and groups by exactly the columns of the copy's elements. By fewer of them, a member has several
  rows in a group;
- its conditions are on those columns, on attributes, of which a member has one value in all rows, and on time. By
  another column, the row that counts for a member and element could be left out while a later one stays;
- its range of time ends within what was copied, and both ends lie between two periods. Rows without a time are in no
  range, and in no copy. A range without a lower end has it before all periods: then the rows without a previous one
  count.

Nothing of that depends on rows. If one thing is not so, the raw table answers.
"""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_columns import (
    OrdinalRestriction,
    column_conditions,
)
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.elements import date_of, days_of, timestamp_of
from dp_service.queries.intervals import Interval
from dp_service.queries.pairs_manifest import CopiedPeriod, PairsManifest
from dp_service.queries.tables import PreparedPairs, Table
from dp_service.queries.times import Refresh, TimeColumn, TimeUnit, first_day, start_of_day
from dp_service.terms import ColumnType


@dataclass(frozen=True)
class PairsRange:
    """How a question is asked of a pairs copy.

    Attributes:
        asked_table: The table that the question names.
        start: The first period that counts, as a number of days since 1970-01-01; None: all before `end` do.
        end: The first one that does not count any more.
        calendar: How long a period is.
        periods: What the copy's manifest says of each period that counts.
        version: Names the rows that count, by the checksums of their files.
        first_attributes: The question has a condition on an attribute, of which the copy keeps members' first values.
    """

    asked_table: str
    start: int | None
    end: int
    calendar: Refresh
    periods: tuple[CopiedPeriod, ...]
    version: str
    first_attributes: bool = False


def pairs_range(table: Table, query: CanonicalQuery) -> PairsRange | None:
    """Return how a question to a table is asked of its pairs copy; None: the raw table answers."""
    prepared = table.prepared
    if prepared is None or table.time is None or not _counts_pairs(prepared.manifest, query):
        return None
    if not {each.column.name for each in query.restrictions} <= _kept(prepared.manifest):
        return None
    # The copy has neither members nor times.
    in_conditions = {each.column.name for one in query.conditions for each in column_conditions(one)}
    if not in_conditions <= {*prepared.manifest.elements, *prepared.manifest.attributes}:
        return None
    return _range(prepared, table.time, query)


def of_copy(query: CanonicalQuery, prepared: PreparedPairs) -> CanonicalQuery:
    """Return the same question to the copy: its fingerprint is of the table that answers."""
    return CanonicalQuery(
        table=prepared.table,
        member=query.member,
        dimensions=query.dimensions,
        measure=query.measure,
        clip=query.clip,
        restrictions=query.restrictions,
        conditions=query.conditions,
    )


def _counts_pairs(manifest: PairsManifest, query: CanonicalQuery) -> bool:
    if query.measure is not Measure.DISTINCT_MEMBERS or query.used_values:
        return False
    dimensions = [each.name for each in query.dimensions]
    return sorted(dimensions) == sorted(manifest.elements)


def _kept(manifest: PairsManifest) -> set[str]:
    """Return the columns whose conditions a copy can meet; rows without a member are in no copy."""
    return {*manifest.elements, *manifest.attributes, manifest.time, manifest.member}


def _range(prepared: PreparedPairs, time: TimeColumn, query: CanonicalQuery) -> PairsRange | None:
    manifest = prepared.manifest
    stated = next((each for each in query.restrictions if each.column.name == time.name), None)
    if not isinstance(stated, OrdinalRestriction) or len(stated.intervals) != 1:
        return None
    (interval,) = stated.intervals
    end = _period_from(interval.end, time, manifest.calendar)
    if end is None or end > days_of(manifest.end):
        return None
    start = None
    if not _is_from_the_beginning(interval, stated):
        start = _period_from(interval.start, time, manifest.calendar)
        if start is None:
            return None
    counting = [
        each
        for each in manifest.periods
        if days_of(each.start) < end and (start is None or days_of(each.start) >= start)
    ]
    version = hashlib.sha256(
        length_prefixed(
            b"gris/pairs/v1",
            *(part.encode() for each in counting for part in (each.start.isoformat(), each.checksum)),
        )
    ).hexdigest()
    is_of_first = manifest.first_attributes and any(
        each.column.name in manifest.attributes for each in query.column_conditions
    )
    return PairsRange(
        query.table, start, end, manifest.calendar, tuple(counting), f"pairs:{version}", is_of_first
    )


def _is_from_the_beginning(interval: Interval, stated: OrdinalRestriction) -> bool:
    """Return whether a range has no lower end. Integers without one could stand for times that no copy holds."""
    column = stated.column
    is_bounded = column.type in (ColumnType.DATE, ColumnType.TIMESTAMP) and column.stored is None
    return is_bounded and interval.start == column.universe.start


def _period_from(value: int, time: TimeColumn, calendar: Refresh) -> int | None:
    """Return the period that begins with a value of the time column, None if none does."""
    try:
        first = first_day(_day_of(value, time), calendar)
        begins = (
            days_of(first) if time.unit is TimeUnit.DAYS else time.first_value_from(_midnight(first, time))
        )
    except (ValueError, OverflowError):
        # It is outside the years 1 to 9999.
        return None
    return days_of(first) if begins == value else None


def _day_of(value: int, time: TimeColumn) -> datetime.date:
    if time.unit is TimeUnit.DAYS:
        return date_of(value)
    return timestamp_of(value * int(time.unit.value)).astimezone(ZoneInfo(time.zone)).date()


def _midnight(day: datetime.date, time: TimeColumn) -> datetime.datetime:
    return start_of_day(day, time.zone)
