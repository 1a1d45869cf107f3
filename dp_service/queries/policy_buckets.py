"""The keys of a policy about buckets and parts of time: what they mean together with the rest of the table.

Both are offered only where the policy names them. A question then sees a known domain, so a member counts in at most so
many of its elements as the query enforces, or in all.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.columns import Nulls
from dp_service.queries.policy_faults import Fault
from dp_service.queries.tables import Policy, Table
from dp_service.queries.time_parts import TimePart
from dp_service.queries.times import TimeColumn, TimeUnit
from dp_service.terms import BoundedBy
from gris_serving.yaml_texts import KeyPath

_Found = Iterator[tuple[KeyPath, str]]


def check_buckets(policy: Policy, fault: Fault) -> None:
    """Report what the keys about buckets have wrong, in all tables."""
    for table in policy.tables:
        for path, message in _faults(table):
            fault(("tables", table.name, *path), message)


def _faults(table: Table) -> _Found:
    if table.time is not None:
        yield from _of_range(table.time)
    for key, offered in (("buckets", table.buckets), ("parts", table.parts)):
        if offered and table.time is not None:
            yield from _of_offered(("time", key), table, table.time)


def _of_range(time: TimeColumn) -> _Found:
    stated = {"from": time.begins, "to": time.ends}
    for key, day in stated.items():
        if day is not None and not time.buckets:
            yield ("time", key), "expected buckets as well, whose questions it is for"
    if time.ends is not None and time.refresh is not None:
        yield ("time", "to"), "expected none beside refresh: closed periods have an end"
    if time.begins is not None and time.ends is not None and time.begins >= time.ends:
        yield ("time", "to"), "expected a day after from: the first that no longer counts"


def _of_offered(path: KeyPath, table: Table, time: TimeColumn) -> _Found:
    block = table.contributions
    if block is not None and block.bounded_by is BoundedBy.PREPARED:
        yield (
            path,
            "expected none beside bound: prepared: a copy has one row for each member, element and period, whenever "
            "the member was active in it",
        )
    if time.unit is not TimeUnit.DAYS and "zone" not in time.model_fields_set:
        yield (
            ("time", "zone"),
            "expected the IANA time zone by whose calendar times have their days, such as Europe/Berlin, or UTC",
        )
    if time.unit is TimeUnit.DAYS and TimePart.HOUR in table.parts and path[-1] == "parts":
        yield path, "expected no hour of a column of days"
    if table.time_column().nulls is Nulls.KEEP:
        yield (
            path,
            "expected none where the time column's NULLs are kept: a row without a time is in no bucket",
        )
