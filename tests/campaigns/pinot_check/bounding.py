"""Members that a query bounds: Pinot 1.x counts what the pure reference does, or fails."""

from __future__ import annotations

import datetime
import random
from contextlib import closing
from dataclasses import replace

from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render.member_bounds import in_query_bound
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery, Measure
from pinot_connector.engines.base import EngineQuery, Feature
from pinot_connector.errors import EngineError, EngineRefused
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.connector import answered, histogram, refused, require_equal
from tests.campaigns.pinot_check.rows import row
from tests.support.engine_queries import engine_query
from tests.support.queries.reference import Row, bounded_answer

_FIRST_DAY = datetime.date(2016, 7, 18)
_EPOCH = datetime.date(1970, 1, 1)
_COLUMNS = {"member": "STRING", "text": "STRING", "number": "LONG", "flag": "BOOLEAN"}
_TEXTS = ("a", "it's", "\\x41", "é", "😀" * 128, "ß" * 300, "two words", "--", "TRUE", "0")
_DIMENSIONS = (("text",), ("number",), ("flag",), ("day",), ("text", "number"), ("day", "flag", "text"))


def _policy(table: str) -> Policy:
    return parse_policy(f"""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  {table}:
    member: member
    measures: {{distinct_members: true, events: {{tau: 2, tau_is: clipped}}}}
    contributions: {{bound: in_query, delta_0: 3, units: 20, min_count: 2}}
    columns:
      text: {{type: string, group_by: true, filter: [not_in]}}
      number: {{type: int64, group_by: true, filter: [range]}}
      flag: {{type: bool, group_by: true}}
      day: {{type: date, group_by: true}}
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


def _in_pinot(value: object) -> object:
    return (value - _EPOCH).days if isinstance(value, datetime.date) else value


def _asked(question: HistogramQuery, policy: Policy) -> EngineQuery:
    return engine_query(resolve(question, policy, now=0), "pinot")


@row
def bounded_in_the_query(cluster: CheckedCluster) -> str:
    """A query bounds members by the same elements as the reference does, and clips their events."""
    if cluster.version < (1, 0):
        return _refused_before(cluster)
    rows = _rows()
    table = _filled(cluster, "bounded", rows)
    policy = _policy(table)
    questions = [HistogramQuery(table, each, measure, k=3) for each in _DIMENSIONS for measure in Measure]
    with closing(cluster.engine()) as engine:
        for question in questions:
            bound = in_query_bound(resolve(question, policy, now=0))
            if bound is None:
                raise AssertionError("the policy bounds nobody")
            wanted = bounded_answer(question, policy, rows, bound, now=0)
            expected = {tuple(map(_in_pinot, each[:-1])): each[-1] for each in wanted}
            found = histogram(answered(engine, _asked(question, policy)))
            require_equal(
                {key if len(key) > 1 else key[0]: count for key, count in expected.items()},
                found,
                f"other counts by {', '.join(question.dimensions)}",
            )
    return f"{len(questions)} questions, {len(rows)} rows of texts, numbers, truth values and days"


def _refused_before(cluster: CheckedCluster) -> str:
    """Try that a version without the multi-stage engine is not even asked."""
    query = _asked(HistogramQuery("t", ("text",), Measure.DISTINCT_MEMBERS, k=3), _policy("t"))
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
    return "also where it is told to answer in part"
