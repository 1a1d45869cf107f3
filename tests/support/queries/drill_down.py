"""Questions for totals beside a list by two columns, what an engine should count for them, and what is released."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

from dp_service.bounding.order import kept, table_salt
from dp_service.queries.asked_numbers import Measure, sum_of
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.releasing import Released, release
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import Scalar
from dp_service.values.bounds import Clamp
from pinot_connector.engines.base import EngineAnswer
from tests.support.member_sums import SummedColumn, group_sums
from tests.support.slight_noise import MOST, is_near, require_near
from tests.unit.dp_service.identities import KEY

NULL = -99
"""What stands for a missing number where an engine stores no NULL."""
TYPICAL = 3
BY = (("country", "article"), ("country", "shop"))
"""The columns of the questions; a copy is bounded by those of one of them."""
# So many units leave next to no noise: totals are those of the data, or off by 1 or 2.
POLICY = """
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  {table}:
    member: member
    contributions:
      bound: {bound}
      typical: {typical}
      units: 40000
      min_count: 9
      totals: {{share: 1/3, one_value: [{one_value}]}}
      {more}
    measures: {{distinct_members: true{events}}}
    columns:
      member: {{type: string}}
"""
_EVENTS = ", events: {tau: 2, tau_is: clipped}"
_SUMS = "sums: {max_members: 1000, max_rows: 10000}"
_VALUES = f"""
    values:
      paid: {{type: int64, lower: -2, upper: 9, row_lower: -3, row_upper: 4, nulls: own_count, null_value: {NULL}}}
"""
SHOPS = ("s0", "s1", "s2")
DOMAINS = {"country": ("A", "B", "it's", "Z"), "article": ("p", "q", "r", "é😀"), "shop": SHOPS}
"""Known domains: nobody is in Z, and the article s is in none of them."""


class Row(NamedTuple):
    """A row; a member has one shop."""

    member: str
    country: str
    article: str
    shop: str
    paid: int | None


Numbers = tuple[int, ...]
"""A count, a centred sum, and of how many members, or rows, the sum is; or the count alone."""


def rows() -> list[Row]:
    """Return rows of members of whom many have more elements than count; few have the article s."""
    chosen = Random(23)
    found = []
    for _ in range(900):
        member = chosen.randrange(120)
        country, article = (
            chosen.choice(("A", "A", "A", "B", "B", "it's")),
            chosen.choice((*DOMAINS["article"] * 9, "s")),
        )
        found.append(
            Row(f"m{member}", country, article, SHOPS[member % 3], chosen.choice((None, *range(-9, 9))))
        )
    return found


def policy(*, known: bool = False, copied_by: tuple[str, ...] = (), table: str = "t") -> Policy:
    """Return a policy that offers totals.

    Args:
        known: Whether each column has a known domain.
        copied_by: The columns by which a copy bounds members; none: the query bounds them.
        table: The name of the table.
    """
    grouped = copied_by or tuple(DOMAINS)
    text = POLICY.format(
        table=table,
        bound="prepared" if copied_by else "in_query",
        typical=TYPICAL,
        one_value="shop" if "shop" in grouped else "",
        more=f"elements: [{', '.join(copied_by)}]\n      period: all" if copied_by else _SUMS,
        events="" if copied_by else _EVENTS,
    )
    for name in grouped:
        domain = f", domain: {json.dumps(DOMAINS[name], ensure_ascii=False)}" if known else ""
        text += f"      {name}: {{type: string, group_by: true{domain}}}\n"
    return parse_policy(text if copied_by else text + _VALUES)


def questions(table: str = "t") -> Iterator[HistogramQuery]:
    """Yield questions for totals by each column: contributions, members of one value, rows, and sums beside them."""
    summed = (sum_of("paid"),)
    for by, measure, aggregates in product(BY, Measure, ((), summed)):
        for totals_by in by:
            yield HistogramQuery(table, by, measure, aggregates=aggregates, totals_by=totals_by)


def questions_of_copy(copied_by: tuple[str, ...], table: str) -> Iterator[HistogramQuery]:
    """Yield those of them that a bounded copy answers, on every version of every engine: without a query inside."""
    for totals_by in copied_by:
        yield HistogramQuery(table, copied_by, Measure.DISTINCT_MEMBERS, totals_by=totals_by)


def reference(query: HistogramQuery, policy: Policy, rows: Sequence[Row]) -> dict[tuple[str, str], Numbers]:
    """Return what an engine should count for each element: also for those below the smallest count of a list."""
    table = policy.table(query.table)
    first, second = query.plain_dimensions
    domains = [table.column(name).domain for name in query.plain_dimensions]
    by_member: dict[str, dict[tuple[str, str], list[list[int | None]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        element = (str(getattr(row, first)), str(getattr(row, second)))
        if all(domain is None or value in domain for value, domain in zip(element, domains, strict=True)):
            by_member[row.member][element].append([row.paid])
    groups: dict[tuple[str, str], list[list[list[int | None]]]] = defaultdict(list)
    for member, elements in by_member.items():
        for each in kept(table_salt(table.name, "all"), member, list(elements), TYPICAL):
            groups[each[0], each[1]].append(elements[each[0], each[1]])
    summed = [
        SummedColumn(each.bounds, None, has_own_count=True) for each in table.values if query.aggregates
    ]
    tau = table.tau(query.measure) if query.measure is Measure.EVENTS else None
    found = {}
    for element, members in groups.items():
        values = members if summed else [[[] for _ in each] for each in members]
        sums = group_sums(values, summed, rows_of_member=tau)
        own = (each.count for each in sums.columns if each.count is not None)
        found[element] = (sums.count, *(each.centred for each in sums.columns), *own)
    return found


def totals(query: HistogramQuery, counted: Mapping[tuple[str, str], Numbers]) -> dict[Scalar, Numbers]:
    """Return what elements add up to."""
    place = query.plain_dimensions.index(query.totals_by or "")
    found: dict[Scalar, Numbers] = {}
    for element, numbers in counted.items():
        so_far = found.get(element[place], (0,) * len(numbers))
        found[element[place]] = tuple(a + b for a, b in zip(so_far, numbers, strict=True))
    return found


def rows_of(answer: EngineAnswer) -> list[tuple[Any, ...]]:
    """Return an engine's answer row by row: elements, counts, centred sums and own counts."""
    return [*zip(*answer.elements, answer.counts, *answer.sums, strict=True)]


