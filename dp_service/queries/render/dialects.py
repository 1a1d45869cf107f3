"""The differences between the engines' SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.intervals import ordinal
from dp_service.queries.structured import Value

# Without these each server of a Pinot cluster keeps only part of its groups and counts come out too low, with every
# flag clean. numGroupsLimit has no value for "none". Of the ways to set an option (0.11 and later) only the last SET
# statement counts, and OPTION(..) counts at the very end of the text alone, where `statement` puts its LIMIT; so no
# literal can set one. And a broker may be configured to answer with NULLs: then one row with a missing value would
# decide whether there is an answer, because the query expects the stored default instead.
_PINOT_EXACT = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; SET enableNullHandling=false; "
)


# Only the multi-stage engine accepts a query inside a query. In addition to the above, it must not limit rows (lite
# mode), nor prune segments at the broker: it would not report that, and no answer would look complete.
_PINOT_NESTED = (
    "SET useMultistageEngine=true; SET useLiteMode=false; "
    "SET useBrokerPruning=false; SET mseMinGroupTrimSize=-1; "
)


class Feature(Enum):
    """What an engine must have beyond its dialect to run a query."""

    PINOT_MULTISTAGE = "pinot multi-stage engine"


class UnknownDialectError(ValueError):
    """There is no such dialect. `dialect` is its name."""

    def __init__(self, dialect: str) -> None:
        super().__init__(f"expected one of the dialects {', '.join(DIALECTS)}")
        self.dialect = dialect


@dataclass(frozen=True)
class Dialect:
    """One engine's SQL.

    Attributes:
        quote: The quote around a name.
        text: Writes a text.
        well_formed: Writes the condition that a text is UTF-8; None: the engine holds no other texts.
        prefix: What precedes the query.
        nested_prefix: What precedes the prefix if the query has another one inside.
        nested_feature: What the engine needs for that.
        day: Writes a day.
        timestamp: Writes the first timestamp that the engine's own type can hold and that is not before one.
        timestamp_key: Writes a column of that type in a query with another one inside, for comparisons with what
            `timestamp` writes.
        total: Writes a sum as a 64-bit integer.
        stores_nulls: Whether NULL is a value of its own. Otherwise the engine stores the column's null value instead.
        stores_long_texts: Whether texts have no limit. Otherwise the engine cuts them when it stores them (Pinot: at
            512 characters).
        text_type: The type of texts.
        order_hash: Writes the hash by which a member's elements are ordered (`dp_service.bounding.order`), from the
            salt and expressions that are texts; None: the engine cannot compute it.
    """

    quote: str
    text: Callable[[str], str]
    well_formed: Callable[[str], str] | None
    prefix: str
    nested_prefix: str
    nested_feature: Feature | None
    day: Callable[[datetime.date], str]
    timestamp: Callable[[datetime.datetime], str]
    timestamp_key: Callable[[str], str]
    total: Callable[[str], str]
    stores_nulls: bool
    stores_long_texts: bool
    text_type: str
    order_hash: Callable[[bytes, Sequence[str]], str] | None


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
        case datetime.datetime():
            return dialect.timestamp(value)
        case datetime.date():
            return dialect.day(value)


def _standard_text(text: str) -> str:
    """Write a text for an engine in which only the quote is escaped, by doubling it."""
    return "'" + text.replace("'", "''") + "'"


def _spark_text(text: str) -> str:
    """Write a text for Spark, which reads a backslash as an escape.

    A doubled quote would vanish: for Spark before 4.0 it ends one text and begins the next. Before parsing, Spark also
    replaces `${env:NAME}` by the server's environment variable, even inside texts; a dollar sign written by its code
    point prevents that.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def _spark_well_formed(expression: str) -> str:
    """Compare a text with what Java reads: it replaces bytes that are not UTF-8.

    Texts that differ only in such bytes would arrive as the same text.
    """
    return f"encode({expression}, 'UTF-8') = CAST({expression} AS BINARY)"


def _standard_day(day: datetime.date) -> str:
    return f"DATE '{day.isoformat()}'"


def _pinot_day(day: datetime.date) -> str:
    return str(ordinal(day))


def _standard_timestamp(timestamp: datetime.datetime) -> str:
    """Write a timestamp in UTC; connectors set the engine's zone to UTC, so a column with a zone means the same."""
    return f"TIMESTAMP '{timestamp.replace(tzinfo=None).isoformat(sep=' ')}'"


def _pinot_timestamp(timestamp: datetime.datetime) -> str:
    """Write the number of milliseconds, which is what Pinot stores: its functions and zones take no part."""
    return str(-(-ordinal(timestamp) // 1000))


def _pinot_timestamp_key(name: str) -> str:
    """Write a column as that number: the multi-stage engine compares no timestamp with a number."""
    return f"CAST({name} AS BIGINT)"


def _standard_total(expression: str) -> str:
    return f"CAST(SUM({expression}) AS BIGINT)"


def _pinot_total(expression: str) -> str:
    return f"SUM({expression})"


def _duckdb_order_hash(salt: bytes, texts: Sequence[str]) -> str:
    """Hash length-prefixed texts; hexadecimal texts are ordered as their bytes are."""
    fields = [f"unhex(printf('%016x', octet_length(encode({text})))) || encode({text})" for text in texts]
    return f"sha256({' || '.join([_bytes(length_prefixed(salt)), *fields])})"


def _spark_order_hash(salt: bytes, texts: Sequence[str]) -> str:
    fields = [
        f"unhex(lpad(hex(CAST(octet_length({text}) AS BIGINT)), 16, '0')), CAST({text} AS BINARY)"
        for text in texts
    ]
    return f"sha2(concat({', '.join([_bytes(length_prefixed(salt)), *fields])}), 256)"


def _bytes(value: bytes) -> str:
    return f"unhex('{value.hex()}')"


_STANDARD = Dialect(
    quote='"',
    text=_standard_text,
    well_formed=None,
    prefix="",
    nested_prefix="",
    nested_feature=None,
    day=_standard_day,
    timestamp=_standard_timestamp,
    timestamp_key=str,
    total=_standard_total,
    stores_nulls=True,
    stores_long_texts=True,
    text_type="VARCHAR",
    order_hash=_duckdb_order_hash,
)

DIALECTS = {
    "duckdb": _STANDARD,
    "pinot": Dialect(
        quote='"',
        text=_standard_text,
        well_formed=None,
        prefix=_PINOT_EXACT,
        nested_prefix=_PINOT_NESTED,
        nested_feature=Feature.PINOT_MULTISTAGE,
        day=_pinot_day,
        timestamp=_pinot_timestamp,
        timestamp_key=_pinot_timestamp_key,
        total=_pinot_total,
        stores_nulls=False,
        stores_long_texts=False,
        text_type="VARCHAR",
        order_hash=None,
    ),
    "spark": replace(
        _STANDARD,
        quote="`",
        text=_spark_text,
        well_formed=_spark_well_formed,
        text_type="STRING",
        order_hash=_spark_order_hash,
    ),
}
