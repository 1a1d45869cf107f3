"""Members that a query bounds: Pinot 1.x counts what the pure reference does, or fails."""

from __future__ import annotations

import datetime
import random
from contextlib import closing
from dataclasses import replace
from typing import Any

from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render.member_bounds import first_elements_of, min_count_of, weights_of
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import Element
from pinot_connector.engines.base import EngineQuery, Feature
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineError, EngineRefused
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.connector import answered, refused, require_equal
from tests.campaigns.pinot_check.rows import row
from tests.support.engine_queries import engine_query
from tests.support.queries.reference import Row, bounded_answer, distinct_answer

_FIRST_DAY = datetime.date(2016, 7, 18)
_EPOCH = datetime.date(1970, 1, 1)
_COLUMNS = {"member": "STRING", "text": "STRING", "number": "LONG", "flag": "BOOLEAN"}
_TEXTS = ("a", "it's", "\\x41", "é", "😀" * 128, "ß" * 300, "two words", "--", "TRUE", "0")
_TWO_LOOKS = ", longest_list: 75"
_DIMENSIONS = (("text",), ("number",), ("flag",), ("day",), ("text", "number"), ("day", "flag", "text"))


def _policy(table: str, looks: str = "") -> Policy:
    distinct = "" if looks else ", distinct: {text: 2, number: 3, day: 2}"
    return parse_policy(f"""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  {table}:
    member: member
    measures: {{distinct_members: true, rows: 6{distinct}}}
    contributions: {{bound: in_query, units: 20, min_count: 2{looks}}}
    columns:
      text: {{type: string, group_by: true, typical: 3, filter: [not_in]}}
      number: {{type: int64, group_by: true, typical: 3, filter: [range]}}
      flag: {{type: bool, group_by: true, typical: 3}}
      day: {{type: date, group_by: true, typical: 3}}
""")


def _rows() -> list[Row]:
    chosen = random.Random(22)
    numbers = [-(2**63) + 1, 2**63 - 1, 0, *(chosen.randrange(-(2**62), 2**62) for _ in range(5))]
    return [
        Row(
            f"m{chosen.randrange(30)}é",
            chosen.choice(_TEXTS),
            chosen.choice(numbers),
            chosen.choice((True, False)),
            _FIRST_DAY + datetime.timedelta(chosen.randrange(9)),
        )
        for _ in range(1200)
    ]


def _filled(cluster: CheckedCluster, name: str, rows: list[Row]) -> str:
    """Return a table in four segments, so that members and elements are on every server."""
    table = cluster.create(name, _COLUMNS)
    stored = [each._asdict() | {"day": _in_pinot(each.day)} for each in rows]
    for part in range(4):
        cluster.upload(table, str(part), stored[part::4])
    cluster.wait_for_rows(table, len(rows))
    return table


def _in_pinot(value: Any) -> Any:
    return (value - _EPOCH).days if isinstance(value, datetime.date) else value


def _asked(question: HistogramQuery, policy: Policy) -> EngineQuery:
    return engine_query(resolve(question, policy, now=0), "pinot")


def _require_counted(
    engine: PinotEngine, question: HistogramQuery, policy: Policy, rows: list[Row], resolution: Resolution
) -> list[Element]:
    """Compare the answer of one look with the reference's; return its elements, the largest first."""
    if isinstance(question.measure, DistinctValues):
        bound, least = first_elements_of(resolution), min_count_of(resolution) or 0
        wanted = distinct_answer(question, policy, rows, bound, least=least, now=0)
    elif (weights := weights_of(resolution)) is None:
        raise AssertionError("the policy bounds nobody")
    else:
        wanted = bounded_answer(question, policy, rows, weights, now=0)
    expected = {tuple(map(_in_pinot, each[:-1])): each[-1] for each in wanted}
    answer = answered(engine, engine_query(resolution, "pinot"))
    keys: list[Element] = [*zip(*answer.elements, strict=True)] if question.dimensions else [()]
    by = ", ".join(question.plain_dimensions)
    require_equal(expected, dict(zip(keys, answer.counts, strict=True)), f"other counts by {by}")
    return keys


@row
def bounded_in_the_query(cluster: CheckedCluster) -> str:
    """A query bounds members and the values that they have by the same hash as the reference, and clips events."""
    if cluster.version < (1, 0):
        return _refused_before(cluster)
    rows = _rows()
    table = _filled(cluster, "bounded", rows)
    policy = _policy(table)
    questions = [*_questions(table), *_of_values(table)]
    with closing(cluster.engine()) as engine:
        for question in questions:
            _require_counted(engine, question, policy, rows, resolve(question, policy, now=0))
    return f"{len(questions)} questions, {len(rows)} rows of texts, numbers, truth values and days"


@row
def two_looks(cluster: CheckedCluster) -> str:
    """Two looks bound members as the reference does: the second one within the names of the first alone."""
    if cluster.version < (1, 0):
        return _refused_before(cluster, _TWO_LOOKS)
    rows = _rows()
    table = _filled(cluster, "looks", rows)
    policy = _policy(table, _TWO_LOOKS)
    questions = _questions(table)
    named = 0
    with closing(cluster.engine()) as engine:
        for question in questions:
            first = resolve(question, policy, now=0)
            found = _require_counted(engine, question, policy, rows, first)
            # Every second one, for all of them would bound nobody otherwise than one look does.
            names = tuple(sorted(found[:75:2]))
            within = [each for each in rows if _element(each, question) in names]
            _require_counted(engine, question, policy, within, second_look(first, names))
            named += len(names)
    return f"{len(questions)} questions, {named} names"


def _questions(table: str) -> list[HistogramQuery]:
    return [HistogramQuery(table, each, measure, k=3) for each in _DIMENSIONS for measure in Measure]


def _of_values(table: str) -> list[HistogramQuery]:
    return [
        HistogramQuery(table, by, DistinctValues(name))
        for by in ((), *_DIMENSIONS)
        for name in ("text", "number", "day")
        if name not in by
    ]


def _element(row: Row, question: HistogramQuery) -> Element:
    return tuple(_in_pinot(getattr(row, name)) for name in question.plain_dimensions)


def _refused_before(cluster: CheckedCluster, looks: str = "") -> str:
    """Try that a version without the multi-stage engine is not even asked."""
    query = _asked(HistogramQuery("t", ("text",), Measure.DISTINCT_MEMBERS, k=3), _policy("t", looks))
    require_equal(True, Feature.PINOT_MULTISTAGE in query.requires, "the query requires nothing")
    with closing(cluster.engine()) as engine, refused(EngineRefused, "a query that bounds members"):
        engine.check(query)
    return "this version is refused by name"


@row
def a_window_that_overflows(cluster: CheckedCluster) -> str:
    """A window that is too large for its members fails, and is never answered in part."""
    if cluster.version < (1, 2):
        raise CannotTryError("before 1.2 a window has no limit")
    table = _filled(cluster, "overflow", _rows())
    query = _asked(HistogramQuery(table, ("text",), Measure.DISTINCT_MEMBERS, k=3), _policy(table))
    limit, mode = "SET maxRowsInWindow=100000000; ", "SET windowOverflowMode='THROW'; "
    small = query.sql.replace(limit, "SET maxRowsInWindow=9; ")
    with closing(cluster.engine()) as engine:
        answered(engine, query)
        for sql in (small, small.replace(mode, "SET windowOverflowMode='BREAK'; ")):
            require_equal(False, sql == query.sql, "the query does not set the limit")
            with refused(EngineError, "a question about some of the members' elements"):
                answered(engine, replace(query, sql=sql))
    return "also where the query asks for an answer in part"
