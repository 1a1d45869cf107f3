"""The questions: every form of condition on every type of column, by itself and joined with others."""

# ruff: noqa: S608  (the SQL is this campaign's own)
from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dp_service.queries.canonical_columns import (
    QueryCount,
    QueryValue,
)
from dp_service.queries.errors import QuestionError
from dp_service.queries.lookups import hash_of
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.read_columns import bins_read
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import Element, Scalar
from tests.support.queries.strategies import NOW
from tests.support.typical import typically

_TOPICS = b"small,topic\n-127,least\n0,a\n1,one\n2,a%b\n127,most\n"
_LABELS = "text,label\n,empty\na,letter\nA,letter\na%b_c,sign\n\U0001f600,face\n".encode()
_COLUMNS = """
      who: {type: int64, group_by: true}
      member: {type: string}
      text: {type: string, group_by: true, filter: [in, not_in], NULLS null_value: 'null'}
      number: {type: int64, group_by: true, filter: [in, not_in, range], NULLS null_value: -9223372036854775808}
      small: {type: int64, group_by: true, filter: [in, not_in, range], NULLS null_value: -128}
      flag: {type: bool, group_by: true, filter: [in, not_in], NULLS null_value: false}
      day: {type: date, group_by: true, filter: [in, not_in, range], NULLS null_value: 1970-01-01}
      at: {type: timestamp, filter: [range]}
      at_s: {type: timestamp, unit: seconds, filter: [range]}
      at_ms: {type: timestamp, unit: milliseconds, filter: [range]}
      topic: {type: string, group_by: true, filter: [in, not_in], NULLS
              lookup: {column: small, file: topics.csv, hash: "TOPICS"}}
      label: {type: string, group_by: true, filter: [in, not_in], NULLS
              lookup: {column: text, file: labels.csv, hash: "LABELS"}}
"""
_POLICY = f"""
max_k: 1000
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  dropped: &plain
    member: member
    time: {{column: day, type: date, buckets: [month], parts: [weekday, day, week, month]}}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    d_bar: 1000
    columns: {_COLUMNS.replace("NULLS", "")}
  kept:
    member: member
    time: {{column: at_ms, type: timestamp, unit: milliseconds, zone: Europe/Berlin, buckets: [month, quarter],
           parts: [hour, weekday, day, week]}}
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    d_bar: 1000
    columns: {_COLUMNS.replace("NULLS", "nulls: keep, ")}
  summed:
    member: member
    contributions: {{bound: in_query, units: 10, min_count: 1,
                     sums: {{max_members: 1000, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: 2,
               distinct: {{text: 2, number: 3, small: 1, day: 1}}}}
    columns: {typically(1, _COLUMNS.replace("NULLS", ""))}
    values:
      price: {{type: decimal, quantum: '0.01', lower: -5, upper: 20, row_lower: -5, row_upper: 20}}
      whole: {{type: int64, lower: -5, upper: 20, row_lower: -5, row_upper: 20}}
  looked:
    member: member
    contributions: {{bound: in_query, units: 10, min_count: 1,
                     longest_list: 400}}
    measures: {{distinct_members: true, rows: 2}}
    columns: {typically(1, _COLUMNS.replace("NULLS", ""))}
    values:
      price: {{type: decimal, quantum: '0.01',
               grid: {{scale: linear, from: -4, to: 16, cells: 10}}}}
      whole: {{type: int64, nulls: keep, null_value: 2, row_lower: -5, row_upper: 20,
               grid: {{scale: linear, from: -6, to: 14, cells: 20}}}}
"""


def policy() -> Policy:
    """Return the policy; all its tables are of the same rows, without a value dropped or kept, or summed as well."""
    text = (
        _POLICY.replace("&plain", "").replace("TOPICS", hash_of(_TOPICS)).replace("LABELS", hash_of(_LABELS))
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "topics.csv").write_bytes(_TOPICS)
        (Path(folder) / "labels.csv").write_bytes(_LABELS)
        return read_policy(text.encode(), str(Path(folder) / "policy.yaml")).policy


