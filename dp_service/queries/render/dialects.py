"""What differs between the engines' SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from dp_service.queries.intervals import ordinal
from dp_service.queries.structured import Value

# Without these each server of a Pinot cluster keeps only part of its groups and counts come out too low, with every
# flag clean. numGroupsLimit has no value for "none". Of the ways to set an option (0.11 and later) only the last SET
# statement counts, and OPTION(..) counts at the very end of the text alone, where `statement` puts its LIMIT; so no
# literal can set one.
_PINOT_EXACT = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; "
)


class UnknownDialectError(ValueError):
    """A dialect that nothing here can write. `dialect` is its name."""

    def __init__(self, dialect: str) -> None:
        super().__init__(f"expected one of the dialects {', '.join(DIALECTS)}")
        self.dialect = dialect


@dataclass(frozen=True)
class Dialect:
    """One engine's SQL: what stands before the query, and how a day is written.

    `stores_nulls`: NULL is a value of its own. Else the engine stored the column's null value in its place.
    `stores_long_texts`: texts have no limit. Else the engine cut them when it stored them (Pinot: at 512 characters).
    """

    prefix: str
    day: Callable[[datetime.date], str]
    stores_nulls: bool
    stores_long_texts: bool


def identifier(name: str) -> str:
    """Quote a name of the policy, which has no quotes in it."""
    return f'"{name}"'


def literal(value: Value, dialect: Dialect) -> str:
    """Write a value. Both engines read everything but a doubled quote inside a text as it stands."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.date():
            return dialect.day(value)


def _duckdb_day(day: datetime.date) -> str:
    return f"DATE '{day.isoformat()}'"


def _pinot_day(day: datetime.date) -> str:
    return str(ordinal(day))


DIALECTS = {
    "duckdb": Dialect(prefix="", day=_duckdb_day, stores_nulls=True, stores_long_texts=True),
    "pinot": Dialect(prefix=_PINOT_EXACT, day=_pinot_day, stores_nulls=False, stores_long_texts=False),
}
