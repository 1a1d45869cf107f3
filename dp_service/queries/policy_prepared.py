"""The key `prepared` of a table: its pairs copy has to be a copy of this table, as the policy describes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dp_service.queries.columns import Column, Nulls
from dp_service.queries.pairs_manifest import (
    LARGEST_MANIFEST_BYTES,
    OWN_COLUMNS,
    ManifestError,
    PairsManifest,
    read_manifest,
)
from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_schema import PolicySchema
from dp_service.queries.published_files import NOT_READ
from dp_service.queries.tables import PreparedPairs, Table
from dp_service.queries.times import TimeUnit
from gris_serving.yaml_texts import KeyPath

_Found = Iterator[tuple[str, str]]


def with_prepared(
    tables: Sequence[Table], schema: PolicySchema, directory: Path | None, fault: Fault
) -> tuple[Table, ...]:
    """Return the tables with their pairs copies, and report what is wrong with these.

    Args:
        tables: The tables, without copies.
        schema: What the file says.
        directory: What names of manifests are relative to; None: none may be read, and each is a fault.
        fault: Takes each fault.
    """
    names = [table.name.casefold() for table in tables]
    names += [each.prepared.table.casefold() for each in schema.tables.values() if each.prepared is not None]
    return tuple(_with_copy(table, schema, names, directory, fault) for table in tables)


def _with_copy(
    table: Table, schema: PolicySchema, names: list[str], directory: Path | None, fault: Fault
) -> Table:
    named = schema.tables[table.name].prepared
    if named is None:
        return table
    path: KeyPath = ("tables", table.name, "prepared")
    found = list(_of_table(table))
    if names.count(named.table.casefold()) > 1:
        found.append(("table", "expected a name that no other table or copy of this policy has"))
    file = Path(named.manifest) if directory is None else directory / named.manifest
    try:
        manifest = read_manifest(_content(file, may_be_read=directory is not None))
    except ManifestError as error:
        found.append(("manifest", str(error)))
    else:
        found += [("manifest", each) for each in _of_manifest(table, manifest)]
    for key, message in found:
        fault((*path, key) if key else path, message)
    if found:
        return table
    return table.model_copy(update={"prepared": PreparedPairs(named.table, manifest, file)})


def _content(path: Path, *, may_be_read: bool) -> bytes:
    if not may_be_read:
        raise ManifestError(NOT_READ)
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_MANIFEST_BYTES + 1)
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from None
    if len(content) > LARGEST_MANIFEST_BYTES:
        raise ManifestError(f"{path}: expected at most {LARGEST_MANIFEST_BYTES} bytes")
    return content


def _of_table(table: Table) -> _Found:
    """Yield why no pairs copy can answer for a table."""
    if not table.measures.distinct_members:
        yield "", "expected distinct_members among the measures: a pairs copy counts members and nothing else"
    if table.contributions is not None:
        yield "", "expected no contributions beside it: a pairs copy bounds nobody"
    if table.time is None:
        yield "", "expected a time column: a pairs copy has periods"
    elif any(column.name == table.time.name and column.nulls is Nulls.KEEP for column in table.columns):
        # The table has a day for rows without one, and the copy leaves them out.
        yield "", f"expected nulls: drop for {table.time.name}: a pairs copy has no rows without a time"
    if table.member_column() is None:
        yield "", f"expected {table.member} among the columns: its null_value says which rows have no member"
    for column in table.columns:
        if column.name.casefold() in OWN_COLUMNS:
            yield "", f"expected no column {column.name}: a pairs copy gives the name to one of its own"


def _of_manifest(table: Table, manifest: PairsManifest) -> Iterator[str]:
    """Yield where a manifest is of another copy than one of this table."""
    member, time = table.member_column(), table.time
    if manifest.table != table.name:
        yield f"it is of a copy of another table: expected {table.name}"
    if manifest.member != table.member:
        yield f"the copy was made by another member column: expected {table.member}"
    if member is not None and manifest.null_member != member.null_value:
        yield "the copy was made with another value for no member: expected the member column's null_value"
    if time is not None and manifest.time != time.name:
        yield f"the copy's periods are of another column: expected {time.name}"
    if time is not None and manifest.zone != ("" if time.unit is TimeUnit.DAYS else time.zone):
        yield "the copy's days begin in another zone: expected the time column's, and none for days"
    listed = {column.name: column for column in table.columns}
    for name in manifest.elements:
        yield from _of_element(name, listed.get(name), table)
    for name in manifest.attributes:
        column = listed.get(name)
        is_attribute = column is not None and column.attribute and column.lookup is None
        if not is_attribute or name == table.member:
            yield f"{name} is an attribute in the copy: expected attribute: true for this column"


def _of_element(name: str, column: Column | None, table: Table) -> Iterator[str]:
    if column is None or not column.group_by:
        yield f"{name} is part of the copy's elements: expected a column that questions may group by"
    elif column.lookup is not None:
        # The copy counts pairs with what it holds, and not with what a file says of it now.
        yield f"{name} is part of the copy's elements: expected a column of the table, and not a looked-up one"
    elif column.nulls is Nulls.KEEP:
        # A member may have a row with NULL and one with the value that stands for it: two rows in one element.
        yield f"{name} is part of the copy's elements: expected nulls: drop, for the copy has no rows without it"
    elif table.time is not None and name == table.time.name:
        yield f"{name} is the time column: expected elements of other columns"