_OF_TEXTS = (
    "{} = 'a'",
    "{} <> 'a'",
    "{} IN ('', 'a%b_c', '\U0001f600')",
    "{} NOT IN ('', 'null', '\\')",
    "{} LIKE 'a%'",
    "{} LIKE '%\\%'",
    "{} LIKE '%.*%[%'",
    "{} LIKE '__%'",
    "{} NOT LIKE '_'",
    "{} ILIKE '%A%B%'",
    "{} NOT ILIKE 'a_'",
    "{} LIKE ''",
    "{} IS NULL",
    "{} IS NOT NULL",
)
# A looked-up column has the texts of its file, and no others may be named.
_LOOKED_UP = ("{} = 'A'", "{} <> 'A'", "{} IN ('A', 'B')", "{} NOT IN ('A', 'B')", *_OF_TEXTS[4:])
_OF_NUMBERS = (
    "{} = 1",
    "{} <> 1",
    "{} IN (0, 127, 300, -9223372036854775807)",
    "{} NOT IN (-127, 9223372036854775807)",
    "{} < 1",
    "{} >= -127",
    "{} BETWEEN -1000 AND 1000000",
    "{} NOT BETWEEN 0 AND 1000000",
    "{} IS NULL",
    "{} IS NOT NULL",
)
_OF_DAYS = (
    "{} = '2019-01-01'",
    "{} <> '2019-01-02'",
    "{} IN ('0001-01-01', '9999-12-31')",
    "{} < '2019-01-02'",
    "{} >= '0001-01-01'",
    "{} NOT BETWEEN '2018-01-01' AND '2019-12-31'",
    "{} IS NULL",
    "{} IS NOT NULL",
)
_OF_TIMES = (
    "{} < TIMESTAMP '2019-01-01 00:00:01'",
    "{} >= TIMESTAMP '1700-01-01 00:00:00'",
    "{} BETWEEN DATE '1970-01-01' AND DATE '2019-01-01'",
    "{} NOT BETWEEN TIMESTAMP '2018-12-31 23:59:59.999999' AND TIMESTAMP '2019-01-01 00:00:00'",
)
_OF_FLAGS = ("{}", "NOT {}", "{} = TRUE", "{} <> TRUE", "{} IN (TRUE, FALSE)", "{} IS NULL", "{} IS NOT NULL")
CONDITIONS = {
    "text": _OF_TEXTS,
    "number": _OF_NUMBERS,
    "small": _OF_NUMBERS,
    "flag": _OF_FLAGS,
    "day": _OF_DAYS,
    "at": _OF_TIMES,
    "at_s": _OF_TIMES,
    "at_ms": _OF_TIMES,
    "topic": tuple(each.replace("'A'", "'one'").replace("'B'", "'a%b'") for each in _LOOKED_UP),
    "label": tuple(each.replace("'A'", "'letter'").replace("'B'", "'sign'") for each in _LOOKED_UP),
}
_JOINED = (
    "{0} OR {1}",
    "NOT ({0} OR {1})",
    "NOT ({0} AND {1})",
    "({0} OR {1}) AND ({2} OR NOT {0})",
    "({0} AND {1}) OR ({2} AND {3})",
)


@dataclass(frozen=True)
class Form:
    """A question: as SQL, as it was read, and as it was resolved; of a second look, the elements that it is about."""

    sql: str
    query: HistogramQuery
    resolution: Resolution
    about: frozenset[Element] | None = None

    @property
    def table(self) -> str:
        """The table that it is asked of."""
        return self.query.table

    @property
    def names(self) -> frozenset[str]:
        """The columns of the table that the engine's query looks at."""
        query = self.resolution.query
        values = {each.name for each in query.used_values if isinstance(each, QueryValue)}
        values |= {each.name for each in bins_read(query)}
        return frozenset(values | {each.name for each in self.resolution.reads})

    @property
    def counted(self) -> QueryCount | QueryValue | None:
        """The number of the rows that meet a condition, by itself or as a column's own count; None: there is none."""
        for each in self.resolution.query.values:
            if isinstance(each, QueryCount) or (each.condition is not None and each.has_own_count):
                return each
        return None


def conditions() -> Iterator[str]:
    """Yield each condition by itself, and joined with those on the columns beside it in every way."""
    columns = list(CONDITIONS)
    for place, (column, written) in enumerate(CONDITIONS.items()):
        for number, one in enumerate(written):
            yield one.format(column)
            others = [columns[(place + step + number) % len(columns)] for step in (1, 2, 4)]
            beside = [
                CONDITIONS[each][(number + step) % len(CONDITIONS[each])].format(each)
                for step, each in enumerate(others)
            ]
            yield _JOINED[number % len(_JOINED)].format(
                *(f"({each})" for each in (one.format(column), *beside))
            )


