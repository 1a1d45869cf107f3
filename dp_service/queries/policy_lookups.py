"""The key `lookup` of a column: its values are looked up in a public file, by the values of another column.

What follows for privacy: a looked-up value is a function of its key, so a member has at most as many of them as keys,
and `delta` carries over; so does `typical`, where the column states none. How many rows a member has in one of them is
another number, so tau does not. Which values there are is written in the file, so the column's domain is known without
a look at the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dp_service.queries.columns import Column, Lookup, Nulls
from dp_service.queries.lookups import (
    KEY_TYPES,
    LARGEST_LOOKUP_BYTES,
    Entries,
    LookupFileError,
    hash_of,
    read_lookup,
)
from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_schema import ColumnSchema, LookupSchema
from dp_service.queries.policy_types import PublishedSchema
from dp_service.terms import ColumnType
from gris_serving.yaml_texts import KeyPath

_Found = Iterator[tuple[KeyPath, str]]


@dataclass(frozen=True)
class _Stated:
    """A looked-up column, as the policy describes it, among the table's other columns."""

    column: Column
    schema: ColumnSchema
    lookup: LookupSchema
    listed: Mapping[str, Column]
    schemas: Mapping[str, ColumnSchema]
    member: str

    @property
    def key(self) -> Column | None:
        """The column of the keys, if it can be one."""
        return self.listed.get(self.lookup.column)


def with_lookups(
    columns: Sequence[Column],
    schemas: Mapping[str, ColumnSchema],
    path: KeyPath,
    directory: Path,
    fault: Fault,
    *,
    member: str,
) -> list[Column]:
    """Return the columns of a table with what is looked up, and report what is wrong with it.

    Args:
        columns: The columns, without lookups.
        schemas: What the file says of them.
        path: Where it says so.
        directory: What names of files are relative to.
        fault: Takes each fault.
        member: The member column.
    """
    listed = {column.name: column for column in columns}
    found: list[Column] = []
    for column in columns:
        stated = schemas[column.name].lookup
        if stated is None:
            found.append(column)
            continue
        each = _Stated(column, schemas[column.name], stated, listed, schemas, member)
        found.append(_looked_up(each, (*path, column.name), directory, fault))
    return found


def _looked_up(stated: _Stated, path: KeyPath, directory: Path, fault: Fault) -> Column:
    faults = list(_of_column(stated))
    for key, message in faults:
        fault((*path, *key), message)
    if faults or stated.key is None:
        return stated.column
    try:
        entries = _entries(stated, stated.key, directory)
    except LookupFileError as error:
        fault((*path, "lookup", "file"), str(error))
        return stated.column
    if entries is None:
        fault(
            (*path, "lookup", "hash"), f"expected the SHA-256 of {stated.lookup.file}, which is another one"
        )
        return stated.column
    column = _column(stated.column, Lookup(stated.key, entries, stated.lookup.hash))
    for key, message in _of_values(stated, column):
        fault((*path, *key), message)
    return column


def _of_column(stated: _Stated) -> _Found:
    """Yield what is wrong before the file is read."""
    name, schema = stated.lookup.column, stated.schema
    if stated.column.name == stated.member:
        yield ("lookup",), "expected none: members are not looked up"
    if stated.column.type is not ColumnType.STRING:
        yield ("type",), "expected string: what is looked up are texts"
    if isinstance(schema.domain, PublishedSchema):
        yield ("domain",), "expected a list, or none: the file of the lookup says which values there are"
    path: KeyPath = ("lookup", "column")
    if name == stated.member:
        yield path, "expected another column: a function of the member could single members out"
    elif stated.key is None:
        yield path, "expected a column that the policy lists for this table"
    elif stated.schemas[name].lookup is not None:
        yield path, "expected a column of the table itself, and not a looked-up one"
    elif stated.key.type not in KEY_TYPES:
        yield path, f"expected a column of type {', '.join(KEY_TYPES)}"


def _entries(stated: _Stated, key: Column, directory: Path) -> Entries | None:
    """Return what the file says; None: it is not the file that the policy pins."""
    path = directory / stated.lookup.file
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_LOOKUP_BYTES + 1)
    except (OSError, ValueError) as error:
        # A name with NUL is a ValueError.
        raise LookupFileError(f"{path}: {getattr(error, 'strerror', None) or 'expected a path'}") from None
    if len(content) <= LARGEST_LOOKUP_BYTES and hash_of(content) != stated.lookup.hash:
        return None
    return read_lookup(content, key=key.name, kind=key.type, column=stated.column.name)


def _column(column: Column, lookup: Lookup) -> Column:
    """Return the column with its lookup, and with what follows from that."""
    values = set(lookup.values)
    if column.value_for_null is not None:
        values.add(str(column.value_for_null))
    deltas = [delta for delta in (column.delta, lookup.key.delta) if delta is not None]
    return column.model_copy(
        update={
            "lookup": lookup,
            "domain": tuple(sorted(values)) if column.domain is None else column.domain,
            "delta": min(deltas, default=None),
            "typical": column.typical or lookup.key.typical,
        }
    )


def _of_values(stated: _Stated, column: Column) -> _Found:
    """Yield what is wrong about the values of the file."""
    values = set() if column.lookup is None else set(column.lookup.values)
    if column.nulls is Nulls.DROP and column.null_value in values:
        yield (
            ("lookup", "file"),
            "expected no line with the null_value, which stands for keys without a line, since these are dropped; "
            "state another null_value, or nulls: keep",
        )
    may_be_shown = values | ({column.null_value} if column.nulls is Nulls.KEEP else set())
    if outside := len(set(stated.column.domain or ()) - may_be_shown):
        yield ("domain",), f"expected values that the file of the lookup has; {outside} are not among them"
