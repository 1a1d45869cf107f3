"""The keys of a policy about buckets of time: what they mean together with the rest of the table.

Buckets are offered only where the policy names their lengths. A question then sees a known domain, so a member counts
in at most so many of them as the query enforces, or in all.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.answer_columns import BUCKET_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Nulls
from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_schema import PolicySchema, TableSchema, TimeSchema
from dp_service.queries.table_contributions import Contributions
from dp_service.queries.tables import Policy, Table
from dp_service.terms import BoundedBy
from gris_serving.yaml_texts import KeyPath

_Found = Iterator[tuple[KeyPath, str]]


def offered_buckets(schema: TimeSchema | None) -> tuple[BucketLength, ...]:
    """Return the lengths of buckets that questions may name, from the shortest on."""
    named = () if schema is None else schema.buckets
    return tuple(length for length in BucketLength if length in named)


def check_buckets(policy: Policy, schema: PolicySchema, fault: Fault) -> None:
    """Report what the keys about buckets have wrong, in all tables."""
    for table in policy.tables:
        for path, message in _faults(table, schema.tables[table.name]):
            fault(("tables", table.name, *path), message)


def _faults(table: Table, stated: TableSchema) -> _Found:
    block = stated.contributions
    if block is not None and block.buckets is not None:
        yield from _of_bound(block, offered=bool(table.buckets))
    if not table.buckets or stated.time is None:
        return
    path: KeyPath = ("time", "buckets")
    if len(stated.time.buckets) > len(table.buckets):
        yield path, "expected each length once"
    if block is not None and block.bounded_by is BoundedBy.PREPARED:
        yield (
            path,
            "expected none beside bound: prepared: in such a copy a member has few elements of its columns, and any "
            "number of days in each",
        )
    holds_days = stated.time.type == "date" or stated.time.unit == "days"
    if not holds_days and "zone" not in stated.time.model_fields_set:
        yield (
            ("time", "zone"),
            "expected the IANA time zone by whose calendar times fall into buckets, such as Europe/Berlin, or UTC",
        )
    yield from _of_columns(table, path)


def _of_bound(block: Contributions, *, offered: bool) -> _Found:
    path: KeyPath = ("contributions", "buckets")
    if block.bounded_by is not BoundedBy.IN_QUERY:
        yield path, "expected this key only with bound: in_query, whose query bounds members in any elements"
    if not offered:
        yield path, "expected time.buckets as well: the buckets that questions may name"


def _of_columns(table: Table, path: KeyPath) -> _Found:
    for column in table.columns:
        if column.name.casefold() == BUCKET_COLUMN:
            yield (
                ("columns", column.name),
                "expected another name: a query by buckets of time gives it to a column of its own",
            )
        is_time = table.time is not None and column.name == table.time.name
        if is_time and column.nulls is Nulls.KEEP:
            yield (
                path,
                "expected none where the time column's NULLs are kept: a row without a time is in no bucket",
            )
