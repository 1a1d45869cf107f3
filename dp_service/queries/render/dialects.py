"""The differences between the engines' SQL."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.canonical_columns import PatternCondition
from dp_service.queries.filters import Value
from dp_service.queries.intervals import ordinal
from dp_service.queries.render.text_expressions import (
    duckdb_matches,
    duckdb_part_of_text,
    pinot_case_text,
    pinot_matches,
    pinot_part_of_text,
    spark_matches,
    spark_part_of_text,
    spark_text,
    spark_well_formed,
)
from dp_service.queries.render.texts import pinot_text, standard_text
from dp_service.queries.render.time_expressions import TimeWriter, duckdb_time, pinot_time, spark_time
from dp_service.queries.text_functions import TextFunction
from dp_service.terms import ColumnType

# Without these each server of a Pinot cluster keeps only part of its groups and counts come out too low, with every
# flag clean. numGroupsLimit has no value for "none". Of the ways to set an option (0.11 and later) only the last SET
# statement counts, and OPTION(..) counts at the very end of the text alone, where `statement` puts its LIMIT; so no
# literal can set one. And a broker may be configured to answer with NULLs: then one row with a missing value would
# decide whether there is an answer, because the query expects the stored default instead.
# A table or a broker may limit the size of a server's answer, and one member's row could go beyond it: the limit set
# here is larger than any answer of a server can be, one array of Java. A broker may leave out what it misses, or add up
# in another type.
_PINOT_EXACT = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; SET enableNullHandling=false; "
    "SET maxServerResponseSizeBytes=2147483647; SET ignoreMissingSegments=false; SET skipUnavailableServers=false; "
    "SET autoRewriteAggregationType=false; "
)


# Only the multi-stage engine accepts a query inside a query. In addition to the above, it must not limit rows (lite
# mode), nor prune segments at the broker, nor by the partitions of a table: it would not report that, and no answer
# would look complete. Nor may the physical optimizer, which a broker may use by default, plan it: its plans break
# quantiles.
_PINOT_NESTED = (
    "SET useMultistageEngine=true; SET useLiteMode=false; SET usePhysicalOptimizer=false; "
    "SET useBrokerPruning=false; SET mseMinGroupTrimSize=-1; SET inferPartitionHint=false; "
)


# A window holds one row for each member and element, on each server. Beyond a million it may leave rows out
# (windowOverflowMode), or fail, as a cluster may be set up; at this many, as for groups, it fails.
_PINOT_WINDOW = "SET maxRowsInWindow=100000000; SET windowOverflowMode='THROW'; "
_LARGEST_DOUBLE = "1.7976931348623157E308"


class Feature(Enum):
    """What an engine must have beyond its dialect to run a query."""

    PINOT_MULTISTAGE = "pinot multi-stage engine"
    BOUNDED_COPY = "a bounded copy that says how it was made"
    FIRST_COUNTS = "a client that reads of how many members an element is the first"
    CLOSED_STREAM = "a table that holds every row of a stream from before the end of a period"


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
        window_prefix: What precedes all of that if the query has a window.
        nested_feature: What the engine needs for a query inside another one.
        day: Writes a day.
        days: Writes how many days a column of days is after 1970-01-01.
        timestamp: Writes a timestamp as a value of the engine's own type. If the type is coarser, it is rounded up.
        timestamp_key: Writes a column of that type so that it can be compared with what `timestamp` writes, in a query
            with another one inside.
        total: Writes a sum as a 64-bit integer.
        finite: Writes the condition that a double is neither NaN nor infinite.
        stores_nulls: Whether NULL is a value of its own. Otherwise the engine stores the column's null value instead.
        stores_long_texts: Whether texts have no limit. Otherwise the engine cuts them when it stores them (Pinot: at
            512 characters).
        canonical_text: Writes an expression of a column type, or of a member that the policy does not list, as the
            text that `dp_service.bounding.order` hashes.
        needs_limit: Whether a query without a limit gets one of the engine's own.
        tells_copies: Whether questions of a prepared bounded copy require `Feature.BOUNDED_COPY`. Set True for a new
            engine: its `check` then compares what the copy says of itself (DuckDB) or, if it cannot read that, refuses
            (Spark). False leaves such a copy unchecked, on the word of the operator who loaded it (Pinot).
        takes_in_streams: Whether a table of the engine may go on taking in a stream while it is asked.
        together: Writes several columns as one value, different ones for different values.
        order_hash: Writes the hash by which a member's elements are ordered (`dp_service.bounding.order`), from the
            salt and expressions that are texts.
        whole_timestamp: Writes a column of the engine's own type for timestamps as `time` needs it, in a query
            without another one inside. In a query with another one inside, `timestamp_key` does so.
        joins_lookups: Whether what is looked up is joined to the table, for an engine that goes through a long list of
            keys for every row. Otherwise it is a CASE over the keys.
        case_text: Writes a text that a CASE may answer with, beside texts of other lengths.
        matches: Writes whether a text has a pattern, or has not.
        part_of_text: Writes a function of a text, which is a part of it or the same in other letters.
        time: Writes the first day of the bucket that a column's time falls into, or a part of it as a whole number.
        joins_squares: Whether the squares of a member's cells are added up by member and joined, in a query that
            computes an inner one once. Otherwise a window adds them up.
        integer: The word for integers of 64 bits in a query without another one inside: Pinot 0.11 has no BIGINT.
    """

    quote: str
    text: Callable[[str], str]
    well_formed: Callable[[str], str] | None
    prefix: str
    nested_prefix: str
    window_prefix: str
    nested_feature: Feature | None
    day: Callable[[datetime.date], str]
    days: Callable[[str], str]
    timestamp: Callable[[datetime.datetime], str]
    timestamp_key: Callable[[str], str]
    total: Callable[[str], str]
    finite: Callable[[str], str]
    stores_nulls: bool
    stores_long_texts: bool
    canonical_text: Callable[[str, ColumnType | None], str]
    needs_limit: bool
    tells_copies: bool
    takes_in_streams: bool
    together: Callable[[Sequence[str]], str]
    order_hash: Callable[[bytes, Sequence[str]], str]
    whole_timestamp: Callable[[str], str]
    joins_lookups: bool
    case_text: Callable[[str], str]
    matches: Callable[[str, PatternCondition], str]
    part_of_text: Callable[[str, TextFunction], str]
    time: TimeWriter
    integer: str = "BIGINT"
    joins_squares: bool = False


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


