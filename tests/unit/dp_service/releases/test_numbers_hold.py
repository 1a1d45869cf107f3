"""Intervals of numbers with conditions cover as often as is said, given that they are shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pytest

from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.plan import Plan
from dp_service.releases.releasing import release
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import ColumnType
from tests.unit.dp_service.identities import KEY

# How many elements are drawn of each kind of data: the fewer a release has, the more releases there are.
ELEMENTS = [600, pytest.param(7500, marks=pytest.mark.nightly)]
CONFIDENCE = 0.8
DATA = {
    "few large": [900, 500, 480, 60, 40, 3],
    "many equal": [40] * 25,
    "many tiny": [12, 9, 7, 6, 5, 4, 3, 3, 2, 2, *[1] * 15],
}
POLICY = """
epsilon_per: 0.5
delta: 1e-3
count_noise: gaussian
tables:
  t:
    member: m
    contributions:
      {{bound: in_query, units: 20, min_count: 1,
       sums: {{max_members: 100000, max_rows: 1000000}}}}
    measures: {{distinct_members: true, rows: 6}}
    columns:
      m: {{type: string}}
      item: {{type: string, group_by: true, typical: 2{domain}}}
      n: {{type: int64, filter: [range]}}
    values: {{amount: {{type: int64, lower: 2, upper: 10}}}}
