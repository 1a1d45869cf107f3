"""By which functions a table may be grouped: a sentence and an example of each kind, for the catalogue.

A kind is listed exactly if its example is answered: each is read and resolved as a question that somebody asks, so that
nothing of what a table permits is stated here again. Examples name columns of the policy and nothing of the data. Of
listed values they name those that are one plain word: strangers may have written them, and agents read examples as
ours. Other values, and the range of time, stand for those of a reader.
"""

# ruff: noqa: S608  (the SQL is an example for readers, of the policy's own names)

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from gris_api.dp.v1 import dp_pb2

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Operator
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import Value
from dp_service.queries.sql import parse_sql
from dp_service.queries.sql.words import NO_NAMES
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeColumn
from dp_service.releases.kinds import UnusableParametersError
from dp_service.releases.resolving import resolve_question
from dp_service.server.served_policy import PolicyContent
from dp_service.terms import ColumnType

_BUCKETS = 6
_PLAIN = re.compile(r"[\w-]{1,24}", re.ASCII)
_ONE_DAY = datetime.timedelta(days=1)
_DAYS = (datetime.date(2025, 1, 1), datetime.date(2025, 7, 1))
EXAMPLE_VALUES: dict[ColumnType, tuple[Value, ...]] = {
    ColumnType.STRING: ("one", "another"),
    ColumnType.INT64: (1, 2),
    ColumnType.BOOL: (True, False),
    ColumnType.DATE: _DAYS,
    ColumnType.TIMESTAMP: _DAYS,
}
"""Values of columns whose values the policy does not list."""


@lru_cache(maxsize=1024)
def offered_functions(content: PolicyContent, table: str, year: int) -> tuple[dp_pb2.CatalogFunction, ...]:
    """Return an example of each kind of function by which questions may group a table.

    Args:
        content: The policy that is served.
        table: One of its tables.
        year: The year of now; ranges of time end with the one before.
    """
    now = int(datetime.datetime(year + 1, 1, 1, tzinfo=datetime.UTC).timestamp())
    return tuple(
        each for each in _examples(content.policy.table(table), year) if _is_answered(each.sql, content, now)
    )


def _is_answered(sql: str, content: PolicyContent, now: int) -> bool:
    try:
        resolve_question(parse_sql(sql, content.policy), content.policy, now=now)
    except (QuestionError, RefusedByPolicyError, UnusableParametersError):
        return False
    return True


def _examples(table: Table, year: int) -> Iterator[dp_pb2.CatalogFunction]:
    match list(islice(_conditions(table), 2)):
        case [first, second]:
            steps, by = f"STEPS({first}, {second})", f"CORRELATE_BY({named(table.member)})"
            yield dp_pb2.CatalogFunction(
                code="funnel",
                text=f"FUNNEL_COUNT({steps})",
                meaning="Who reaches each of 2 to 10 steps, in any order of time, for the price of one count.",
                sql=f"SELECT FUNNEL_COUNT({steps}, {by}) FROM {named(table.name)}",
            )
    if table.time is not None:
        yield from _of_time(table, table.time, year)
    names = [*(each.name for each in table.values), *(each.name for each in table.quantiles)]
    for name in islice(filter(table.has_numbers, names), 1):
        text = f"WIDTH_BUCKET({named(name)}, 0, 100, 10)"
        yield _example(table, "bins", text, "The bin of a number, with one below all others and one above.")
    texts = (each for each in table.own_columns if each.group_by and each.type is ColumnType.STRING)
    for column in islice(texts, 1):
        meaning = "A part of a text: also SUBSTR, SPLIT_PART, LOWER, UPPER."
        text = f"LEFT({named(column.name)}, 1)"
        yield _example(table, "text", text, meaning, then=" ORDER BY 2 DESC LIMIT 10")


def _of_time(table: Table, time: TimeColumn, year: int) -> Iterator[dp_pb2.CatalogFunction]:
    name = named(time.name)
    if table.parts:
        text, parts = f"EXTRACT({table.parts[0].in_sql} FROM {name})", ", ".join(table.parts)
        where = _range(table, time, BucketLength.MONTH, year)
        yield _example(table, "part", text, f"What comes again of the time: {parts}.", where=where)
    if not table.buckets:
        return
    # Of weeks and months the months: a longer range for the same number of buckets.
    length = BucketLength.MONTH if BucketLength.MONTH in table.buckets else table.buckets[-1]
    where, lengths = _range(table, time, length, year), ", ".join(table.buckets)
    bucket, first = f"DATE_TRUNC('{length}', {name})", f"DATE_TRUNC('{length}', MIN({name}))"
    usual = ", ".join(f"{word} {day}" for word, day in (("from", time.begins), ("before", time.ends)) if day)
    ends = f"Without a range: {usual}." if usual else "The range needs both ends."
    yield _example(table, "bucket", bucket, f"The bucket of time: {lengths}. {ends}", where=where)
    meaning = f"The {length} that a member comes first in: who is new. Earlier rows decide as well."
    yield _example(table, "first_seen", first, meaning, where=where)
    if name != time.name:
        # RETENTION takes no name in quotes.
        return
    both = f"{first}, DATE_DIFF('{length}', MIN({name}), {name})"
    meaning = f"The {length} that a member comes first in, and how many {length}s later it comes back."
    yield _example(table, "retention", f"RETENTION('{length}', {name})", meaning, where=where, in_sql=both)


def _example(
    table: Table, code: str, text: str, meaning: str, *, where: str = "", in_sql: str = "", then: str = ""
) -> dp_pb2.CatalogFunction:
    count = f"COUNT(DISTINCT {named(table.member)})" if table.measures.distinct_members else "COUNT(*)"
    keys = "1, 2" if in_sql else "1"
    sql = f"SELECT {in_sql or text}, {count} FROM {named(table.name)}{where} GROUP BY {keys}{then}"
    return dp_pb2.CatalogFunction(code=code, text=text, meaning=meaning, sql=sql)


def _conditions(table: Table) -> Iterator[str]:
    """Yield conditions that the policy permits: of columns of several listed values first."""
    columns = (each for each in table.usable_columns if each.name != table.member)
    for column in sorted(columns, key=lambda each: (each.domain is None, each.delta == 1)):
        compared = "=" if Operator.IN in table.operators(column) else "<"
        plain = [each for each in column.domain or () if _PLAIN.fullmatch(str(each))]
        if table.operators(column):
            for value in (plain or EXAMPLE_VALUES[column.type])[:2]:
                yield f"{named(column.name)} {compared} {literal(value)}"


def _range(table: Table, time: TimeColumn, length: BucketLength, year: int) -> str:
    """Return a range of six buckets of time, which ends with the policy's usual one, or with the year before."""
    end = start = length.first_day(time.ends or datetime.date(year, 1, 1))
    for _ in range(_BUCKETS):
        start = length.first_day(start - _ONE_DAY)
    is_number = table.time_column().type is ColumnType.INT64
    low, high = (time.first_value_from(each) if is_number else literal(each) for each in (start, end))
    name = named(time.name)
    return f" WHERE {name} >= {low} AND {name} < {high}"


def literal(value: Value) -> str:
    """Return a value as SQL writes it."""
    if isinstance(value, bool | int):
        return str(value).upper()
    return "'" + str(value).replace("'", "''") + "'"


def named(name: str) -> str:
    """Return a name as SQL writes it: in quotes, if it would be read as something else."""
    return f'"{name}"' if NO_NAMES.fullmatch(name.upper()) else name