_COUNTED = "COUNT(DISTINCT member)"
# The rows that count are then all, and those that meet the condition are in a number beside them.
_OF_SOME = (
    "COUNT(*), COUNT(*) FILTER (WHERE {})",
    "COUNT(*), SUM(CASE WHEN {} THEN price ELSE 0 END)",
    f"{_COUNTED}, COUNT(DISTINCT CASE WHEN {{}} THEN member END)",
    "COUNT(*), AVG(whole) FILTER (WHERE {})",
)
# What a question groups by names a column as a condition does, and may be looked at before any condition is.
_GROUPED = ("text", "number", "small", "flag", "day", "topic", "label")
# What the first of two looks may have named, of columns other than that of the rows' own numbers.
_NAMES: dict[str, Sequence[Scalar]] = {
    "text": ("", "a", "A\u212a", "%", "\\", "'", "a\nb", "a%b_c", "\U0001f600", "NaN", ".*", "a" * 1024),
    "number": (-(2**63) + 1, -7, -1, 0, 1, 2**31, 2**63 - 1),
    "small": (-127, -5, 0, 1, 127),
    "flag": (0, 1),
    "day": (-719_162, -3, 0, 17_897, 17_898, 2_932_896),
    "topic": ("least", "a", "one"),
    "label": ("letter", "face", "empty"),
}
_OF_PARTS = (
    "EXTRACT(ISODOW FROM day) IN (2, 6)",
    "NOT WEEK(day) > 20",
    "DAY(day) BETWEEN 1 AND 15",
    "MONTH(day) <> 1",
)
_PARTS = (
    "LOWER(text)",
    "UPPER(text)",
    "LEFT(text, 2)",
    "SPLIT_PART(text, 'b', 1)",
    "SPLIT_PART(text, '%', 2)",
    "WIDTH_BUCKET(number, -4, 4, 3)",
)
_BINS = (
    "FLOOR(price / 5) * 5",
    "WIDTH_BUCKET(whole, -4, 4, 3)",
    "FLOOR(whole / 3)",
    "WIDTH_BUCKET(price, -2, 5.5, 7)",
)
_DISTINCT = ("text", "number", "small", "day")
_MONTHS = "day >= '2018-12-01' AND day < '2019-03-01'"
# Both change the clocks, and one begins before 1970.
_RANGES = (
    "at_ms >= DATE '2018-10-01' AND at_ms < DATE '2019-05-01'",
    "at_ms >= DATE '1969-06-01' AND at_ms < DATE '2019-05-01'",
)
_OF_CLOCKS = (
    f"SELECT EXTRACT(HOUR FROM at_ms), {_COUNTED} FROM kept WHERE {{range}} AND ({{condition}}) GROUP BY 1",
    f"SELECT DATE_TRUNC('quarter', MIN(at_ms)), DATE_DIFF('quarter', MIN(at_ms), at_ms), {_COUNTED} FROM kept "
    "WHERE {range} AND ({condition}) GROUP BY 1, 2",
    f"SELECT who, {_COUNTED} FROM kept WHERE {{range}} AND (HOUR(at_ms) > 2 OR {{condition}}) GROUP BY who",
    "SELECT FUNNEL_COUNT(STEPS(EXTRACT(ISODOW FROM at_ms) <> 7, {condition}), CORRELATE_BY(member)) FROM kept "
    "WHERE {range}",
    f"SELECT DATE_TRUNC('month', at_ms), {_COUNTED} FROM kept WHERE {{range}} AND ({{condition}}) GROUP BY 1",
)


