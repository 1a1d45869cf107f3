"""Questions of each kind: Pinot counts what a reference in plain Python counts, or the question is refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.elements import days_of
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy
from dp_service.queries.time_parts import TimePart
from dp_service.terms import MemberValue
from pinot_connector.engines.base import EngineAnswer, Feature
from pinot_connector.errors import EngineRefused
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.connector import FIRST_DAY, answered, refused, require_equal
from tests.campaigns.pinot_check.rows import row
from tests.support.engine_queries import engine_query
from tests.support.queries import buckets as time_buckets
from tests.support.queries import lookups, odd_conditions, of_members, quantiles, row_functions, strategies
from tests.support.queries import sums as member_sums
from tests.support.queries.reference import Row, answer

_UTC = datetime.UTC
_START, _END = (
    datetime.datetime(2023, 12, 20, 5, tzinfo=_UTC),
    datetime.datetime(2024, 11, 2, 9, tzinfo=_UTC),
)

Asked = tuple[Resolution, Sequence[tuple[object, ...]]]
"""A question, and the rows that the reference has for it."""


@row
def sums(cluster: CheckedCluster) -> str:
    """Sums and averages are the reference's, of halves, NaN, 2^53 + 1 and groups in which nobody has a value."""
    _need_multistage(cluster)
    asked: list[Asked] = []
    rows = member_sums.odd_rows(500)
    for place, (whole, number) in enumerate(zip(member_sums.WHOLES, member_sums.NUMBERS, strict=True)):
        policy = member_sums.policy(whole=whole, number=number)
        table = _filled_with_numbers(cluster, f"sums_{place}", policy, rows)
        questions = [
            member_sums.asked("number", "whole", by=by, measure=measure)
            for by in ((), ("text",))
            for measure in Measure
        ]
        asked += [
            (_asked_of(table, each, policy), member_sums.reference(each, policy, rows)) for each in questions
        ]
    return _compared(cluster, asked)


@row
def quantiles_of_members(cluster: CheckedCluster) -> str:
    """Medians and quantiles find the cells of the reference, whichever value of a member counts."""
    _need_multistage(cluster)
    asked: list[Asked] = []
    rows = member_sums.odd_rows(500)
    for rule in MemberValue:
        policy = quantiles.policy()
        table = _filled_with_numbers(cluster, f"cells_{rule.value}", policy, rows)
        questions = [
            quantiles.asked(column, by, of=rule) for column in ("whole", "number") for by in ((), ("text",))
        ]
        asked += [
            (_asked_of(table, each, policy), quantiles.reference(each, policy, rows)) for each in questions
        ]
    return _compared(cluster, asked)


@row
def buckets(cluster: CheckedCluster) -> str:
    """Buckets and parts of time, and conditions on parts, are those of Python's calendar, across changes of clocks."""
    times = [_START + datetime.timedelta(hours=31 * step) for step in range(-3, 250)]
    changes = (datetime.datetime(2024, month, day, 1, tzinfo=_UTC) for month, day in ((3, 31), (10, 27)))
    times += [each + datetime.timedelta(hours=hours) for each in changes for hours in range(-3, 3)]
    rows = [time_buckets.Row(f"m{place}", at) for place, at in enumerate(times)]
    table = cluster.create("buckets", {"member": "STRING", "text": "STRING", "at": "LONG"})
    stored = [
        (each.member, each.text, time_buckets.stored(each.at, "milliseconds")) for each in rows if each.at
    ]
    _upload(cluster, table, ("member", "text", "at"), stored)
    policy = _named(time_buckets.policy("milliseconds", contributions=""), table)
    asked: list[Asked] = []
    for function in time_buckets.functions("milliseconds"):
        question = replace(time_buckets.asked(function, _START, _END), table=table)
        found = time_buckets.counted(rows, function, (_START, _END), "Europe/Berlin", "milliseconds")
        wanted = [
            (days_of(each) if isinstance(each, datetime.date) else each, count)
            for each, count in found.items()
        ]
        asked.append((resolve(question, policy, now=time_buckets.NOW), wanted))
    of_hours = time_buckets.members_of_hours(rows, (_START, _END), "Europe/Berlin", 1000)
    for part in TimePart:
        by_condition = time_buckets.sorted_by(part, _START, _END)
        for question, counts in zip(by_condition, time_buckets.sorted_in(part, of_hours), strict=True):
            asked.append((resolve(replace(question, table=table), policy, now=time_buckets.NOW), counts))
    return _compared(cluster, asked)


@row
def functions_of_members(cluster: CheckedCluster) -> str:
    """Funnels, first times and later ones count each member by all of its rows."""
    asked: list[Asked] = []
    rows = [each._replace(text=each.text or "c") for each in of_members.random_rows(Random(7)) if each.at]
    times = [time_buckets.stored(each.at, "milliseconds") for each in rows if each.at]
    stored = [(each.member, each.text, str(at)) for each, at in zip(rows, times, strict=True)]
    for kind, in_pinot in (("timestamps", "TIMESTAMP"), ("milliseconds", "LONG")):
        columns = {"member": "STRING", "text": "STRING", "at": in_pinot}
        table = cluster.create(f"of_members_{in_pinot.lower()}", columns)
        _upload(cluster, table, tuple(columns), stored)
        for each in of_members.QUESTIONS:
            if each.kind == kind:
                policy = _named(time_buckets.policy(kind, each.zone, contributions=""), table)
                found = resolve(replace(each.question, table=table), policy, now=time_buckets.NOW)
                counts = of_members.days_in(each.counted(rows))
                asked.append((found, [(*element, count) for element, count in counts.items()]))
    return _compared(cluster, asked)


