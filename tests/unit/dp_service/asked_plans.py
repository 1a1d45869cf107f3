"""Plans of every kind of answer, from questions under a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.plan import Plan
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import ColumnType
from tests.unit.dp_service.identities import KEY

RELEASES = 150
TABLE = """
epsilon_per: 0.5
delta: 1e-3
count_noise: gaussian
tables:
  t:
    member: m
    %s
    measures: {distinct_members: true%s}
    columns: {m: {type: string}, page: {type: string}, item: {type: string, group_by: true%s}}
    %s
"""
BOUNDED = "contributions: {bound: in_query, units: 6, min_count: 1%s}"
SUMS = ", sums: {max_members: 100000, max_rows: 1000000}"
AMOUNT = "values: {amount: {type: int64, lower: 0, upper: 10}}"
COUNT = "SELECT item, COUNT(DISTINCT m) FROM t GROUP BY item"
SUM = "SELECT item, COUNT(DISTINCT m), SUM(amount) FROM t GROUP BY item"
CUT = " ORDER BY COUNT(DISTINCT m) DESC LIMIT 4"
SMALLEST = " ORDER BY COUNT(DISTINCT m) LIMIT 4"
VALUES = COUNT.replace("m)", "page)")
PAGES = ", distinct: {page: 2}"


@dataclass(frozen=True)
class Asked:
    """A kind of answer: what the policy says of the table, whether its domain is known, and the question."""

    contributions: str = ""
    known: bool = False
    delta: str = ""
    sql: str = COUNT
    values: str = ""
    measures: str = ""


KINDS = {
    "laplace, known": Asked(known=True, delta=", delta: 2"),
    "laplace, known, cut": Asked(known=True, delta=", delta: 2", sql=COUNT + CUT),
    "laplace, unknown": Asked(delta=", delta: 2"),
    "laplace, unknown, cut": Asked(delta=", delta: 2", sql=COUNT + CUT),
    "laplace, having": Asked(known=True, delta=", delta: 2", sql=COUNT + " HAVING COUNT(DISTINCT m) > 5"),
    "laplace, smallest first": Asked(known=True, delta=", delta: 2", sql=COUNT + SMALLEST),
    "gumbel, known": Asked(known=True, sql=COUNT + CUT),
    "gumbel, unknown": Asked(sql=COUNT + CUT),
    "bounded, known": Asked(BOUNDED % "", known=True),
    "bounded, known, cut": Asked(BOUNDED % "", known=True, sql=COUNT + CUT),
    "bounded, smallest first": Asked(BOUNDED % "", known=True, sql=COUNT + SMALLEST),
    "bounded, unknown": Asked(BOUNDED % ""),
    "two looks": Asked(BOUNDED % ", longest_list: 10"),
    "distinct values, known": Asked(BOUNDED % "", known=True, sql=VALUES, measures=PAGES),
    "distinct values, unknown": Asked(BOUNDED % "", sql=VALUES, measures=PAGES),
    "distinct values, unknown, cut": Asked(
        BOUNDED % "", sql=VALUES + CUT.replace("m)", "page)"), measures=PAGES
    ),
    "relative": Asked(BOUNDED % "", known=True, delta=", typical: 200"),
    "relative, cut": Asked(BOUNDED % "", known=True, delta=", typical: 200", sql=COUNT + CUT),
    "relative, smallest first": Asked(BOUNDED % "", known=True, delta=", typical: 200", sql=COUNT + SMALLEST),
    "sums": Asked(BOUNDED % SUMS, known=True, sql=SUM, values=AMOUNT),
    "sums, unknown": Asked(BOUNDED % SUMS, sql=SUM, values=AMOUNT),
    "sums, in their order": Asked(
        BOUNDED % SUMS, known=True, sql=SUM + " ORDER BY SUM(amount) DESC LIMIT 4", values=AMOUNT
    ),
    "sums, smallest first": Asked(
        BOUNDED % SUMS, known=True, sql=SUM + " ORDER BY SUM(amount) LIMIT 4", values=AMOUNT
    ),
}


def plans(asked: Asked, names: list[str]) -> Iterator[Plan]:
    """Yield the plan of a question on one version of the data after the other."""
    domain = f", domain: [{', '.join(names)}]" if asked.known else ""
    limit = asked.delta or (", typical: 2" if asked.contributions else "")
    policy = parse_policy(TABLE % (asked.contributions, asked.measures, domain + limit, asked.values))
    resolution = resolve(parse_sql(asked.sql, policy), policy, now=0)
    for number in range(RELEASES):
        yield plan_for(resolution, f"v{number}", KEY, IssueContext(0, bytes(32)))


def histogram_of(plan: Plan, counts: Mapping[str, int]) -> TypedHistogram:
    """Return what an engine answers: every member is in one element, where it counts in full, with a total of 3."""
    stated = plan.parameters.contributions
    full = 1 if stated is None else stated.grid
    known = None if plan.known_elements is None else {element[0] for element in plan.known_elements}
    rows = sorted(
        ((name, count) for name, count in counts.items() if known is None or name in known),
        key=lambda row: -row[1],
    )
    rows = rows[: plan.row_limit]
    numbers, kind = [full * count for _, count in rows], kind_of(plan.parameters)
    return checked_histogram(
        (ColumnType.STRING,),
        [[name for name, _ in rows]],
        numbers,
        [[(2 * 3 - clamp.centre) * count for count in numbers] for clamp in kind.clamps],
        row_limit=plan.row_limit,
        first_counts=numbers if plan.parameters.counts_first_elements else None,
        clamps=kind.clamps,
    )
