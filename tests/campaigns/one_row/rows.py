"""The rows: ordinary ones, odd ones that differ from them in one value, and which of them a question selects."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from dp_service.queries.asked_numbers import DistinctValues
from dp_service.queries.canonical_columns import QueryValue
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.dimensions import Dimension, columns_of
from dp_service.queries.elements import date_of, days_of
from dp_service.queries.filters import (
    MAXIMUM_TEXT_LENGTH,
    AllOf,
    AnyOf,
    Bound,
    Filter,
    In,
    InPart,
    NotIn,
    Range,
)
from dp_service.queries.functions.bins import Binned
from dp_service.queries.functions.buckets import Truncated
from dp_service.queries.functions.first_times import FirstSeen, Later
from dp_service.queries.functions.funnels import Funnel
from dp_service.queries.functions.ordered_funnels import OrderedFunnel
from dp_service.queries.functions.parts import Extracted
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.functions.whole_bins import WholeBins
from dp_service.queries.intervals import UNIVERSES, ordinal
from dp_service.queries.policy import Policy
from dp_service.queries.tables import Table
from dp_service.queries.value_columns import ValueColumn
from dp_service.terms import ColumnType
from dp_service.values.cells import Grid
from tests.campaigns.one_row.forms import Form
from tests.support.cells import cell_of
from tests.support.queries.quantiles import read_value
from tests.support.queries.reference import holds
from tests.support.texts import NOT_UTF8
from tests.support.values import row_steps, steps_of

_SECOND = 1_000_000
_NOON = 17_897 * 86_400 * _SECOND
_LEAST, _MOST = -(2**63), 2**63 - 1
_CHANGES = (1_540_688_400_000, 1_553_994_000_000)
_FAR = 50_000_000_000 * _SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """One row, as a file holds it: texts that are no UTF-8 as bytes, days and times as integers since 1970."""

    who: int
    member: str | bytes | None = "m"
    text: str | bytes | None = "a"
    number: int | None = 1
    small: int | None = 1
    flag: bool | None = True
    day: int | None = 17_897
    at: int | None = _NOON
    at_s: int | None = _NOON // _SECOND
    at_ms: int | None = _NOON // 1000
    price: float | None = 1.5
    whole: int | None = 2


TYPES = {
    "who": "int64",
    "member": "string",
    "text": "string",
    "number": "int64",
    "small": "int8",
    "flag": "bool",
    "day": "date32",
    "at": "timestamp[us]",
    "at_s": "int64",
    "at_ms": "int64",
    "price": "double",
    "whole": "int64",
}
ORDINARY = (
    Row(0, "m0"),
    Row(1, "m1", text="a%b_c", number=-7, small=-5, flag=False, day=17_898, at=_NOON + 1000),
    Row(2, "m2", text="", number=0, small=0, flag=True, day=17_900, at_s=0, at_ms=1, price=-3.0),
    Row(3, "m3", text="\U0001f600", number=1_000_001, small=2, flag=False, day=-3, at=-1000, whole=-4),
)
_ODD: dict[str, Sequence[Any]] = {
    "member": (None, "", "null", NOT_UTF8, "\U0001f600", "x" * 5000),
    "text": (
        *(
            None,
            "",
            "null",
            "NULL",
            "%",
            "_",
            "\\",
            "\\%",
            "'",
            "\n",
            "a\nb",
            "\r\n",
            "\0",
            "\x85",
            "\u2028",
            "a\u0301",
        ),
        *(
            "A\u212a",
            "\u0131",
            "\U0001f600\U0001f600",
            "\U0010ffff",
            "\ufffd",
            "\ufeff",
            " ",
            "a ",
            "1e999",
            "NaN",
        ),
        *(
            ".*",
            "(?s)(((",
            "[a-",
            "\\E\\Q",
            "${env:HOME}",
            "$1",
            NOT_UTF8,
            b"\xed\xa0\x80",
            b"\xff",
            b"\xc0\xaf",
        ),
        *("a" * 512, "a" * 1024, "a" * 1025, "ab" * 32_768, "a" * 65_536, "\U0001f600" * 600),
    ),
    "number": (None, _LEAST, _LEAST + 1, _MOST, -1, 2**31, -(2**31) - 1, 2**53 + 1),
    "small": (None, -128, -127, 127, -1, 0),
    "flag": (None, False, True),
    "day": (
        None,
        -(2**31),
        2**31 - 1,
        2**31 - 2,
        -(2**31) + 1,
        0,
        2_932_896,
        2_932_897,
        -719_162,
        -719_163,
        -800_000,
    ),
    "at": (
        *(None, _LEAST, _LEAST + 1, -_MOST, _MOST, _MOST - 1, 0, -1, 253_402_300_800 * _SECOND),
        *(
            9_214_646_400 * _SECOND,
            9_214_646_400 * _SECOND - 1,
            -8_520_336_000 * _SECOND,
            -8_520_336_001 * _SECOND,
        ),
    ),
    "at_s": (None, _LEAST, _LEAST + 1, _MOST, _MOST - 1, 0, -1, 9_214_646_400, 253_402_300_800, 2**62),
    "at_ms": (
        *(None, _LEAST, _LEAST + 1, _MOST, _MOST - 1, 0, -1, 253_402_300_800_000, 1_546_300_800_999),
        # Around midnights and both changes of the clocks in Berlin, and where years of weeks end.
        *(edge + more for edge in _CHANGES for more in (-3_600_001, -1, 0, 3_600_000)),
        *(1_546_210_799_999, 1_546_210_800_000, -86_400_001, -18_489_600_000, -18_493_200_000),
    ),
    "price": (
        None,
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        5e-324,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        # At edges of bins, where a number is rounded to the next step.
        *(5.0, 4.995, 4.9949999, -0.005, -0.0050001, -2.0, -2.0050001, -5.0, 5.4999, 19.995, 1e15),
    ),
    "whole": (None, _LEAST, _LEAST + 1, _MOST, 0, -1, -3, -4, -5, 3, 4, 20, 21),
}


def odd_rows() -> Iterator[tuple[str, Row]]:
    """Yield each odd row, after the column that it is odd in, with a member and a number of its own."""
    number = len(ORDINARY)
    for column, values in _ODD.items():
        for value in values:
            yield column, Row(number, f"m{number}")._replace(**{column: value})
            number += 1


def selected(form: Form, policy: Policy, rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    """Return the members or values that a question counts of rows, by element; each row has a member of its own."""
    table = policy.table(form.table)
    found: dict[tuple[Any, ...], set[object]] = {}
    if not form.query.dimensions and not form.resolution.parameters.counts_cells:
        found[()] = set()
    for row in rows:
        element = _element(form, row, table)
        if element is not None:
            found.setdefault(element, set()).add(_counted(form, row, table))
            if form.counted is not None:
                met = found.setdefault((*element, MET), set())
                met |= {row.member} if _is_met(form, row, table) else set()
    return Counter({element: len(members) for element, members in found.items()})


def _counted(form: Form, row: Row, table: Table) -> object:
    measure = form.query.measure
    return _value(row, table.column(measure.column)) if isinstance(measure, DistinctValues) else row.member


MET = "met"
"""Stands behind an element whose number of rows that meet a condition is counted."""


def _is_met(form: Form, row: Row, table: Table) -> bool:
    """Return whether a row that counts meets the condition of a number, and has the value that it is of."""
    if isinstance(form.counted, QueryValue) and not _is_usable(getattr(row, form.counted.name)):
        return False
    (number,) = form.query.aggregates
    return all(_meets(each, row, table) for part in number.parts for each in part.condition)


def _meets(condition: Filter, row: Row, table: Table) -> bool:
    def value_of(name: str) -> Any:
        return _value(row, table.column(name))

    def null_of(name: str) -> Any:
        return table.column(name).value_for_null

    return holds(_in_integers(condition, row, table), value_of, null_of)


def _is_usable(value: Any) -> bool:
    return not (value is None or value == _LEAST or not math.isfinite(value))


def _element(form: Form, row: Row, table: Table) -> tuple[Any, ...] | None:
    """Return the element that a row counts in; None: in none."""
    looked_at = {name: getattr(row, name) for name in form.names}
    if any(isinstance(each, bytes) for each in looked_at.values()) or row.member in (None, "null"):
        return None
    # A row without a value counts beside sums, but not where quantiles are of it.
    ranked = form.resolution.query.quantiles
    names = {ranked.value.name} if ranked is not None and not ranked.value.keeps_nulls else set()
    names |= {each.column for each in form.query.dimensions if isinstance(each, Binned)}
    if not all(_is_usable(looked_at[name]) for name in names):
        return None

    def value_of(name: str) -> Any:
        return _value(row, table.column(name))

    if not all(_meets(each, row, table) for each in form.query.filters):
        return None
    if isinstance(form.query.measure, DistinctValues) and value_of(form.query.measure.column) is None:
        return None

    def shown(dimension: Dimension) -> Any:
        match dimension:
            case WholeBins(bins=bins):
                return next((label for condition, label in bins if _meets(condition, row, table)), None)
            case Binned(column=name, edges=edges, labels=labels):
                number = _rounded(looked_at[name], table.value(name))
                return labels[sum(number >= edge for edge in edges)]
            case PartOfText(column=name, function=function):
                text = _shown(value_of(name))
                return None if text is None else function.of(text)
            case Funnel(steps=steps):
                # The row is its member's only one, so none is later.
                met_steps = [_meets(each, row, table) for each in steps]
                if isinstance(dimension, OrderedFunnel):
                    met_steps = [met_steps[0] and value_of(dimension.column) is not None]
                return (*met_steps, False).index(False) or None
            case _:
                (name,) = columns_of(dimension)
                is_of_time = isinstance(dimension, Truncated | FirstSeen | Later | Extracted)
                found = value_of(name)
                return _of_time(dimension, _local(found, table)) if is_of_time else _shown(found)

    element = tuple(map(shown, form.query.dimensions))
    if None in element or (form.about is not None and element not in form.about):
        return None
    return (*element, _cell(form, row, table)) if form.resolution.parameters.counts_cells else element


def _rounded(value: Any, column: ValueColumn) -> Fraction:
    quantum = column.bounds.quantum
    return quantum.value_of(steps_of(quantum, min(max(value, -(2**40)), 2**40)))


def _cell(form: Form, row: Row, table: Table) -> int:
    """Return the cell of a row that is its member's only one."""
    column = table.quantile(form.query.quantiles[0].column)
    value = read_value(getattr(row, column.name), column)
    step = row_steps(column.bounds, value)
    if step is None:
        raise AssertionError("a row without a value counts in no element")
    return cell_of(Grid.of(column.spec), column.bounds.totals(step))