def _standard_day(day: datetime.date) -> str:
    return f"DATE '{day.isoformat()}'"


def _duckdb_days(name: str) -> str:
    return f"date_diff('day', DATE '1970-01-01', {name})"


def _spark_days(name: str) -> str:
    return f"datediff({name}, DATE '1970-01-01')"


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


def _pinot_whole_timestamp(name: str) -> str:
    """Write the same for the engine that takes no query inside another one, in its own word for the type."""
    return f"CAST({name} AS LONG)"


def _standard_total(expression: str) -> str:
    return f"CAST(SUM({expression}) AS BIGINT)"


def _pinot_total(expression: str) -> str:
    return f"SUM({expression})"


def _duckdb_finite(number: str) -> str:
    """Use a function: DuckDB drops comparisons that hold for the least and largest number of a file, NaN aside.

    So whether a file has an infinity would decide whether rows with NaN count.
    """
    return f"isfinite({number})"


def _standard_finite(number: str) -> str:
    """Compare: NaN is above every number, or comparable with none."""
    return f"{number} >= -{_LARGEST_DOUBLE} AND {number} <= {_LARGEST_DOUBLE}"


def _standard_canonical_text(expression: str, _kind: ColumnType | None) -> str:
    return f"CAST({expression} AS VARCHAR)"


def _spark_canonical_text(expression: str, _kind: ColumnType | None) -> str:
    return f"CAST({expression} AS STRING)"


def _pinot_canonical_text(expression: str, kind: ColumnType | None) -> str:
    """Write days, which Pinot stores as numbers, as `YYYY-MM-DD`, and truth values as words on every version."""
    match kind:
        case ColumnType.DATE:
            return f"toDateTime(fromEpochDays({expression}), 'yyyy-MM-dd')"
        case ColumnType.BOOL:
            # Without a cast, Calcite may fill up the shorter text with a blank.
            return f"CASE WHEN {expression} THEN CAST('true' AS VARCHAR) ELSE CAST('false' AS VARCHAR) END"
        case _:
            return f"CAST({expression} AS VARCHAR)"


