"""Questions whose noise leaves nothing are refused before they are charged, by public numbers alone."""

from __future__ import annotations

import pytest

from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.sql import parse_sql
from dp_service.releases.kinds import kind_of
from dp_service.releases.resolving import resolve_question
from dp_service.releases.usefulness import (
    COARSER,
    TypicalError,
    public_sizes,
    require_useful,
    typical_errors,
    verdict,
)

COUNTS = "SELECT d, COUNT(DISTINCT m) FROM t GROUP BY d"
PAGES = [f"p{place}" for place in range(100)]
NUMBERS = "SELECT d, COUNT(*), SUM(v), AVG(v) FROM t GROUP BY d"


def policy(sizes: str) -> Policy:
    """Return a policy whose table has at most so many members and rows; empty: nothing is said of that."""
    sums = f", sums: {{{sizes}}}" if sizes else ""
    values = "    values: {v: {type: int64, lower: 0, upper: 512}}\n" if sizes else ""
    return parse_policy(
        f"""
epsilon_per: 0.15
delta: 1e-11
count_noise: gaussian
tables:
  t:
    member: m
    contributions: {{bound: in_query, units: 1{sums}}}
    measures: {{distinct_members: true, rows: 2, distinct: {{p: 1, h: 1}}}}
    columns:
      m: {{type: string}}
      d: {{type: string, group_by: true, typical: 2, domain: [x, y, z]}}
      p: {{type: string, group_by: true, filter: [in, not_in], typical: 2, domain: [{", ".join(PAGES)}]}}
      h: {{type: string, filter: [in]}}
{values}"""
    )


def errors_of(sql: str, sizes: str) -> list[TypicalError]:
    """Return how far noise moves each number of a question."""
    stated = policy(sizes)
    resolution = resolve_question(parse_sql(sql, stated), stated, now=0)
    public = public_sizes(resolution.query, stated.table("t"))
    return list(typical_errors(kind_of(resolution.parameters), public))


@pytest.mark.parametrize(
    ("sql", "size", "lost"),
    [
        (COUNTS, 10, ["counts"]),
        (COUNTS, 1000, []),
        (NUMBERS, 30, ["counts", "sum_v_of_rows", "average_v_per_row"]),
        (NUMBERS, 100_000, []),
    ],
)
def test_a_number_whose_noise_exceeds_half_of_the_largest_value_is_lost(
    sql: str, size: int, lost: list[str]
) -> None:
    """Of the members and rows that a table may have, and of the clamps of a value."""
    found = errors_of(sql, f"max_members: {size}, max_rows: {size}")
    assert [each.number for each in found if each.is_too_large] == lost
    (said,) = verdict(found)
    assert said.text.startswith("Too noisy to be of use") is bool(lost)


def test_it_is_refused_unless_the_caller_says_anyway() -> None:
    """The error names the number, its error, and the largest value."""
    found = [TypicalError("average_v_per_member", 390_781, 512, COARSER)]
    with pytest.raises(
        QuestionError, match="typical error 390,781 on average_v_per_member of at most 512"
    ) as refused:
        require_useful(found, "")
    assert refused.value.field == "max_error"
    require_useful(found, "anyway")
    stated = policy("max_members: 10, max_rows: 10")
    asked = parse_sql(f"{COUNTS} OPTION(max_error=anyway)", stated)
    plain = resolve_question(parse_sql(COUNTS, stated), stated, now=0)
    assert resolve_question(asked, stated, now=0).parameters == plain.parameters


def test_without_public_sizes_nothing_is_refused() -> None:
    """Nothing of the data stands in for them."""
    found = errors_of(COUNTS, "")
    assert [(each.number, each.most) for each in found] == [("counts", None)]
    require_useful(found, "")


@pytest.mark.parametrize(
    ("sql", "size", "most", "lost"),
    [
        # Noise has a standard deviation of 13.3: 2 values are allowed, or any number, however many are listed.
        ("SELECT COUNT(DISTINCT p) FROM t", "", None, False),
        ("SELECT COUNT(DISTINCT p) FROM t WHERE p IN ('p1', 'p2')", "", 2, True),
        ("SELECT COUNT(DISTINCT p) FROM t WHERE p NOT IN ('p1', 'p2')", "", None, False),
        ("SELECT COUNT(DISTINCT h) FROM t", "", None, False),
        ("SELECT COUNT(DISTINCT h) FROM t WHERE h IN ('p1', 'p2')", "", 2, True),
        ("SELECT COUNT(DISTINCT p) FROM t", "max_members: 20, max_rows: 90", 20, True),
        ("SELECT COUNT(DISTINCT h) FROM t", "max_members: 20, max_rows: 90", 20, True),
    ],
)
def test_distinct_values_are_at_most_those_that_are_allowed(
    sql: str, size: str, most: int | None, lost: bool
) -> None:
    """And no more than members keep; a count whose noise exceeds half of that would say "at least 0"."""
    (found,) = errors_of(sql, size)
    assert (found.most, found.is_too_large) == (most, lost)


def test_a_lost_count_of_distinct_values_is_refused_with_what_to_ask() -> None:
    """The list of values, where the policy lets questions group by them; it is accepted as it is written."""
    (found,) = errors_of("SELECT COUNT(DISTINCT p) FROM t WHERE p IN ('p1', 'p2')", "")
    with pytest.raises(
        QuestionError, match=r"on counts of at most 2; with OPTION\(max_error=anyway\)"
    ) as refused:
        require_useful([found], "")
    _, _, advice = str(refused.value).partition("instead: ")
    assert advice == "SELECT p, COUNT(DISTINCT m) FROM t GROUP BY p"
    require_useful(errors_of(advice, "max_members: 1000, max_rows: 1000"), "")
    (other,) = errors_of("SELECT COUNT(DISTINCT h) FROM t WHERE h IN ('p1', 'p2')", "")
    with pytest.raises(QuestionError, match=r"Ask for coarser groups or more units$"):
        require_useful([other], "")
