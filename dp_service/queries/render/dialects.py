"""What differs between the engines' SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from dp_service.queries.intervals import ordinal
from dp_service.queries.structured import Value

# Without these each server of a Pinot cluster keeps only part of its groups and counts come out too low, with every
# flag clean. numGroupsLimit has no value for "none". Of the ways to set an option (0.11 and later) only the last SET
# statement counts, and OPTION(..) counts at the very end of the text alone, where `statement` puts its LIMIT; so no
# literal can set one. And a broker may be set up to answer with NULLs by itself: then one row whose value is missing
# would decide whether there is an answer, for the query takes what is stored in its place.
_PINOT_EXACT = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; SET enableNullHandling=false; "
)


# Only the multi-stage engine takes a query inside a query. On top of the above it must not work with fewer rows (lite
# mode), nor leave out segments at the broker, which it would not tell, so that no answer would look whole.
_PINOT_NESTED = (
    "SET useMultistageEngine=true; SET useLiteMode=false; "
    "SET useBrokerPruning=false; SET mseMinGroupTrimSize=-1; "
)


class Feature(Enum):
    """What an engine must have beyond its dialect to run a query."""

    PINOT_MULTISTAGE = "pinot multi-stage engine"


class UnknownDialectError(ValueError):
    """A dialect that nothing here can write. `dialect` is its name."""

    def __init__(self, dialect: str) -> None:
        super().__init__(f"expected one of the dialects {', '.join(DIALECTS)}")
        self.dialect = dialect


@dataclass(frozen=True)
class Dialect:
    """One engine's SQL: what stands before the query, and how names, texts and days are written.

    `quote` stands around a name. `well_formed` writes the condition that a text is UTF-8; None: the engine holds no
    other. `nested_prefix` stands before the query besides where it has another one inside, `nested_feature` is what
    the engine needs for that, and `total` writes a sum as an integer of 64 bits.
    `stores_nulls`: NULL is a value of its own. Else the engine stored the column's null value in its place.
    `stores_long_texts`: texts have no limit. Else the engine cut them when it stored them (Pinot: at 512 characters).
    """

    quote: str
    text: Callable[[str], str]
    well_formed: Callable[[str], str] | None
    prefix: str
    nested_prefix: str
    nested_feature: Feature | None
    day: Callable[[datetime.date], str]
    total: Callable[[str], str]
    stores_nulls: bool
    stores_long_texts: bool


def identifier(name: str, dialect: Dialect) -> str:
    """Quote a name of the policy, which has no quotes in it."""
    return f"{dialect.quote}{name}{dialect.quote}"


def literal(value: Value, dialect: Dialect) -> str:
    """Write a value."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str():
            return dialect.text(value)
        case datetime.date():
            return dialect.day(value)


def _standard_text(text: str) -> str:
    """Write a text for an engine that reads everything but a doubled quote as it stands."""
    return "'" + text.replace("'", "''") + "'"


def _spark_text(text: str) -> str:
    """Write a text for Spark, which reads a backslash as an escape.

    A doubled quote would vanish: to Spark before 4.0 it ends one text and begins the next. And before it parses
    anything it replaces `${env:NAME}`, inside texts too, by what the server's environment holds; a dollar sign that is
    written by its code point begins no such thing.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def _spark_well_formed(expression: str) -> str:
    """Compare a text with what Java reads, which puts a sign of its own in the place of what is not UTF-8.

    Two texts that differ in such bytes alone would reach us as one.
    """
    return f"encode({expression}, 'UTF-8') = CAST({expression} AS BINARY)"


def _standard_day(day: datetime.date) -> str:
    return f"DATE '{day.isoformat()}'"


def _pinot_day(day: datetime.date) -> str:
    return str(ordinal(day))


def _standard_total(expression: str) -> str:
    return f"CAST(SUM({expression}) AS BIGINT)"


def _pinot_total(expression: str) -> str:
    return f"SUM({expression})"


DIALECTS = {
    "duckdb": Dialect(
        quote='"',
        text=_standard_text,
        well_formed=None,
        prefix="",
        nested_prefix="",
        nested_feature=None,
        day=_standard_day,
        total=_standard_total,
        stores_nulls=True,
        stores_long_texts=True,
    ),
    "pinot": Dialect(
        quote='"',
        text=_standard_text,
        well_formed=None,
        prefix=_PINOT_EXACT,
        nested_prefix=_PINOT_NESTED,
        nested_feature=Feature.PINOT_MULTISTAGE,
        day=_pinot_day,
        total=_pinot_total,
        stores_nulls=False,
        stores_long_texts=False,
    ),
    "spark": Dialect(
        quote="`",
        text=_spark_text,
        well_formed=_spark_well_formed,
        prefix="",
        nested_prefix="",
        nested_feature=None,
        day=_standard_day,
        total=_standard_total,
        stores_nulls=True,
        stores_long_texts=True,
    ),
}
