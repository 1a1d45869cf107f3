"""A first policy for somebody's own table: what each column is taken for, by its name and type, and by what it holds.

Only a wrong member column makes a draft less private: any other column may be offered or left out by mistake. So the
member alone is refused rather than guessed where names leave a doubt. Domains are unknown, except for
truth values, whose domain is their type. Events are clipped and contributions bounded by the query. Of members, nothing
has to be promised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dp_service.queries.answer_columns import COUNT_COLUMN, MEMBER_COUNT_COLUMN
from dp_service.terms import ColumnType
from gris_cli.data.errors import InputError
from gris_cli.data.names import IDENTIFIER
from gris_cli.data.policy.draft_contents import ColumnContents, finding_of_contents, is_measured
from gris_cli.data.policy.draft_names import (
    Finding,
    Kind,
    clock_unit,
    finding_of_name,
    is_clock,
    is_later,
    is_person,
)
from gris_cli.data.table_schema import TableColumn, TableSchema

# One of DuckDB's own type is not readable only where Parquet holds it in a way that does not bound its values.
_STAMPS = {
    "TIMESTAMP": "milliseconds or INT96",
    "TIMESTAMP_S": "seconds",
    "TIMESTAMP_MS": "milliseconds",
    "TIMESTAMP_NS": "nanoseconds",
}


class Role(Enum):
    """What a column is to a policy."""

    MEMBER = "member"
    ASKED = "asked about"
    SUMMED = "summed"
    NOT_READABLE = "not readable"
    WITHHELD = "withheld"


@dataclass(frozen=True)
class DraftColumn:
    """A column and what the draft makes of it.

    Attributes:
        column: The column.
        role: What it is to the policy.
        reason: Why it is not asked about.
        kind: Which of the reasons that is, None: its type.
        is_measured: Whether its integers are so many that only ranges and sums of them are asked about.
    """

    column: TableColumn
    role: Role
    reason: str = ""
    kind: Kind | None = None
    is_measured: bool = False


@dataclass(frozen=True)
class Draft:
    """A first policy of one table.

    Attributes:
        table: The table.
        member: The column of its members.
        is_member_named: Whether the owner named that column; otherwise its own name says what it is.
        times: The columns that could be the time of a row, the likeliest first.
        columns: All columns, in the table's order.
    """

    table: TableSchema
    member: TableColumn
    is_member_named: bool
    times: tuple[TableColumn, ...]
    columns: tuple[DraftColumn, ...]

    @property
    def elements(self) -> tuple[TableColumn, ...]:
        """The columns that questions may group by."""
        return tuple(
            each.column
            for each in self.columns
            if each.role is Role.ASKED
            and not each.is_measured
            and each.column.type is not ColumnType.TIMESTAMP
        )

    @property
    def answers_nothing(self) -> bool:
        """Whether no question but one for all members could be asked."""
        return not self.times and not any(each.role in (Role.ASKED, Role.SUMMED) for each in self.columns)


def draft_of(
    table: TableSchema, member: TableColumn, contents: Mapping[str, ColumnContents], *, is_member_named: bool
) -> Draft:
    """Return a first policy of a table.

    Args:
        table: Its name and columns.
        member: The column of its members, from `member_of`.
        contents: What columns hold, by name; empty: nothing was read, and names and types alone decide.
        is_member_named: Whether the owner named the member.
    """
    columns = tuple(_draft_column(each, member, table, contents.get(each.name)) for each in table.columns)
    times = _times(columns, has_rows=bool(contents))
    # Of integers that are the table's time, the unit is stated.
    offered = (DraftColumn(each.column, Role.ASKED) if each.column in times[:1] else each for each in columns)
    return Draft(table, member, is_member_named, times, tuple(offered))


def member_of(table: TableSchema, member: str = "") -> TableColumn:
    """Return the column of the members.

    Args:
        table: Its name and columns.
        member: The column's name; empty: the only one whose name says so.

    Raises:
        InputError: The member is not known, or cannot be one; or a policy cannot name the table.
    """
    if not IDENTIFIER.fullmatch(table.name):
        raise InputError(
            f"a policy names tables by ASCII letters, digits and underscores, not {table.name!r}; TABLE=PATH gives it "
            "one"
        )
    found = _named(table, member) if member else _guessed(table)
    _require_member(found)
    return found


def _named(table: TableSchema, member: str) -> TableColumn:
    for column in table.columns:
        if column.name == member:
            return column
    raise InputError(f"there is no column {member}; there are {_listed(table.columns)}", "member")


def _guessed(table: TableSchema) -> TableColumn:
    """Return the only column whose name says that it holds people.

    A wrong member protects nobody: somebody's orders one by one, for example, and not the person. So two candidates are
    as good as none.
    """
    possible = [each for each in table.columns if each.can_be_member and each.type is not ColumnType.BOOL]
    people = [column for column in possible if is_person(column.name)]
    if len(people) == 1:
        return people[0]
    if not people:
        raise InputError(
            "no column's name says that it holds the person who is to be protected, with all their rows; state which "
            f"of these does: {_listed(possible or table.columns)}",
            remedy="member",
        )
    raise InputError(
        f"several columns could hold the person who is to be protected: {_listed(people)}; state which does",
        remedy="member",
    )


def _listed(columns: Sequence[TableColumn]) -> str:
    return ", ".join(f"{each.name} ({each.held})" for each in columns)


def _require_member(column: TableColumn) -> None:
    if not column.can_be_member or column.type is ColumnType.BOOL:
        raise InputError(
            f"the member column {column.name}: members need a column of texts, integers or days; this one is "
            f"{column.held}"
        )
    if not IDENTIFIER.fullmatch(column.name):
        raise InputError(
            f'the member column "{column.name}": a policy names columns by ASCII letters, digits and underscores, '
            f"without spaces; rename it in the data, in DuckDB by {_renaming(column.name)}"
        )


def _renaming(name: str) -> str:
    """Return how DuckDB renames a column to a name that a policy can have."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    new = plain if IDENTIFIER.fullmatch(plain) else "another_name"
    quoted = name.replace('"', '""')
    return f'SELECT * RENAME ("{quoted}" AS {new}) FROM ..'  # noqa: S608 - for people to read