def _standard_together(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"


def _pinot_together(names: Sequence[str]) -> str:
    """Write a text, in hexadecimal but for what separates the columns: Pinot counts distinct values of one."""
    spelt = [f"bytesToHex(toUtf8(CAST({name} AS VARCHAR)))" for name in names]
    # Of two texts and what stands between them: Pinot 0.11 joins no two alone.
    return reduce(lambda left, right: f"concat({left}, {right}, ':')", spelt)


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


def _pinot_order_hash(salt: bytes, texts: Sequence[str]) -> str:
    """Hash the bytes that a hexadecimal text spells: `concat` joins two texts, and no bytes.

    In Latin-1 a text has as many characters as bytes. `chr` and two bytes write its length: every character is below
    0xD800, as a text that an answer can hold has at most 1024 characters.
    """
    fields = [_hexadecimal_field(f"toUtf8({text})") for text in texts]
    joined = reduce(
        lambda left, right: f"concat({left}, {right})", fields, f"'{length_prefixed(salt).hex()}'"
    )
    return f"sha256(hexToBytes({joined}))"


def _hexadecimal_field(encoded: str) -> str:
    length = f"length(fromBytes({encoded}, 'ISO-8859-1'))"
    return f"concat(lpad(bytesToHex(toBytes(chr({length}), 'UTF-16BE')), 16, '0'), bytesToHex({encoded}))"


def _bytes(value: bytes) -> str:
    return f"unhex('{value.hex()}')"


_STANDARD = Dialect(
    quote='"',
    text=standard_text,
    well_formed=None,
    prefix="",
    nested_prefix="",
    window_prefix="",
    nested_feature=None,
    day=_standard_day,
    days=_duckdb_days,
    timestamp=_standard_timestamp,
    timestamp_key=str,
    total=_standard_total,
    finite=_duckdb_finite,
    stores_nulls=True,
    stores_long_texts=True,
    canonical_text=_standard_canonical_text,
    needs_limit=False,
    tells_copies=True,
    takes_in_streams=False,
    together=_standard_together,
    order_hash=_duckdb_order_hash,
    whole_timestamp=str,
    joins_lookups=True,
    case_text=standard_text,
    matches=duckdb_matches,
    part_of_text=duckdb_part_of_text,
    time=duckdb_time,
)

DIALECTS = {
    "duckdb": replace(_STANDARD, joins_squares=True),
    "pinot": Dialect(
        quote='"',
        text=pinot_text,
        well_formed=None,
        prefix=_PINOT_EXACT,
        nested_prefix=_PINOT_NESTED,
        window_prefix=_PINOT_WINDOW,
        nested_feature=Feature.PINOT_MULTISTAGE,
        day=_pinot_day,
        days=str,
        timestamp=_pinot_timestamp,
        timestamp_key=_pinot_timestamp_key,
        total=_pinot_total,
        finite=_standard_finite,
        stores_nulls=False,
        stores_long_texts=False,
        canonical_text=_pinot_canonical_text,
        needs_limit=True,
        tells_copies=False,
        takes_in_streams=True,
        together=_pinot_together,
        order_hash=_pinot_order_hash,
        whole_timestamp=_pinot_whole_timestamp,
        joins_lookups=False,
        case_text=pinot_case_text,
        matches=pinot_matches,
        part_of_text=pinot_part_of_text,
        time=pinot_time,
        integer="LONG",
        # Days are stored as numbers.
    ),
    "spark": replace(
        _STANDARD,
        quote="`",
        text=spark_text,
        well_formed=spark_well_formed,
        days=_spark_days,
        finite=_standard_finite,
        canonical_text=_spark_canonical_text,
        order_hash=_spark_order_hash,
        joins_lookups=False,
        case_text=spark_text,
        matches=spark_matches,
        part_of_text=spark_part_of_text,
        time=spark_time,
    ),
}