@row
def functions_of_rows(cluster: CheckedCluster) -> str:
    """Bins of numbers and parts of texts are Python's, of NaN, infinities, quotes and letters beyond ASCII."""
    # Pinot cuts longer texts.
    rows = [each for each in row_functions.rows() if len(each.text or "") <= 512]
    table = _filled_with_numbers(cluster, "functions", row_functions.POLICY, rows)
    asked: list[Asked] = []
    for function in row_functions.FUNCTIONS:
        found = row_functions.resolved(function)
        resolution = replace(found, query=replace(found.query, table=table))
        asked.append((resolution, [*row_functions.expected(function, rows).items()]))
    return _compared(cluster, asked)


@row
def looked_up(cluster: CheckedCluster) -> str:
    """Columns that the policy looks up count what the reference counts, with quotes, backslashes and many lengths."""
    asked: list[Asked] = []
    table = cluster.name_of("looked_up")
    for kept in (False, True):
        for bounded in (False, True):
            policy, rows, questions = lookups.nasty(kept=kept, bounded=bounded)
            if not asked:
                cluster.create("looked_up", {"member": "STRING", "text": "STRING"})
                _upload(cluster, table, ("member", "text"), [(each.member, each.text) for each in rows])
            named = _named(policy, table)
            for each in (replace(question, table=table) for question in questions):
                wanted = lookups.expected(each, named, rows)
                asked.append((resolve(each, named, now=strategies.NOW), wanted))
    return _compared(cluster, asked)


@row
def conditions(cluster: CheckedCluster) -> str:
    """Conditions of every form, and CASE of them, hold of the rows that the reference finds, NULL and quotes too."""
    rows = [each for each in odd_conditions.ROWS if each.day is not None]
    kinds = {"member": "STRING", "text": "STRING", "number": "LONG", "flag": "BOOLEAN"}
    table = cluster.create("conditions", kinds)
    _upload_parts(cluster, table, [_stored(each) for each in rows])
    asked: list[Asked] = []
    for policy in (odd_conditions.DROPPED, odd_conditions.KEPT):
        named = _named(policy, table)
        for condition, counted in product(odd_conditions.CONDITIONS, ("DISTINCT member", "*")):
            each = replace(odd_conditions.asked(condition, policy, "text", counted), table=table)
            resolution = resolve(each, named, now=strategies.NOW)
            asked.append((resolution, answer(each, named, rows, now=strategies.NOW)))
    return _compared(cluster, asked)


def _stored(row: Row) -> dict[str, object]:
    return {**row._asdict(), "day": None if row.day is None else days_of(row.day)}


def _need_multistage(cluster: CheckedCluster) -> None:
    if cluster.version < (1, 0):
        raise CannotTryError("needs the multi-stage engine, and so Pinot 1.0")


def _named(policy: Policy, name: str) -> Policy:
    """Return the policy of one table for a table of this name."""
    (table,) = policy.tables
    return replace(policy, tables=(table.model_copy(update={"name": name}),))


def _asked_of(table: str, question: HistogramQuery, policy: Policy) -> Resolution:
    """Return a question as it is asked of a table whose name is another on each run.

    The salt that orders a member's elements is of the policy's table, so that the same of them count on every run.
    """
    resolution = resolve(question, policy, now=0)
    return replace(resolution, query=replace(resolution.query, table=table))


def _filled_with_numbers(
    cluster: CheckedCluster, name: str, policy: Policy, rows: Sequence[member_sums.Row]
) -> str:
    kinds = {"member": "STRING", "text": "STRING", "whole": "LONG", "number": "DOUBLE"}
    (described,) = policy.tables
    table = cluster.create(name, kinds, nulls=member_sums.nulls_in_pinot(policy, described.name))
    _upload(cluster, table, member_sums.Row._fields, member_sums.as_in_pinot(policy, described.name, rows))
    return table


def _upload(
    cluster: CheckedCluster, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Put rows into four segments, so that members are on every server."""
    stored = [{**dict(zip(names, each, strict=True)), "day": FIRST_DAY} for each in rows]
    _upload_parts(cluster, table, stored)


def _upload_parts(cluster: CheckedCluster, table: str, stored: Sequence[Mapping[str, object]]) -> None:
    for part in range(4):
        cluster.upload(table, str(part), stored[part::4])
    cluster.wait_for_rows(table, len(stored))


def _compared(cluster: CheckedCluster, asked: Sequence[Asked]) -> str:
    """Compare each answer with the reference's rows, and try that an old version is not even asked."""
    refusals = 0
    with closing(cluster.engine()) as engine:
        for resolution, wanted in asked:
            query = engine_query(resolution, "pinot")
            if Feature.PINOT_MULTISTAGE in query.requires and cluster.version < (1, 0):
                with refused(EngineRefused, "a question that needs the multi-stage engine"):
                    engine.check(query)
                refusals += 1
                continue
            by = ", ".join(each.name for each in resolution.query.dimensions) or "all"
            require_equal(sorted(wanted, key=repr), _rows_of(answered(engine, query)), f"other rows by {by}")
    return f"{len(asked) - refusals} questions" + (f", {refusals} refused by name" if refusals else "")


def _rows_of(answer: EngineAnswer) -> list[tuple[Any, ...]]:
    firsts = (answer.first_counts,) if answer.first_counts else ()
    columns = (*answer.elements, answer.counts, *firsts, *answer.sums)
    return sorted(zip(*columns, strict=True), key=repr)
