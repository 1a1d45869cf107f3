"""A first policy as text: YAML with a comment at each decision, for the owner of the data to read and change."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence

from dp_service.queries.filters import Value
from dp_service.terms import ColumnType
from gris_data.policy.draft import Draft, DraftColumn, Role
from gris_data.table_schema import TableColumn

EPSILON_PER, DELTA = "0.15", "1e-10"
TAU = 5
_WIDTH = 116

# A paragraph a line.
_HEAD = (
    "A first policy, made by `gris policy draft` from names and types of columns. No row was read: no value and "
    "no count of your data is in this file, so anyone may read it. Whatever it does not list cannot be asked "
    "about.\n"
    "DECIDE marks what only you can know. The rest is safe as it stands, whatever the data are.\n"
    "Then: gris policy check THIS_FILE --data TABLE=PATH"
)
_CURRENCY = (
    "What an analyst's budget buys. One information unit pays for epsilon_per: a smaller one means more noise "
    "in every count; at 0.15 the noise in most counts is at most 40. delta is what one call adds to the chance "
    "that the guarantee fails: keep it far below one over the number of your members. `gris plan guarantee` "
    "says what a budget is worth."
)
_TIME = (
    "Questions may be about a range of this column. DECIDE: if rows keep arriving, add `refresh: day`. "
    "Questions then see days that are over, and the same question stays free until the next day. Add `zone: "
    "Europe/Berlin` if days begin there; without it they begin at midnight UTC."
)
_NO_TIME = (
    "DECIDE: no column, or more than one, looks like the time of a row. Name it here if questions should take a "
    "time range:\n"
)
_MEASURES = (
    "Members are counted once each, so one member changes a count by at most 1. Rows are counted too, at most "
    "tau of a member in one element: the query itself leaves out the rest (clipped), so nothing has to be "
    "promised. The noise grows with tau, to about 40 times tau; a small tau counts too few rows where members "
    f"have many. {TAU} is a start."
)
_MEASURES_OF_PINOT = "Pinot counts clipped rows from version 1.0 on; for an older one, remove `events`."
_COLUMNS = (
    "What questions may group by and filter on. Three keys are left out on purpose:\n"
    "  domain: the list of values that may be shown. Without it the mechanism itself finds which values are "
    "safe to show. DECIDE: list them where they are public anyway, such as countries; answers are then better "
    "and cheaper. Never copy them from the data: everyone would see a value that only one member has. `gris "
    "domain publish` finds them privately.\n"
    "  delta: how many values of the column one member can have. Without it any number, which is always true. "
    "DECIDE: state `delta: 1` only where more is impossible by what the column means, such as the year of "
    "birth. If it is false, so is the guarantee; `gris policy check --data` compares it with your data."
)


def draft_text(drafts: Sequence[Draft]) -> str:
    """Return a policy for some tables, with comments."""
    lines = [
        *_comment(_HEAD),
        "",
        *_comment(_CURRENCY),
        f"epsilon_per: {EPSILON_PER}",
        f"delta: {DELTA}",
        "",
        "tables:",
    ]
    for draft in drafts:
        lines += _table(draft)
    return "\n".join(lines) + "\n"


def _table(draft: Draft) -> Iterator[str]:
    yield f"  {_key(draft.table.name)}:"
    yield from _comment(_member_comment(draft), 4)
    yield f"    member: {_key(draft.member.name)}"
    if draft.time is None:
        yield from _comment(_NO_TIME + f"time: {_proposed_time(draft)}", 4)
    else:
        yield from _comment(_TIME, 4)
        yield f"    time: {_time(draft.time)}"
    yield from _comment(_MEASURES, 4)
    if not draft.table.location:
        yield from _comment(_MEASURES_OF_PINOT, 4)
    yield "    measures:"
    yield "      distinct_members: true"
    yield f"      events: {{tau: {TAU}, tau_is: clipped}}"
    yield from _comment(_COLUMNS + _nulls(draft), 4)
    yield "    columns:"
    for each in draft.columns:
        yield from _column(each)


def _member_comment(draft: Draft) -> str:
    why = "You named it." if draft.is_member_named else "It was chosen by its name."
    return (
        "DECIDE: the member is who is protected, with all their rows. It can be counted, never grouped by or filtered "
        f"on. {why} If one person can have two values of it, such as two devices, the person is not protected: use a "
        "column that joins them."
    )


def _time(column: TableColumn) -> str:
    return f"{{column: {_key(column.name)}, type: {column.type}{_unit(column)}}}"


def _proposed_time(draft: Draft) -> str:
    """Return a time column for the owner to decide on: integers that seem to count time, where there are some."""
    clocks = [each.column for each in draft.columns if each.role is not Role.ASKED and each.column.time_unit]
    return _time(clocks[0]) if clocks else "{column: NAME, type: date}"


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


def _column(each: DraftColumn) -> Iterator[str]:
    column = each.column
    match each.role:
        case Role.MEMBER:
            if column.type is None:
                yield from _comment(
                    f"{column.name}, the member, is {column.held}: it can be counted, and not listed.", 6
                )
                return
            yield from _entry(column, f"type: {column.type}")
        case Role.ASKED:
            yield from _asked(column)
        case Role.WITHHELD:
            yield from _comment(f"Not asked about: {each.reason}. To offer it:", 6)
            yield from (f"      # {line[6:]}" for line in _asked(column, with_comment=False))
        case Role.NOT_READABLE:
            yield from _comment(f"{_in_one_line(column.name)} cannot be asked about: {each.reason}.", 6)


def _in_one_line(name: str) -> str:
    """Return any name as one line; what cannot be printed is escaped as in JSON."""
    if name.isidentifier() and name.isascii():
        return name
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _asked(column: TableColumn, *, with_comment: bool = True) -> Iterator[str]:
    match column.type:
        case ColumnType.BOOL:
            if with_comment:
                yield from _comment(
                    "Its domain is its type's, and no member can have more than both. A missing value counts as false.",
                    6,
                )
            yield from _entry(
                column, "type: bool, group_by: true, filter: [in], domain: [false, true], delta: 2"
            )
        case ColumnType.TIMESTAMP:
            if with_comment:
                yield from _comment(
                    "Hardly two members share a timestamp: questions restrict it to a range, and do not group by it.",
                    6,
                )
            yield from _entry(column, f"type: timestamp{_unit(column)}, filter: [range]")
        case ColumnType.STRING:
            yield from _entry(column, "type: string, group_by: true, filter: [in, not_in]")
        case _:
            yield from _entry(column, f"type: {column.type}, group_by: true, filter: [in, not_in, range]")


def _entry(column: TableColumn, keys: str) -> Iterator[str]:
    null_value = "" if column.null_value is None else f", null_value: {_scalar(column.null_value)}"
    yield f"      {_key(column.name)}: {{{keys}{null_value}}}"


def _key(name: str) -> str:
    """Return a name as YAML takes it for a text."""
    return json.dumps(name) if name.lower() in ("true", "false", "null") else name


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


def _comment(text: str, indent: int = 0) -> Iterator[str]:
    margin = " " * indent
    for line in text.splitlines():
        yield from (f"{margin}# {part}" for part in _wrapped(line, _WIDTH - indent))


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line in pieces that fit, with its own indentation."""
    indent = line[: len(line) - len(line.lstrip())]
    piece = ""
    for word in line.split():
        if piece and len(indent) + len(piece) + 1 + len(word) > width:
            yield indent + piece
            piece = ""
        piece = f"{piece} {word}" if piece else word
    yield indent + piece