def histogram(resolution: Resolution, answer: Sequence[Sequence[Scalar]]) -> TypedHistogram:
    """Return an engine's rows as dp_service checks them, in the order of the engine."""
    stated = resolution.parameters.sums
    columns: list[list[Scalar]] = [list(each) for each in zip(*answer, strict=True)]
    counts, *sums = ([int(number) for number in each] for each in columns[2:])
    return checked_histogram(
        tuple(kind for _, kind in resolution.columns),
        columns[:2],
        counts,
        sums,
        row_limit=resolution.row_limit,
        clamps=[] if stated is None else [Clamp(each.low, each.high) for each in stated.columns],
        own_counts=() if stated is None else stated.own_counts,
    )


def released(resolution: Resolution, answer: Sequence[Sequence[Scalar]]) -> Released:
    """Return the release of an engine's rows, with one key and as of one version: equal rows have an equal release."""
    plan = plan_for(resolution, "v", KEY, IssueContext(0, bytes(32)))
    return release(plan, histogram(resolution, answer), KEY, confidence=0.9, whole=True)


def require_released(resolution: Resolution, found: Released, wanted: Mapping[Scalar, Numbers]) -> None:
    """Assert that the totals of a release are these: all of a known domain, or else those that its elements name.

    Args:
        resolution: The question, of a policy that leaves next to no noise.
        found: Its release.
        wanted: What all rows add up to, also those that the list leaves out.
    """
    drawn, stated = found.totals, resolution.parameters.totals
    assert drawn is not None
    assert stated is not None
    nothing = (0,) * (1 + len(drawn.sums))
    domain = resolution.parameters.domain
    named = {element[stated.place] for element in (found.elements if domain is None else domain)}
    numbers = zip(drawn.counts.tolist(), *(each.tolist() for each in drawn.sums), strict=True)
    expected = {value: wanted.get(value, nothing) for value in named}
    shown = dict(zip(drawn.values, numbers, strict=True))
    require_near(
        {value: each[0] for value, each in shown.items()},
        {value: each[0] for value, each in expected.items()},
    )
    # Sums of rows are in parts of a step, which carry more noise, but less than one step. Other numbers carry what is
    # left however many units there are.
    of_rows = resolution.query.rows_summed is not None
    parts = [each.ends(over_rows=True).parts if of_rows else 1 for each in resolution.query.values]
    for value, (_, *each) in shown.items():
        wide = [*parts, *(1 for _ in each[len(parts) :])]
        found_and_wanted = zip(each, expected[value][1:], wide, strict=True)
        assert all(is_near(one, other, max(most, MOST)) for one, other, most in found_and_wanted)
