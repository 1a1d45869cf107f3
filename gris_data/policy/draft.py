"""A first policy for somebody's own table: what each column is taken for, by its name and type alone.

No row is read, so a draft says nothing about anybody. Whatever it gets wrong, what it offers is as private as what it
leaves out, as long as the member is the right column; so that column alone is refused rather than guessed where names
leave a doubt.

What a draft offers is safe whatever the data are: domains are unknown and sensitivities unrestricted, except for truth
values, whose domain is their type. Events are clipped by the query. Nothing has to be promised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dp_service.queries.answer_columns import COUNT_COLUMN, MEMBER_COUNT_COLUMN
from dp_service.terms import ColumnType
from gris_data.errors import InputError
from gris_data.names import IDENTIFIER
from gris_data.table_schema import TableColumn, TableSchema

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PEOPLE = _words(
    "member user customer client person subscriber visitor employee student passenger author account "
    "buyer reader viewer player guest citizen household profile rider driver donor learner resident tenant worker"
) | {"patient"}
_KEYS = _words("id uid uuid guid key no nr number num hash code pk")
# People by their own names, or near enough to find one.
_PERSONAL = _words(
    "email mail phone mobile telephone tel fax ssn passport iban surname lastname firstname fullname username "
    "login address street zip zipcode postcode ip ipaddress mac imei idfa gaid birthdate birthday dob lat latitude "
    "lon lng longitude token password secret cookie fingerprint device"
)
_NAME_OF = _words("first last full user customer member client person employee given family middle nick") | {
    "patient"
}
_FREE_TEXT = _words("comment comments note notes message remark remarks body")
# An integer with such a name is likely to count time since 1970; a name like eventTime has two words of it.
_CLOCK = _words("ts timestamp epoch unixtime datetime millis")
_CLOCK_OF = _words("time at")
_HAPPENED = _words(
    "event created updated modified started start ended end received sent seen clicked click bought ordered paid "
    "arrived recorded logged happened occurred inserted server client utc unix"
)
_UNITS = {
    word: unit
    for unit, words in (
        ("seconds", "s sec secs seconds"),
        ("milliseconds", "ms millis milliseconds"),
        ("microseconds", "us micros microseconds"),
    )
    for word in words.split()
}
# What each row, or a few rows of one member, have to themselves.
_EVENTS = _words(
    "order transaction event session request invoice row record visit trace log message payment booking ticket receipt"
)


class Role(Enum):
    """What a column is to a policy."""

    MEMBER = "member"
    ASKED = "asked about"
    NOT_READABLE = "not readable"
    WITHHELD = "withheld"


@dataclass(frozen=True)
class DraftColumn:
    """A column and what the draft makes of it; `reason` says why it is not asked about."""

    column: TableColumn
    role: Role
    reason: str = ""


@dataclass(frozen=True)
class Draft:
    """A first policy of one table.

    Attributes:
        table: The table.
        member: The column of its members.
        is_member_named: Whether the owner named that column; otherwise its own name says what it is.
        time: The time column, None if none or several could be it.
        columns: All columns, in the table's order.
    """

    table: TableSchema
    member: TableColumn
    is_member_named: bool
    time: TableColumn | None
    columns: tuple[DraftColumn, ...]


def draft_of(table: TableSchema, member: str = "") -> Draft:
    """Return a first policy of a table.

    Args:
        table: Its name and columns.
        member: The column of the members; empty: the only one whose name says so.

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
    columns = tuple(_draft_column(each, found, table) for each in table.columns)
    return Draft(table, found, bool(member), _time(columns), columns)


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
            f"without spaces; rename it in the data, in DuckDB by {_renaming(column.name)}; "
            "duckdb.read_csv(.., normalize_names=True) renames where it reads CSV"
        )


