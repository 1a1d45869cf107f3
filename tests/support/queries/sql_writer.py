"""Structured questions written as SQL of the accepted subset, in one of the many ways there are."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

from dp_service.queries.asked_numbers import Counted, DistinctValues, Measure
from dp_service.queries.dimensions import Dimension
from dp_service.queries.filters import (
    MAXIMUM_VALUES,
    AllOf,
    AnyOf,
    Bound,
    ColumnFilter,
    Filter,
    In,
    IsNull,
    Like,
    NotIn,
    Range,
    TimeRange,
    Value,
)
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.functions.whole_bins import WholeBins
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.queries.text_functions import Folded, Piece, Prefix, TextFunction
from dp_service.terms import ColumnType


def spelled(query: HistogramQuery, table: Table, random: Random) -> str:
    """Return SQL that asks a question of a table whose time column, where a time range needs it, has no unit."""
    return _Writer(table, random).statement(query)


_ALIASES = ["", "", "n", "Total_1", '"Members (%)"', '"say ""n"" \\ é; -- 世"']


class _Writer:
    def __init__(self, table: Table, random: Random) -> None:
        self._table = table
        self._random = random
        self._table_alias = self._choice("", "", "e", '"The table"')

    def statement(self, query: HistogramQuery) -> str:
        names = list(query.dimensions)
        written = [self._dimension(each) for each in names]
        count, alias = self._count(query.measure), self._random.choice(_ALIASES)
        aliases = [
            self._choice("", "", name, f'{name} of "all" % é')
            if isinstance(name, str)
            else self._choice("", f"case {i}")
            for i, name in enumerate(names)
        ]
        quoted = ['"' + each.replace('"', '""') + '"' for each in aliases]
        selected = [
            each + (f" AS {alias}" if alias != '""' else "")
            for each, alias in zip(written, quoted, strict=True)
        ]
        if not query.omit_counts:
            selected.append(f"{count} {self._choice('AS ', '')}{alias}" if alias else count)
        source = f"{self._name(query.table)} {self._choice('', 'AS ') if self._table_alias else ''}{self._table_alias}"
        parts = [f"SELECT {self._listed(selected)}", f"FROM {source}"]
        conditions = [each for condition in query.filters for each in self._conditions(condition)]
        if query.time_range is not None:
            conditions += self._time_conditions(query.time_range)
        if conditions:
            parts.append(f"WHERE {self._conjunction(conditions)}")
        keys = [
            self._choice(self._column(name) if isinstance(name, str) else each, str(place))
            for place, (name, each) in enumerate(zip(names, written, strict=True), start=1)
        ]
        if keys:
            parts.append(f"GROUP BY {self._listed(self._shuffled(keys))}")
        parts += self._order(query, written, count, alias)
        if query.k is not None:
            parts.append(f"LIMIT {query.k}")
        return self._choice("", " ") + self._space().join(parts) + self._choice("", ";", " ;\n")

    def _dimension(self, dimension: Dimension) -> str:
        """Return a column, or a function of it."""
        if isinstance(dimension, str):
            return self._column(dimension)
        if isinstance(dimension, PartOfText):
            return self._part_of_text(self._column(dimension.column), dimension.function)
        if isinstance(dimension, WholeBins):
            low, high, number = _buckets(dimension)
            return f"WIDTH_BUCKET({self._column(dimension.column)}, {low}, {high}, {number})"
        return str(dimension)

    def _part_of_text(self, column: str, function: TextFunction) -> str:
        match function:
            case Folded(upper=upper):
                return (
                    f"{self._choice('UPPER', 'ucase') if upper else self._choice('LOWER', 'lcase')}({column})"
                )
            case Prefix(length=length):
                return self._choice(f"LEFT({column}, {length})", f"SUBSTR({column}, 1, {length})")
            case Piece(separator=separator, place=place):
                return f"SPLIT_PART({column}, {self._literal(separator)}, {place})"

    def _order(self, query: HistogramQuery, names: list[str], count: str, alias: str) -> Iterator[str]:
        if not query.omit_counts and self._random.random() < 0.3:
            return
        by = [count] if query.omit_counts else [count, str(len(names) + 1), *([alias] if alias else [])]
        keys = [f"{self._random.choice(by)} DESC"]
        for place in self._shuffled(list(range(len(names))))[: self._random.randint(0, len(names))]:
            keys.append(self._choice(names[place], str(place + 1)) + self._choice("", " ASC"))
        yield f"ORDER BY {self._listed(keys)}"

    def _count(self, measure: Counted) -> str:
        column = self._column(measure.column if isinstance(measure, DistinctValues) else self._table.member)
        if measure is not Measure.EVENTS and self._random.random() < 0.3:
            names = ("DISTINCTCOUNT", "distinctcount", "DISTINCTCOUNTHLL", "APPROX_COUNT_DISTINCT")
            return f"{self._choice(*names)}({column})"
        counted = "*" if measure is Measure.EVENTS else f"DISTINCT {column}"
        return f"COUNT({self._choice('', ' ')}{counted}{self._choice('', ' ')})"

    def _conjunction(self, conditions: list[str]) -> str:
        written = [
            f"({each})" if self._random.random() < 0.3 else each for each in self._shuffled(conditions)
        ]
        if len(written) > 2 and self._random.random() < 0.5:
            middle = self._random.randint(1, len(written) - 1)
            left, right = (" AND ".join(part) for part in (written[:middle], written[middle:]))
            return f"({left}) AND ({right})"
        return f"{self._space()}AND ".join(written)

    def _conditions(self, condition: Filter) -> list[str]:
        """Return conditions all of which hold where a condition does."""
        if isinstance(condition, AllOf):
            return [each for part in condition.parts for each in self._conditions(part)]
        if isinstance(condition, AnyOf):
            return [self._any(condition)]
        written = self._on_column(condition)
        if self._random.random() < 0.1:
            return [f"NOT ({self._denied(condition)})"]
        return written

    def _any(self, condition: AnyOf) -> str:
        """Return alternatives in parentheses, or what is denied by De Morgan's law."""
        if self._random.random() < 0.2:
            return f"NOT ({self._denied(condition)})"
        parts = [*condition.parts, *condition.parts[: self._random.randint(0, 1)]]
        written = [
            f"({each})" if self._random.random() < 0.3 else each
            for each in (self._conjunction(self._conditions(part)) for part in parts)
        ]
        return f"({f'{self._space()}OR '.join(self._shuffled(written))})"

    def _denied(self, condition: Filter) -> str:
        """Return what holds where a condition does not, of rows whose columns have a value."""
        match condition:
            case AnyOf(parts):
                return " AND ".join(f"({self._denied(each)})" for each in self._shuffled([*parts]))
            case AllOf(parts):
                return " OR ".join(f"({self._denied(each)})" for each in self._shuffled([*parts]))
        return f"NOT ({self._conjunction(self._on_column(condition))})"

    def _on_column(self, condition: ColumnFilter) -> list[str]:
        name = self._column(condition.column)
        match condition:
            case In():
                is_one = self._random.random() >= 0.3
                one = self._membership(name, condition.values, "IN", "=") if is_one else ""
                return [one or self._alternatives(name, condition.values)]
            case NotIn():
                written = self._membership(name, condition.values, "NOT IN", "<>")
                around = self._membership(name, condition.values, "IN", "IN")
                return [
                    self._choice(written, written.replace("<>", "!=", 1), f"NOT ({around})", f"NOT {around}")
                ]
            case Range():
                return self._range(name, condition)
            case Like():
                sign = "ILIKE" if condition.folds else "LIKE"
                words = f"{self._cased(sign)} {self._literal(condition.pattern)}"
                before, after = self._choice("NOT |", "|NOT ").split("|") if condition.negated else ("", "")
                return [f"{before}{name} {after}{words}"]
            case IsNull():
                return [f"{name} IS NOT NULL" if condition.negated else f"{name} IS NULL"]
            case _:
                part = f"EXTRACT({condition.part.in_sql} FROM {name})"
                none = f"NOT {part} >= {condition.part.values[0]}"
                return [self._membership(part, condition.numbers, "IN", "=") if condition.numbers else none]

    def _alternatives(self, name: str, values: tuple[Value, ...]) -> str:
        """Return a list as conditions joined by OR."""
        middle = self._random.randint(0, len(values))
        each = [f"{name} = {self._literal(value)}" for value in values[:middle]]
        each += [self._membership(name, values[middle:], "IN", "=")] if values[middle:] else []
        written = [self._choice(one, one, f"({one})") for one in self._shuffled(each)]
        return f"({f'{self._space()}OR '.join(written)})"

    def _membership(self, name: str, values: tuple[Value, ...], listed: str, alone: str) -> str:
        # The sign is replaced before the literal, so that no text that holds one is changed.
        if len(set(values)) == 1 and alone != listed and self._random.random() < 0.5:
            return f"{name} {alone} {self._literal(values[0])}"
        repeated = self._shuffled([*values, *values[: self._random.randint(0, len(values) < MAXIMUM_VALUES)]])
        return f"{name} {listed} ({self._listed([self._literal(value) for value in repeated])})"

    def _range(self, name: str, condition: Range) -> list[str]:
        lower, upper = condition.lower, condition.upper
        if lower is not None and upper is not None and not (lower.exclusive or upper.exclusive):
            between = f"{name} BETWEEN {self._literal(lower.value)} AND {self._literal(upper.value)}"
            if self._random.random() < 0.5:
                return [between]
            if self._random.random() < 0.3:
                return [f"NOT {between.replace(' BETWEEN ', ' NOT BETWEEN ', 1)}"]
        return [
            f"{name} {sign}{'' if bound.exclusive else '='} {self._literal(bound.value)}"
            for bound, sign in ((lower, ">"), (upper, "<"))
            if bound is not None
        ]

    def _time_conditions(self, time_range: TimeRange) -> list[str]:
        assert self._table.time is not None
        is_timestamp = self._table.time_column().type is ColumnType.TIMESTAMP
        first, last = (
            timestamp if is_timestamp else _first_day_from(timestamp)
            for timestamp in (time_range.start, time_range.end)
        )
        return self._conditions(
            Range(
                self._table.time.name,
                None if first is None else Bound(first),
                None if last is None else Bound(last, exclusive=True),
            )
        )

    def _literal(self, value: Value) -> str:
        match value:
            case bool():
                return self._cased(str(value).upper())
            case int():
                return self._choice(str(value), f"({value})")
            case str():
                return "'" + value.replace("'", "''") + "'"
            case datetime.datetime():
                written = value.isoformat(sep=self._choice(" ", "T"))
                return f"{self._choice('', self._cased('TIMESTAMP') + ' ')}'{written}'"
            case datetime.date():
                return f"{self._choice('', self._cased('DATE') + ' ')}'{value.isoformat()}'"

    def _column(self, name: str) -> str:
        """Return a column, with or without its table before it."""
        before = self._table_alias or self._name(self._table.name)
        return self._choice("", "", f"{before}.") + self._name(name)

    def _name(self, name: str) -> str:
        return self._choice(name, f'"{name}"')

    def _listed(self, parts: list[str]) -> str:
        return self._choice(", ", ",", " ,\n\t").join(parts)

    def _shuffled(self, parts: list[Any]) -> list[Any]:
        return self._random.sample(parts, len(parts))

    def _space(self) -> str:
        return self._choice(" ", "  ", "\n", "\t", "\r\n ")

    def _cased(self, word: str) -> str:
        return self._choice(word, word.lower(), word.title())

    def _choice(self, *choices: str) -> str:
        return self._random.choice(choices)


def _buckets(bins: WholeBins) -> tuple[Decimal, Decimal, int]:
    """Return the two ends of WIDTH_BUCKET, and how many bins lie between them.

    An edge of whole numbers is that of the text rounded up, so that the ends of the text were at most 1 lower.
    """
    ranges = [condition for condition, _ in bins.bins if isinstance(condition, Range)]
    edges = [int(str(each.upper.value)) for each in ranges if each.upper is not None]
    number, size = len(edges) - 1, 64
    for low, high in product(
        *(range(size * edge, size * (edge - 1), -1) for edge in (edges[0], edges[-1])),
    ):
        sums = (low * (number - place) + high * place for place in range(number + 1))
        if [-(-each // (size * number)) for each in sums] == edges:
            return Decimal(low) / size, Decimal(high) / size, number
    raise AssertionError(f"no equal bins have the edges {edges}")


def _first_day_from(timestamp: datetime.date | None) -> datetime.date | None:
    """Return the first day that begins no earlier than a moment."""
    if not isinstance(timestamp, datetime.datetime):
        return timestamp
    begun = timestamp.time() > datetime.time.min
    return timestamp.date() + datetime.timedelta(days=begun)
