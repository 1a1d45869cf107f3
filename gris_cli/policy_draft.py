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
from dataclasses import dataclass
from enum import Enum

from dp_service.queries.policy_schema import COUNT_COLUMN, MEMBER_COUNT_COLUMN
from dp_service.terms import ColumnType
from gris_cli.table_schema import TableColumn, TableSchema

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PEOPLE = _words(
    "member user customer client person subscriber visitor employee student passenger author account "
    "buyer reader viewer player guest citizen household profile"
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


class DraftError(ValueError):
    """No draft can be made; the text says what the owner has to say or change."""


def draft_of(table: TableSchema, member: str = "") -> Draft:
    """Return a first policy of a table.

    Args:
        table: Its name and columns.
        member: The column of the members; empty: the only one whose name says so.

    Raises:
        DraftError: The member is not known, or cannot be one; or a policy cannot name the table.
    """
    if not _IDENTIFIER.fullmatch(table.name):
        raise DraftError(
            f"{table.name}: a policy names tables by ASCII letters, digits and underscores; TABLE=PATH gives it one"
        )
    found = _named(table, member) if member else _guessed(table)
    _require_member(found)
    columns = tuple(_draft_column(each, found, table) for each in table.columns)
    return Draft(table, found, bool(member), _time(columns), columns)


def _named(table: TableSchema, member: str) -> TableColumn:
    for column in table.columns:
        if column.name == member:
            return column
    raise DraftError(f"--member: there is no column {member}; there are {_listed(table.columns)}")


def _guessed(table: TableSchema) -> TableColumn:
    """Return the only column whose name says that it holds people.

    A wrong member protects nobody: somebody's orders one by one, for example, and not the person. So two candidates are
    as good as none.
    """
    people = [column for column in table.columns if is_person(column.name) and column.can_be_member]
    if len(people) == 1:
        return people[0]
    doubt = f"several could be it: {_listed(people)}" if people else f"it is one of {_listed(table.columns)}"
    raise DraftError(
        "--member COLUMN says which column holds the person who is to be protected, with all their rows; "
        + doubt
    )


def _listed(columns: Sequence[TableColumn]) -> str:
    return ", ".join(f"{each.name} ({each.held})" for each in columns)


def _require_member(column: TableColumn) -> None:
    if not column.can_be_member or column.type is ColumnType.BOOL or not _IDENTIFIER.fullmatch(column.name):
        raise DraftError(
            f"--member {column.name}: members need a column of texts, integers or days, with a name of ASCII letters, "
            f"digits and underscores; this one is {column.held}"
        )


def _draft_column(column: TableColumn, member: TableColumn, table: TableSchema) -> DraftColumn:
    if column.name == member.name:
        return DraftColumn(column, Role.MEMBER)
    alike = [each for each in table.columns if each.name.casefold() == column.name.casefold()]
    if len(alike) > 1:
        return DraftColumn(column, Role.NOT_READABLE, "another name differs from it only in case")
    if reason := _unreadable(column):
        return DraftColumn(column, Role.NOT_READABLE, reason)
    if reason := _withheld(column.name):
        return DraftColumn(column, Role.WITHHELD, reason)
    return DraftColumn(column, Role.ASKED)


def _unreadable(column: TableColumn) -> str:
    if column.fault:
        return column.fault
    if not _IDENTIFIER.fullmatch(column.name) or column.name.casefold() in (
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