def _shown(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAXIMUM_TEXT_LENGTH:
        return None
    return days_of(value) if isinstance(value, date) else value


def _of_time(dimension: Dimension, local: datetime) -> int:
    match dimension:
        case Later():
            return 0
        case Extracted(part=part):
            return part.of(local)
        case Truncated(length=length) | FirstSeen(length=length):
            return days_of(length.first_day(local.date()))
    raise AssertionError(dimension)


def _local(value: date | int, table: Table) -> datetime:
    """Return what the clocks of a table's zone show at a day or a time in microseconds, which is in a range."""
    if isinstance(value, date):
        return datetime.combine(value, time.min)
    zone = "UTC" if table.time is None else table.time.zone
    return (_EPOCH + timedelta(microseconds=value)).astimezone(ZoneInfo(zone))


def _value(row: Row, column: Column) -> Any:
    """Return a row's value in a column, a time in microseconds; None: there is none that a condition could hold of."""
    if column.lookup is not None:
        key = _value(row, column.lookup.key)
        return None if key is None else dict(column.lookup.entries).get(key, column.value_for_null)
    value = getattr(row, column.name)
    if column.timestamps is not None:
        return _time(value, column)
    if value is None and column.nulls is Nulls.KEEP:
        return column.null_value
    if column.type is ColumnType.DATE and value is not None:
        universe = UNIVERSES[ColumnType.DATE]
        value = date_of(value) if universe.start <= value < universe.end else None
    return None if value == column.null_value and column.nulls is Nulls.DROP else value


def _time(value: int | None, column: Column) -> int | None:
    stored = None if column.timestamps is None else column.timestamps.stored
    if value is None or value == (column.null_value if stored else ordinal(column.null_value or 0)):
        return None
    universe = UNIVERSES[ColumnType.TIMESTAMP]
    if stored is None:
        return value if universe.start <= value < universe.end else None
    return value * stored.value


def _in_integers(condition: Filter, row: Row, table: Table) -> Filter:
    """Return a condition whose times are microseconds; a day begins at midnight in UTC.

    A condition on a part of such a time becomes one that the row meets as well, or does not.
    """
    match condition:
        case AllOf(parts):
            return AllOf(tuple(_in_integers(each, row, table) for each in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_in_integers(each, row, table) for each in parts))
        case InPart(column, part, numbers) if table.column(column).timestamps is not None:
            at = _value(row, table.column(column))
            # A time that Python has none for is in no question's range.
            is_known = at is not None and abs(at) < _FAR
            return (In if is_known and part.of(_local(at, table)) in numbers else NotIn)(column, (at or 0,))
        case Range(column, lower, upper) if table.column(column).timestamps is not None:
            return Range(column, _microseconds(lower), _microseconds(upper))
    return condition


def _microseconds(bound: Bound | None) -> Bound | None:
    if bound is None:
        return None
    value = bound.value
    is_day = type(value) is date
    return Bound(ordinal(value) * (86_400 * _SECOND if is_day else 1), bound.exclusive)