def _draft_column(
    column: TableColumn, member: TableColumn, table: TableSchema, held: ColumnContents | None
) -> DraftColumn:
    if column.name == member.name:
        return DraftColumn(column, Role.MEMBER)
    if reason := _unnamable(column, table):
        return DraftColumn(column, Role.NOT_READABLE, reason)
    # A truth value tells nobody apart, whatever its name says.
    if column.type is not ColumnType.BOOL and (finding := _finding(column, held)):
        role = Role.NOT_READABLE if column.type is None else Role.WITHHELD
        return DraftColumn(column, role, finding.reason, finding.kind)
    return _usable(column, table, held)


def _finding(column: TableColumn, held: ColumnContents | None) -> Finding | None:
    """Return why a column is left out, by its name or by what it holds; a few values of many members are no secret."""
    named = finding_of_name(column.name, column.type)
    is_everybodys = named is not None and named.is_open and held is not None and held.is_everybodys
    if is_everybodys or (named is not None and named.kind is Kind.FREE_TEXT and column.has_fractions):
        named = None
    # Hardly two members share a time: that is no reason to take it for a key.
    seen = None if _is_clock(column, held) else finding_of_contents(column, held)
    if named is None or (seen is not None and seen.kind is Kind.OTHER_PEOPLE):
        return seen
    return named


def _usable(column: TableColumn, table: TableSchema, held: ColumnContents | None) -> DraftColumn:
    """Return what a column is that nothing speaks against."""
    if column.has_fractions:
        return DraftColumn(column, Role.SUMMED)
    if column.type is None:
        return DraftColumn(column, Role.NOT_READABLE, _unread(column, table))
    if _is_clock(column, held):
        unit = (held and held.clock_unit) or clock_unit(column.name) or "milliseconds"
        stamps = replace(column, type=ColumnType.TIMESTAMP, time_unit=unit)
        return DraftColumn(stamps, Role.WITHHELD, _CLOCK_REASON, Kind.TIME)
    return DraftColumn(column, Role.ASKED, is_measured=is_measured(column, held))


def _is_clock(column: TableColumn, held: ColumnContents | None) -> bool:
    return column.type is ColumnType.INT64 and (
        is_clock(column.name) or (held is not None and held.clock_unit != "")
    )


_CLOCK_REASON = (
    "it seems to count time since 1970, of which hardly two members share a value. State the unit that it "
    "counts, and questions can restrict it to ranges; to group by it, add its day to the data"
)


def _unnamable(column: TableColumn, table: TableSchema) -> str:
    alike = [each for each in table.columns if each.name.casefold() == column.name.casefold()]
    if len(alike) > 1:
        return "another name differs from it only in case"
    if column.fault:
        return column.fault
    if IDENTIFIER.fullmatch(column.name) and column.name.casefold() not in (
        COUNT_COLUMN,
        MEMBER_COUNT_COLUMN,
    ):
        return ""
    return "a policy cannot name it: rename it to ASCII letters, digits and underscores"


def _unread(column: TableColumn, table: TableSchema) -> str:
    held, instead = column.held or "its type", "add it to the data as a text"
    if held.startswith("TIMESTAMP"):
        unit = _STAMPS.get(held, "")
        held += f", a timestamp in {unit}" if unit else ""
        instead = "write it in microseconds"
    return f"{held}: questions read texts, numbers, truth values, days and timestamps; {instead}"


def _times(columns: Sequence[DraftColumn], *, has_rows: bool) -> tuple[TableColumn, ...]:
    """Return the columns that could be the time of a row: those of events before those of what comes later.

    Integers that seem to count time are among them if rows were read, by which their unit was seen to fit.
    """
    asked = [each.column for each in columns if each.role is Role.ASKED]
    times = [column for column in asked if column.type in (ColumnType.DATE, ColumnType.TIMESTAMP)]
    if not times and has_rows:
        times = [each.column for each in columns if each.kind is Kind.TIME]
    return tuple(sorted(times, key=lambda column: is_later(column.name)))
