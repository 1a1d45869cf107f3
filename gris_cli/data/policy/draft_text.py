"""A first policy as text: YAML with a comment at each decision, for the owner of the data to read and change."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dp_service.queries.filters import Value
from dp_service.terms import ColumnType
from gris_cli.data.policy.draft import Draft, DraftColumn, Role, draft_of, member_of
from gris_cli.data.policy.draft_contents import contents_of, has_rows, reading
from gris_cli.data.policy.draft_numbers import DraftValue, values_of
from gris_cli.data.policy.draft_numbers_text import share_text, value_lines
from gris_cli.data.policy.draft_shape import (
    CURRENCY,
    MOST_UNITS,
    UNITS,
    Shape,
    draft_before,
    shape_of,
    usual_lists,
)
from gris_cli.data.policy.draft_yaml import comment, key
from gris_cli.data.table_schema import TableColumn, TableSchema

TAU = 5
LONGEST_LIST = 75

# A paragraph a line.
_HEAD = (
    "A first policy, made by `gris draft`. Whatever it does not list cannot be asked about.\n"
    "DECIDE marks what only you can know."
)
_READ = (
    "Rows were read, for you as the owner: which columns are left out and why, and shares in comments, tell of them. "
    "Show this file to no analyst before you have taken the comments out.\n"
    "Bounds (typical, rows, units, buckets, lower, upper, grids{bounds} in round numbers, so that they tell little of "
    "anybody; what is chosen by data is outside of the guarantee all the same. DECIDE: keep them, or replace them by "
    "what you know{instead}."
)
_SAME_ROWS = ", from, to) come from the same data,"
_EARLIER_ROWS = (
    ") come from rows before {before} alone, so later rows decide none of them. from, to, max_members, max_rows and "
    "which columns are offered come from all rows,"
)
_UNREAD = (
    "It was made from names and types of columns. No row was read: no value and no count of your data is in this file, "
    "so anyone may read it. It is safe as it stands, whatever the data are. Answers are better with `contributions`, "
    "and `values` needs it: a draft of a file has them."
)
_THEN = "Then: gris check THIS_FILE --data TABLE=PATH"
_CURRENCY = (
    "What an analyst's budget buys. One information unit pays for epsilon_per: a smaller one means more noise "
    "in every count{noise}. delta is what one call adds to the chance "
    "that the guarantee fails: keep it far below one over the number of your members. `gris plan guarantee` "
    "says what a budget is worth."
)
_LAPLACE = "; at 0.15 the noise in most counts is at most 40"
_GAUSSIAN = "`contributions` needs Gaussian noise in counts; guarantees count it."
_TIME = (
    "Questions may be about a range of this column{buckets}. DECIDE: days begin at midnight of `zone`; write yours, "
    "such as Europe/Berlin.{range} If rows keep arriving, {arriving} `refresh: day`: questions then see days that are "
    "over, and the same question stays free until the next day."
)
_RANGE = (
    " Series and first times that state no range are from `from` on and before `to`: months outside of which hardly a "
    "dozen members have rows."
)
_SEVERAL_TIMES = "DECIDE: {others} could be it too; this one was chosen by {why}."
_NO_TIME = (
    "DECIDE: no column looks like the time of a row. Name it here if questions should take a time range:\n"
)
_CONTRIBUTIONS = (
    "What a question costs. Of values that are not listed, a first look finds names; the second counts these alone. "
    "Counts that have to be more exact may cost up to most_units. DECIDE: more units mean less noise at a higher "
    "price; a larger longest_list shows longer lists."
)
_CUT = (
    "Bounds cut at most so much of the number of rows that were read, and of sums, in all and in large elements of "
    "usual lists. Answers say what follows from it. DECIDE: state a larger part, or none, where that is not so."
)
_SUMS = "max_members and max_rows promise that the table never grows beyond: far above what it has."
_MEASURES = "Members are counted once each, so one member changes a count by at most 1. "
_CLIPPED = (
    "Rows are counted too, at most tau of a member in one element: the query itself leaves out the rest (clipped), so "
    "nothing has to be promised. The noise grows with tau; a small tau counts too few rows where members have many. "
    f"{TAU} is a start."
)
_ROWS = (
    "Rows are counted too: so many of a member in full, in all elements of a question together, and less of the rows "
    "of a member with more. With {rows}, one total of all rows loses {cut}."
)
_MEASURES_OF_PINOT = "Pinot counts rows so from version 1.0 on; for an older one, remove `{key}`."
_DISTINCT = (
    "Distinct values of a column may be counted, too: of each member so many count in one element. DECIDE: a larger "
    "number leaves out fewer values, and the noise grows with it; `gris check --data` says how many are left. Columns "
    "with fewer than {least:,} values are not offered: noise would hide their number."
)
_MOST_VALUES = 16
"""A start, for it may not follow from the data."""
_LEAST_VALUES = 64 * _MOST_VALUES
"""At 10 units the noise of a total has a standard deviation of about 4 * _MOST_VALUES."""
_COLUMNS = (
    "What questions may group by and filter on. {keys} left out on purpose:\n"
    "  domain: the list of values that may be shown. Without it the mechanism itself finds which values are "
    "safe to show. DECIDE: list them where they are public anyway, such as countries; answers are then better "
    "and cheaper. Never copy them from the data: everyone would see a value that only one member has. `gris "
    "domain publish` finds them privately."
)
_TYPICAL = (
    "\n  typical: how many values of the column a member has. One with so many counts in full, and one with more "
    "counts with less than 1 in each: the query sees to that, and nothing has to be promised. DECIDE: a smaller number "
    "means less noise, and counts that are too low where members have more."
)
_DELTA = (
    "\n  delta: how many values of the column one member can have. Without it any number, which is always true. "
    "DECIDE: state `delta: 1` only where more is impossible by what the column means, such as the year of "
    "birth. If it is false, so is the guarantee; `gris check --data` compares it with your data."
)


@dataclass(frozen=True)
class Drafted:
    """A draft and, where its rows were read, what was chosen by them: its numbers and the shape; else neither.

    Attributes:
        draft: What each column is.
        shapes: The shape of the rows; empty: none was read.
        values: The columns of numbers.
        distinct: The columns whose distinct values may be counted.
    """

    draft: Draft
    shapes: tuple[Shape, ...] = ()
    values: tuple[DraftValue, ...] = ()
    distinct: tuple[str, ...] = ()


def drafted(
    schema: TableSchema, member: str, before: datetime.date | None = None, *, reads_rows: bool
) -> Drafted:
    """Return a draft of a table.

    Args:
        schema: Its name and columns.
        member: The column of its members; empty: the only one whose name says so.
        before: Bounds are chosen by rows before this day; None: by all rows.
        reads_rows: Whether its rows are read, for their owner; otherwise names and types alone decide.

    Raises:
        InputError: The member is not known, or rows cannot be read.
    """
    who = member_of(schema, member)
    of_names = Drafted(draft_of(schema, who, {}, is_member_named=bool(member)))
    if not reads_rows:
        return of_names
    with reading(schema) as connection:
        if not has_rows(connection, schema, who):
            return of_names
        contents = contents_of(connection, schema, who)
        draft = draft_of(schema, who, contents, is_member_named=bool(member))
        learned = draft if before is None else draft_before(connection, draft, before)
        lists = usual_lists(connection, learned)
        shape = shape_of(connection, draft, lists)
        texts = (each.name for each in draft.elements if each.type is ColumnType.STRING)
        distinct = tuple(each for each in texts if contents[each].values >= _LEAST_VALUES)
        return Drafted(draft, (shape,), tuple(values_of(connection, learned, shape, lists)), distinct)


def draft_text(drafts: Sequence[Drafted], before: datetime.date | None = None) -> str:
    """Return a policy for some tables, with comments; bounds were chosen by rows before a day, or by all."""
    is_read = any(each.shapes for each in drafts)
    where, instead = _SAME_ROWS, ", or by `--learn-before` from earlier rows"
    if before is not None:
        where, instead = _EARLIER_ROWS.format(before=before), ""
    read = _READ.format(bounds=where, instead=instead)
    lines = [
        *comment(f"{_HEAD}\n{read if is_read else _UNREAD}\n{_THEN}"),
        "",
        *comment(_CURRENCY.format(noise="" if is_read else _LAPLACE)),
        f"epsilon_per: {float(CURRENCY.epsilon_per)}",
        f"delta: {float(CURRENCY.delta):g}",
        *([*comment(_GAUSSIAN), "count_noise: gaussian"] if is_read else []),
        "",
        "tables:",
    ]
    for each in drafts:
        lines += _table(each)
    return "\n".join(lines) + "\n"


def _table(drafted: Drafted) -> Iterator[str]:
    draft = drafted.draft
    yield f"  {key(draft.table.name)}:"
    yield from comment(_member_comment(draft), 4)
    yield f"    member: {key(draft.member.name)}"
    yield from _time_lines(drafted)
    for shape in drafted.shapes:
        yield from _contributions(drafted, shape)
    counted, about = f"events: {{tau: {TAU}, tau_is: clipped}}", _CLIPPED
    for shape in drafted.shapes:
        counted = f"rows: {shape.rows}"
        about = _ROWS.format(rows=shape.rows, cut=share_text(shape.rows_cut))
    yield from comment(_MEASURES + about, 4)
    if not draft.table.location:
        yield from comment(_MEASURES_OF_PINOT.format(key=counted.partition(":")[0]), 4)
    yield "    measures:"
    yield "      distinct_members: true"
    yield f"      {counted}"
    if drafted.distinct:
        yield from comment(_DISTINCT.format(least=_LEAST_VALUES), 6)
        yield f"      distinct: {{{', '.join(f'{key(name)}: {_MOST_VALUES}' for name in drafted.distinct)}}}"
    about = _COLUMNS.format(keys="One key is" if drafted.shapes else "Two keys are")
    yield from comment(about + (_TYPICAL if drafted.shapes else _DELTA) + _nulls(draft), 4)
    lines = [line for each in draft.columns for line in _column(each, drafted)]
    is_empty = all(line.lstrip().startswith("#") for line in lines)
    yield f"    columns:{' {}' if is_empty else ''}"
    yield from lines
    yield from value_lines(drafted.values)


def _time_lines(drafted: Drafted) -> Iterator[str]:
    draft, has_buckets = drafted.draft, bool(drafted.shapes)
    if not draft.times:
        yield from comment(_NO_TIME + f"time: {_proposed_time(draft)}", 4)
        return
    time, *others = draft.times
    buckets = "".join(
        f", buckets: {_numbers(shape.buckets)}, parts: {_numbers(shape.parts)}" for shape in drafted.shapes
    )
    months = next((shape.months for shape in drafted.shapes), None)
    ends = "" if months is None else f", from: {months[0]}, to: {months[1]}"
    yield from comment(
        _TIME.format(
            buckets=", and count by buckets and parts of it" if has_buckets else "",
            range=_RANGE if ends else "",
            arriving="replace `to` by" if ends else "add",
        ),
        4,
    )
    if others:
        names = ", ".join(each.name for each in others)
        yield from comment(_SEVERAL_TIMES.format(others=names, why="name and type"), 4)
    yield f"    time: {{{_time(time)}, zone: UTC{ends}{buckets}}}"


def _contributions(drafted: Drafted, shape: Shape) -> Iterator[str]:
    yield from comment(_CONTRIBUTIONS, 4)
    yield "    contributions:"
    yield "      bound: in_query"
    yield f"      units: {UNITS}"
    yield f"      most_units: {MOST_UNITS}"
    yield f"      longest_list: {LONGEST_LIST}"
    largest_cut = max(shape.largest_cut, *(each.most_cut for each in drafted.values), 0.0)
    if largest_cut <= 1 / 2:
        yield from comment(_CUT, 6)
        yield f"      largest_cut: 1/{_part(largest_cut)}"
    if drafted.values:
        yield from comment(_SUMS, 6)
        yield f"      sums: {{max_members: {shape.most_members}, max_rows: {shape.most_rows}}}"


def _part(share: float) -> int:
    """Return the largest power of two, 2 to 64, that a share times is at most 1."""
    return max(2, 1 << (int(1 / max(share, 1 / 64)).bit_length() - 1))


def _numbers(stated: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{name}: {number}" for name, number in stated.items()) + "}"


def _member_comment(draft: Draft) -> str:
    why = "You named it." if draft.is_member_named else "It was chosen by its name."
    return (
        "DECIDE: the member is who is protected, with all their rows. It can be counted, never grouped by or filtered "
        f"on. {why} If one person can have two values of it, such as two devices, the person is not protected: use a "
        "column that joins them."
    )


def _time(column: TableColumn) -> str:
    return f"column: {key(column.name)}, type: {column.type}{_unit(column)}"


def _proposed_time(draft: Draft) -> str:
    """Return a time column for the owner to decide on: integers that seem to count time, where there are some."""
    clocks = [each.column for each in draft.columns if each.role is not Role.ASKED and each.column.time_unit]
    return f"{{{_time(clocks[0])}}}" if clocks else "{column: NAME, type: date}"


_STANDS_FOR_NULL = {
    ColumnType.STRING: "the text 'null'",
    ColumnType.INT64: f"the integer {-(2**63)}",
    ColumnType.TIMESTAMP: "1970-01-01T00:00:00Z",
}


def _nulls(draft: Draft) -> str:
    """Return what happens to rows without a value in the columns that are offered."""
    offered = [each.column for each in draft.columns if each.role in (Role.MEMBER, Role.ASKED)]
    kinds = {column.type for column in offered if column.null_value is None and not column.time_unit}
    stand = [value for kind, value in _STANDS_FOR_NULL.items() if kind in kinds]
    taken = (
        f"So are rows with what Pinot stores for it, on every engine: {', '.join(stand)}. " if stand else ""
    )
    return (
        "\n  null_value: rows in which a column has no value (NULL) are left out of questions that name it. "
        f"{taken}DECIDE: where that is a value like any other, state one that never occurs, such as `null_value: "
        "NONE`; `nulls: keep` counts missing values as that value."
    )


def _unit(column: TableColumn) -> str:
    return f", unit: {column.time_unit}" if column.time_unit else ""


def _column(each: DraftColumn, drafted: Drafted) -> Iterator[str]:
    column = each.column
    typical = "".join(f", typical: {shape.typical.get(column.name, 1)}" for shape in drafted.shapes)
    match each.role:
        case Role.MEMBER:
            if column.type is None:
                yield from comment(
                    f"{column.name}, the member, is {column.held}: it can be counted, and not listed.", 6
                )
                return
            yield from _entry(column, f"type: {column.type}")
        case Role.ASKED if each.is_measured:
            yield from comment("So many different numbers: ranges, sums and bins of them, and no groups.", 6)
            yield from _entry(column, "type: int64, filter: [in, range]")
        case Role.ASKED:
            yield from _asked(column, typical)
        case Role.SUMMED:
            yield from _summed(column, drafted.values)
        case Role.WITHHELD:
            yield from comment(f"Not asked about: {each.reason}. To offer it:", 6)
            offered = _asked(column, typical, with_comment=False)
            yield from (f"      # {line[6:]}" for line in offered)
        case Role.NOT_READABLE:
            yield from comment(f"{_in_one_line(column.name)} cannot be asked about: {each.reason}.", 6)


def _summed(column: TableColumn, values: Sequence[DraftValue]) -> Iterator[str]:
    """Say where a column of fractions is; and of one that holds whole numbers, what it could be."""
    found = [each for each in values if each.name == column.name]
    below = (
        "it has sums, averages and quantiles below"
        if found
        else "it can have sums and quantiles; whole numbers are elements once they are stored as integers"
    )
    yield from comment(f"{column.name}, {column.held}, is no element: {below}.", 6)
    if any(each.is_whole for each in found):
        yield from comment(
            "All its numbers are whole, as where pandas had missing ones: stored as integers, it can be grouped by and "
            "restricted to ranges as well.",
            6,
        )


def _in_one_line(name: str) -> str:
    """Return any name as one line; what cannot be printed is escaped as in JSON."""
    if name.isidentifier() and name.isascii():
        return name
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _asked(column: TableColumn, typical: str, *, with_comment: bool = True) -> Iterator[str]:
    """Yield a column's entry; `typical` is that key with a comma before it, empty where the query bounds no members."""
    match column.type:
        case ColumnType.BOOL:
            if with_comment:
                most = "" if typical else ", and no member can have more than both"
                yield from comment(f"Its domain is its type's{most}. A missing value counts as false.", 6)
            most = typical or ", delta: 2"
            yield from _entry(
                column, f"type: bool, group_by: true, filter: [in], domain: [false, true]{most}"
            )
        case ColumnType.TIMESTAMP:
            if with_comment:
                yield from comment(
                    "Hardly two members share a timestamp: questions restrict it to a range, and do not group by it.",
                    6,
                )
            yield from _entry(column, f"type: timestamp{_unit(column)}, filter: [range]")
        case ColumnType.STRING:
            yield from _entry(column, f"type: string, group_by: true, filter: [in, not_in]{typical}")
        case _:
            yield from _entry(
                column, f"type: {column.type}, group_by: true, filter: [in, not_in, range]{typical}"
            )


def _entry(column: TableColumn, keys: str) -> Iterator[str]:
    null_value = "" if column.null_value is None else f", null_value: {_scalar(column.null_value)}"
    yield f"      {key(column.name)}: {{{keys}{null_value}}}"


def _scalar(value: Value) -> str:
    if isinstance(value, str):
        # A JSON string is a YAML string.
        return json.dumps(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        # Pinot stores whole milliseconds, which is what a policy takes.
        return json.dumps(value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z")
    return str(value)