"""
# Of the members some have rows that meet the condition: two each, with a total of 4.
NUMBERS = {
    "members": "COUNT(DISTINCT m) FILTER (WHERE n > 3)",
    "rows": "COUNT(*) FILTER (WHERE n > 3)",
    "sum": "SUM(amount) FILTER (WHERE n > 3)",
    "part of members": "100.0 * COUNT(DISTINCT m) FILTER (WHERE n > 3) / COUNT(DISTINCT m)",
    "sum per member": "SUM(amount) FILTER (WHERE n > 3) / COUNT(DISTINCT m)",
}
# Beside a count of rows, of which there are ten times as many; some meet the condition, with a value of 4 each.
AVERAGES = {"average": "AVG(amount) FILTER (WHERE n > 4)"}
MET = "COUNT(DISTINCT m) FILTER (WHERE n > 3)"
# Of several numbers: some share the noise of the count, and in a difference of two counts there is none of it.
COMPARED = {
    "price": "SUM(amount) FILTER (WHERE n > 3) / COUNT(DISTINCT m) FILTER (WHERE n > 5)",
    "rate": f"100.0 * {MET} / COUNT(DISTINCT m) FILTER (WHERE n > 5)",
    "members per row": "COUNT(DISTINCT m) / COUNT(*) FILTER (WHERE n > 3)",
    "difference": f"{MET} - COUNT(DISTINCT m) FILTER (WHERE n > 5)",
    "rest": f"COUNT(DISTINCT m) - {MET}",
    "mixed": f"SUM(amount) FILTER (WHERE n > 3) + {MET} - COUNT(DISTINCT m)",
}
# Of the sum over the elements that are shown.
OF_ALL = "/ SUM(COUNT(DISTINCT m)) OVER ()"
SHARES = {
    "share": f"COUNT(DISTINCT m) {OF_ALL}",
    "share of sum": "100.0 * SUM(amount) / SUM(SUM(amount)) OVER ()",
    "of all": f"{MET} {OF_ALL}",
}
# Of the count alone, which is then on the grid: members are weighted.
OF_COUNTS = {
    "twice": "2 * COUNT(DISTINCT m) + 7",
    "lead": "2 * COUNT(DISTINCT m) - SUM(COUNT(DISTINCT m)) OVER ()",
}
ENDS = {
    "all": "",
    "cut by a number": " ORDER BY 3 DESC LIMIT 4",
    "cut": " ORDER BY 2 DESC LIMIT 3",
    "filtered": " HAVING COUNT(DISTINCT m) > 5",
}


def met(count: int) -> int:
    """Return how many of so many members have rows that meet the condition."""
    return count * 2 // 3


def truth(name: str, count: int, shown: list[int]) -> float | None:
    """Return a number of an element with so many members before noise; None: it would be divided by 0."""
    some = met(count)
    if name in OF_COUNTS:
        return 2 * count + (7 if name == "twice" else -sum(shown))
    if name in SHARES:
        return {"share": count, "share of sum": 100 * count, "of all": some}[name] / sum(shown)
    if name in ("price", "rate", "members per row"):
        divided = {"price": 4 * some, "rate": 100 * some, "members per row": count / 2}[name]
        return divided / some if some else None
    if name in COMPARED:
        return {"difference": 0, "rest": count - some, "mixed": 5 * some - count}[name]
    numbers = {"members": some, "rows": 2 * some, "sum": 4 * some, "average": 4}
    return {**numbers, "part of members": 100 * some / count, "sum per member": 4 * some / count}[name]


def histogram_of(plan: Plan, resolution: Resolution, counts: list[int]) -> TypedHistogram:
    """Return what an engine answers, by the ends of each number and its count."""
    names, kind = [f"n{place:02}" for place in range(len(counts))], kind_of(plan.parameters)
    of_member = {(0, 1): 1, (0, 3): 2, (0, 6): 2, (0, 10): 4}
    sums, own = [], []
    for value, clamp in zip(resolution.query.values, kind.clamps, strict=True):
        if value.has_own_count:
            # Of rows, in steps of 1/100.
            sums.append([met(count) * (800 - clamp.centre) for count in counts])
            own.append([met(count) * kind.denominator for count in counts])
        else:
            each = 2 * of_member[clamp.low, clamp.high]
            some = counts if value.condition is None else list(map(met, counts))
            sums.append([each * few - clamp.centre * count for few, count in zip(some, counts, strict=True)])
    # All members have the weight 1.
    sums = [
        [each * (kind.denominator // scale) for each in column]
        for column, scale in zip(sums, kind.scales, strict=True)
    ]
    return checked_histogram(
        (ColumnType.STRING,),
        [names],
        [count * kind.denominator for count in counts],
        [*sums, *own],
        row_limit=plan.row_limit,
        clamps=kind.clamps,
        scales=kind.scales,
        own_counts=kind.own_counts,
    )


def count_beside(asked: dict[str, str]) -> str:
    """Return the count that numbers are beside."""
    return "COUNT(*)" if asked is AVERAGES else "COUNT(DISTINCT m)"


def misses(
    asked: dict[str, str], counts: list[int], elements: int, *, known: bool, end: str
) -> Iterator[tuple[str, bool]]:
    """Yield for each number that is shown in any release whether its interval misses it."""
    names = ", ".join(f"n{place:02}" for place in range(len(counts)))
    policy = parse_policy(POLICY.format(domain=f", domain: [{names}]" if known else ""))
    sql = f"SELECT item, {count_beside(asked)}, {', '.join(asked.values())} FROM t GROUP BY item{end}"  # noqa: S608
    resolution = resolve(parse_sql(sql, policy), policy, now=0)
    for number in range(elements // len(counts)):
        plan = plan_for(resolution, f"v{number}", KEY, IssueContext(0, bytes(32)))
        found = release(plan, histogram_of(plan, resolution, counts), KEY, confidence=CONFIDENCE)
        true = [counts[int(str(element[0])[1:])] for element in found.elements]
        for name, aggregate in zip(asked, found.shown.aggregates, strict=True):
            for count, answer in zip(true, aggregate.answers, strict=True):
                if answer is not None and (number_of_it := truth(name, count, true)) is not None:
                    yield name, not answer.lower <= number_of_it <= answer.upper


@pytest.mark.slow
@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize(("known", "end"), [(True, "all"), (False, "all"), (False, "cut by a number")])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    ("asked", "level"),
    [(NUMBERS, (1 - CONFIDENCE) / 2), (AVERAGES, (1 - CONFIDENCE) / 2), (COMPARED, 1 - CONFIDENCE)],
)
def test_intervals_of_numbers_cover_them(
    asked: dict[str, str], level: float, data: str, *, known: bool, end: str, elements: int
) -> None:
    """A sum and an average are each wrong at most half as often as a count may be, and what is of both as often."""
    tried, missed = Counter[str](), Counter[str]()
    counts = [each * (10 if asked is AVERAGES else 1) for each in DATA[data]]
    for name, misses_it in misses(asked, counts, elements, known=known, end=ENDS[end]):
        tried[name] += 1
        missed[name] += misses_it
    assert set(asked) == set(tried)
    for name, number in tried.items():
        assert missed[name] <= number * level + 5 * math.sqrt(number * level * (1 - level)), name


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("data", "end"), [("many tiny", "cut"), *(("few large", each) for each in ENDS)])
def test_intervals_of_shares_cover_them(data: str, end: str, known: bool, elements: int) -> None:
    """Of the sum of the rows that are shown, whichever they are."""
    tried, missed = Counter[str](), Counter[str]()
    for name, misses_it in misses(SHARES, DATA[data], elements, known=known, end=ENDS[end]):
        tried[name] += 1
        missed[name] += misses_it
    level = 1 - CONFIDENCE
    assert tried
    for name, number in tried.items():
        # The elements of one release have the noise of their sum in common.
        assert missed[name] <= number * level + 5 * math.sqrt(25 * number * level * (1 - level)), name


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize("data", ["many equal", "many tiny"])
def test_intervals_of_numbers_of_weighted_counts_cover_them(data: str, elements: int) -> None:
    """And none is so wide that it holds whatever noise is drawn."""
    tried, missed = Counter[str](), Counter[str]()
    for name, misses_it in misses(OF_COUNTS, DATA[data], elements, known=True, end=""):
        tried[name] += 1
        missed[name] += misses_it
    level = 1 - CONFIDENCE
    for name, number in tried.items():
        # The elements of one release have the noise of their sum in common.
        assert 0 < missed[name] <= number * level + 5 * math.sqrt(25 * number * level * (1 - level)), name


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_shares_are_of_the_rows_that_are_shown_and_change_no_release(end: str, known: bool) -> None:
    """Whatever is computed of counts, their release, its price and its noise are those of the counts alone."""
    policy = parse_policy(POLICY.format(domain=", domain: [n00, n01, n02, n03, n04, n05]" if known else ""))
    counts, ids = DATA["few large"], set()
    for beside in ("", f", {SHARES['share']}", ", COUNT(DISTINCT m) * 2 + 7 AS other"):
        order = ENDS[end].replace("3 DESC", "2 DESC")
        sql = f"SELECT item, COUNT(DISTINCT m){beside} FROM t GROUP BY item{order}"  # noqa: S608
        resolution = resolve(parse_sql(sql, policy), policy, now=0)
        plan = plan_for(resolution, "v", KEY, IssueContext(0, bytes(32)))
        answer = release(plan, histogram_of(plan, resolution, counts), KEY, confidence=CONFIDENCE)
        ids.add((answer.release_id, answer.cost.information, plan.query_id))
        if "OVER" in beside:
            (shares,) = answer.shown.aggregates
            assert sum(each.value for each in shares.answers if each is not None) == 1
    assert len(ids) == 1


@pytest.mark.parametrize("counts", [[], [1], [4], [30], [0, 0], [40, 2, 1]])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_no_release_is_an_error_whatever_its_noise(counts: list[int], known: bool, end: str) -> None:
    """Nor where nothing is shown, or one element is all there is: an error is unpaid, and would tell of the noise."""
    if known and not counts:
        return
    names = ", ".join(f"n{place:02}" for place in range(len(counts)))
    policy = parse_policy(POLICY.format(domain=f", domain: [{names}]" if known else ""))
    every = [(asked, each) for asked in (NUMBERS, AVERAGES, COMPARED) for each in asked.values()]
    for asked, number in every:
        own = ENDS[end].replace("COUNT(DISTINCT m)", count_beside(asked))
        sql = f"SELECT item, {count_beside(asked)}, {number} FROM t GROUP BY item{own}"  # noqa: S608
        resolution = resolve(parse_sql(sql, policy), policy, now=0)
        for version in range(6):
            plan = plan_for(resolution, f"v{version}", KEY, IssueContext(0, bytes(32)))
            found = release(plan, histogram_of(plan, resolution, counts), KEY, confidence=CONFIDENCE)
            (shown,) = found.shown.aggregates
            assert len(shown.answers) == len(found.elements)