def forms(under: Policy) -> Iterator[Form]:
    """Yield the questions; those that no row can meet, or that the policy does not take, are none."""
    for number, condition in enumerate(conditions()):
        for table in ("dropped", "kept"):
            counted = (_COUNTED, "COUNT(*)")[number % 2]
            yield from _form(f"SELECT who, {counted} FROM {table} WHERE {condition} GROUP BY who", under)
        value = ("SUM(price)", "SUM(whole)")[number % 2]
        yield from _form(f"SELECT who, {value}, {_COUNTED} FROM summed WHERE {condition} GROUP BY who", under)
        values = f"COUNT(DISTINCT {_DISTINCT[number % len(_DISTINCT)]})"
        yield from _form(f"SELECT who, {values} FROM summed WHERE {condition} GROUP BY who", under)
        yield from _form(f"SELECT {values} FROM summed WHERE {condition}", under)
        of_some = _OF_SOME[number % len(_OF_SOME)].format(condition)
        yield from _form(f"SELECT who, {of_some} FROM summed GROUP BY who", under)
        by = _GROUPED[number % len(_GROUPED)]
        yield from _form(f"SELECT {by}, {_COUNTED} FROM dropped WHERE {condition} GROUP BY {by}", under)
        month = "DATE_TRUNC('month', day)"
        where = f"{_MONTHS} AND ({condition})"
        yield from _form(f"SELECT {month}, {_COUNTED} FROM dropped WHERE {where} GROUP BY {month}", under)
        yield from _form(f"SELECT {_COUNTED} FROM dropped WHERE {condition}", under)
        yield from _form(_of_two_looks(number, condition), under)
        table = ("dropped", "kept")[number % 2]
        part = _OF_PARTS[number % len(_OF_PARTS)]
        yield from _form(
            f"SELECT who, {_COUNTED} FROM dropped WHERE {part} OR {condition} GROUP BY who", under
        )
        text = _PARTS[number % len(_PARTS)]
        yield from _form(f"SELECT {text}, {_COUNTED} FROM {table} WHERE {condition} GROUP BY 1", under)
        bins = _BINS[number % len(_BINS)]
        yield from _form(f"SELECT {bins}, {_COUNTED} FROM summed WHERE {condition} GROUP BY 1", under)
        steps = (condition, "number >= -127")[:: 1 - 2 * (number // 2 % 2)]
        funnel = f"FUNNEL_COUNT(STEPS({', '.join(steps)}), CORRELATE_BY(member))"
        settings = ("", ", SETTINGS('strict_increase')")[number // 4 % 2] if table == "dropped" else ""
        funnel = f"{funnel.removesuffix(')')}{settings})"
        yield from _form(f"SELECT {funnel} FROM {table}", under)
        of_clocks = _OF_CLOCKS[number % len(_OF_CLOCKS)]
        within = _RANGES[number // len(_OF_CLOCKS) % 4 == 1]
        yield from _form(of_clocks.format(range=within, condition=condition), under)
        first = "DATE_TRUNC('month', MIN(day))"
        yield from _form(f"SELECT {first}, {_COUNTED} FROM dropped WHERE {where} GROUP BY 1", under)


def _of_two_looks(number: int, condition: str) -> str:
    """Return a question for quantiles of everything, or for counts of names, as its number says."""
    value = ("price", "whole")[number // 3 % 2]
    by = ("who", *_NAMES)[number // 3 % (1 + len(_NAMES))]
    counted = (_COUNTED, "COUNT(*)")[number // 3 % 2]
    of_all = (f"SELECT MEDIAN({value})", f"SELECT QUANTILE({value}, 0.25), MAX({value})")
    if number % 3 < len(of_all):
        return f"{of_all[number % 3]} FROM looked WHERE {condition}"
    return f"SELECT {by}, {counted} FROM looked WHERE {condition} GROUP BY {by}"


def _form(sql: str, under: Policy) -> Iterator[Form]:
    """Yield the question, and its second look if there is one; none if no row can meet its condition.

    Nor is there one of first times under conditions on the time that are no range.
    """
    try:
        query = replace(parse_sql(sql, under), k=1000 if "COUNT(" in sql and "SUM(" not in sql else None)
        resolution = resolve(query, under, now=NOW)
    except QuestionError as error:
        expected = ("contradict", "not every row meets", "no row can meet", "one range of time")
        if not any(each in str(error) for each in expected):
            raise
        return
    yield Form(sql, query, resolution)
    bounded = resolution.parameters.contributions
    if bounded is not None and bounded.names is not None:
        names = _NAMES.get(str(query.dimensions[0]), range(200))
        elements = tuple((name,) for name in sorted(names))
        yield Form(sql, query, second_look(resolution, elements), frozenset(elements))