def _renaming(name: str) -> str:
    """Return how DuckDB renames a column to a name that a policy can have."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    new = plain if IDENTIFIER.fullmatch(plain) else "another_name"
    quoted = name.replace('"', '""')
    return f'SELECT * RENAME ("{quoted}" AS {new}) FROM ..'  # noqa: S608 - for people to read


def _draft_column(column: TableColumn, member: TableColumn, table: TableSchema) -> DraftColumn:
    if column.name == member.name:
        return DraftColumn(column, Role.MEMBER)
    alike = [each for each in table.columns if each.name.casefold() == column.name.casefold()]
    if len(alike) > 1:
        return DraftColumn(column, Role.NOT_READABLE, "another name differs from it only in case")
    if reason := _unreadable(column):
        return DraftColumn(column, Role.NOT_READABLE, reason)
    # A truth value tells nobody apart, whatever its name says.
    if column.type is not ColumnType.BOOL and (reason := _withheld(column.name)):
        return DraftColumn(column, Role.WITHHELD, reason)
    if column.type is ColumnType.INT64 and is_clock(column.name):
        return DraftColumn(_as_timestamp(column), Role.WITHHELD, _CLOCK_REASON)
    return DraftColumn(column, Role.ASKED)


_CLOCK_REASON = (
    "its name says that it counts time since 1970, of which hardly two members share a value. State the unit that it "
    "counts, and questions can restrict it to ranges; to group by it, add its day to the data"
)


def is_clock(name: str) -> bool:
    """Return whether the name of a column of integers says that they count time since 1970."""
    words = words_of(name)
    joined = name.lower().replace("_", "")
    happened = bool(words & (_CLOCK_OF | _UNITS.keys()) and words & _HAPPENED) or joined in (
        "time",
        "eventtime",
    )
    return bool(words & _CLOCK) or happened


def _as_timestamp(column: TableColumn) -> TableColumn:
    """Return a column of integers as one of timestamps, in the unit that its name says, or in milliseconds."""
    units = [_UNITS[word] for word in sorted(words_of(column.name) & _UNITS.keys())]
    return replace(column, type=ColumnType.TIMESTAMP, time_unit=units[0] if units else "milliseconds")


def _unreadable(column: TableColumn) -> str:
    if column.fault:
        return column.fault
    if not IDENTIFIER.fullmatch(column.name) or column.name.casefold() in (
        COUNT_COLUMN,
        MEMBER_COUNT_COLUMN,
    ):
        return "a policy cannot name it: rename it to ASCII letters, digits and underscores"
    if column.type is None:
        held = column.held or "its type"
        return (
            f"{held}: questions read texts, integers, truth values, days and timestamps; {_instead(column)}"
        )
    return ""


def _instead(column: TableColumn) -> str:
    if column.held.startswith("TIMESTAMP"):
        return "write it in microseconds"
    if column.held in ("FLOAT", "DOUBLE", "DECIMAL", "REAL"):
        return "add it to the data in classes, such as whole tens"
    return "add it to the data as a text"


def _withheld(name: str) -> str:
    words = words_of(name)
    if is_person(name):
        return "its name says that it stands for people too, and only one column is the member"
    if _PERSONAL & words or words == {"name"} or ("name" in words and words & _NAME_OF):
        return "its name says that it tells people apart"
    if _FREE_TEXT & words and not words & _KEYS:
        return "its name says that it is free text, which hardly two members share"
    if words in ({"id"}, {"uuid"}, {"guid"}) or (words & _EVENTS and words & _KEYS):
        return "its name says that one member alone has each value: nothing could be shown, and every question costs"
    return ""


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name, in small letters: of `userId` and `user_id` they are the same."""
    return frozenset(word.lower() for word in _WORDS.findall(name))


def is_person(name: str) -> bool:
    """Return whether a name says that a column holds people: a noun for them, alone or with a word for a key."""
    joined = name.lower().replace("_", "")
    if any(joined == person + key for person in _PEOPLE for key in ("id", "uid", "key")) or joined == "uid":
        return True
    words = words_of(name)
    return bool(words & _PEOPLE) and words <= _PEOPLE | _KEYS


def _time(columns: Sequence[DraftColumn]) -> TableColumn | None:
    """Return the only column of days; without one, the only one of timestamps."""
    asked = [each.column for each in columns if each.role is Role.ASKED]
    days = [column for column in asked if column.type is ColumnType.DATE]
    times = days or [column for column in asked if column.type is ColumnType.TIMESTAMP]
    return times[0] if len(times) == 1 else None
