"""A member changes counts and sums by no more than was priced, through the real SQL and a real DuckDB."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_columns import QueryValue
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render, sums
from dp_service.queries.render.dialects import DIALECTS, Dialect, identifier
from dp_service.queries.resolution import Resolution, second_look
from tests.support.engine_queries import of_each_element
from tests.support.examples import examples
from tests.support.queries.sums import NUMBERS, ROWS, WHOLES, Row, asked, many_elements, policy

from . import sums as measuring
from .sums import CHARGED, NOT_COUNTED, Asked, faults

LOOKS = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions:
      bound: in_query
      units: 10
      longest_list: 3
      sums: {max_members: 1000, max_rows: 100000}
    measures: {distinct_members: true, rows: 2}
    columns:
      member: {type: string}
      text: {type: string, group_by: true, typical: 1}
    values:
      whole: {whole}
"""


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(
    rows=ROWS,
    whole=st.sampled_from(WHOLES),
    number=st.sampled_from(NUMBERS),
    columns=st.sampled_from([("whole",), ("number",), ("number", "whole")]),
    by=st.sampled_from([(), ("text",), ("text",)]),
    typical=st.integers(1, 2),
    known=st.booleans(),
    measure=st.sampled_from(Measure),
)
def test_a_member_changes_counts_and_sums_within_the_price(
    asked_of: Asked,
    *,
    rows: list[Row],
    whole: str,
    number: str,
    columns: tuple[str, ...],
    by: tuple[str, ...],
    typical: int,
    known: bool,
    measure: Measure,
) -> None:
    """Rows of NULL, NaN, infinities, 2^63, negative and repeated ones, of members who come and who leave."""
    under = policy(whole=whole, number=number, typical=typical, known=known)
    assert faults(asked_of, asked(*columns, by=by, measure=measure), under, rows) == []


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(
    rows=ROWS,
    whole=st.sampled_from(WHOLES),
    names=st.sets(st.sampled_from("abc"), min_size=1),
    measure=st.sampled_from(Measure),
    typical=st.integers(1, 2),
)
def test_a_member_changes_what_a_second_look_sums_within_its_price(
    asked_of: Asked, *, rows: list[Row], whole: str, names: set[str], measure: Measure, typical: int
) -> None:
    """Whatever a first look has named, members are bounded within the names."""
    two_looks = LOOKS.replace("{whole}", whole).replace("{typical}", str(typical))
    query, named = asked("whole", measure=measure), tuple((name,) for name in sorted(names))

    def second(resolution: Resolution) -> Resolution:
        return second_look(resolution, named)

    assert faults(asked_of, query, parse_policy(two_looks), rows, translate=second) == []


def test_a_second_look_that_is_bounded_as_the_first_is_found(asked_of: Asked) -> None:
    """Ada counts in both names, where the price is for one."""
    two_looks = parse_policy(LOOKS.replace("{whole}", SIGNED).replace("{typical}", "2"))

    def wrong(resolution: Resolution) -> Resolution:
        return with_typical(second_look(resolution, (("a",), ("b",))), 2)

    found = faults(asked_of, asked("whole"), two_looks, HEAVY, translate=wrong)
    assert CHARGED in found


# Ada has three texts, and large, small and missing values.
HEAVY = [Row("ada", text, value, float(value)) for text in "abc" for value in (20, 20, -30)]
HEAVY += [Row("bob", "a", 1, 1.0), Row("eve", "b", None, None)]
SIGNED = "{type: int64, lower: 5, upper: 10, row_lower: 0, row_upper: 20}"


def with_typical(resolution: Resolution, typical: int) -> Resolution:
    """Return a question whose query counts so many elements of a member in full."""
    contributions = resolution.parameters.contributions
    assert contributions is not None
    wider = replace(contributions, typical=typical)
    return replace(resolution, parameters=replace(resolution.parameters, contributions=wider))


def uncentred(value: QueryValue, place: int, dialect: Dialect) -> str:
    """Write twice the total, without what centres it."""
    return f"2 * {sums._clamped(identifier(f'gris_total_{place + 1}', dialect), value.bounds.totals)}"


def unclamped(value: QueryValue, place: int, dialect: Dialect) -> str:
    """Write the total as it is."""
    return f"2 * {identifier(f'gris_total_{place + 1}', dialect)} - ({value.bounds.totals.centre})"


def test_the_true_query_has_no_fault(asked_of: Asked) -> None:
    """Nothing is found of the rows on which every wrong query is."""
    assert faults(asked_of, asked("whole"), policy(whole=SIGNED), HEAVY) == []


def test_a_query_that_bounds_nobody_is_found(asked_of: Asked) -> None:
    """Ada counts in three texts where two may count."""
    found = faults(
        asked_of, asked("whole"), policy(whole=SIGNED), HEAVY, translate=lambda asked: with_typical(asked, 9)
    )
    assert CHARGED in found


@pytest.mark.parametrize("wrong", [uncentred, unclamped])
def test_sums_that_are_not_centred_or_clamped_are_found(
    asked_of: Asked,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[QueryValue, int, Dialect], str],
) -> None:
    """Uncentred, a member moves a sum by up to 2 upper; unclamped, by whatever it has."""
    monkeypatch.setattr(sums, "_of_total", wrong)
    found = faults(asked_of, asked("whole"), policy(whole=SIGNED), HEAVY)
    assert "a member changes a sum by more than its width" in found
    assert CHARGED in found


def test_comparisons_that_an_infinity_decides_are_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB drops them where no number of a file fails them, and then NaN counts: in rows of other members."""
    numbers = {"ada": math.nan, "bob": math.nan, "cy": 2.0, "eve": math.inf}
    rows = [Row(member, "a", 1, number) for member, number in numbers.items()]
    assert faults(asked_of, asked("number"), policy(), rows) == []
    duckdbs = replace(DIALECTS["duckdb"], finite=DIALECTS["spark"].finite)
    monkeypatch.setitem(DIALECTS, "duckdb", duckdbs)
    assert CHARGED in faults(asked_of, asked("number"), policy(), rows)


def test_a_total_of_members_without_a_value_is_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eve has no whole number: she counts, and must not move the sum by low + high beside an own count of nobody."""
    assert faults(asked_of, asked("whole"), policy(whole=SIGNED), HEAVY) == []

    def of_everybody(query: CanonicalQuery, dialect: Dialect) -> Iterator[tuple[int, str, str]]:
        for place, number, name in sums.numbers_of_member(query, dialect):
            has_value = sums.at_most(1, f"gris_used_{place + 1}", dialect)
            yield place, number.removesuffix(f" * ({has_value})"), name

    monkeypatch.setattr(
        import_module("dp_service.queries.render.statement"), "numbers_of_member", of_everybody
    )
    found = faults(asked_of, asked("whole"), policy(whole=SIGNED), HEAVY)
    assert "a member changes a sum by more than its width" in found


@pytest.mark.parametrize(("measure", "typical"), [(Measure.EVENTS, 1), (Measure.DISTINCT_MEMBERS, 4)])
def test_members_of_up_to_ten_thousand_elements_change_sums_within_the_price(
    asked_of: Asked, measure: Measure, typical: int
) -> None:
    """Of large, small and missing amounts."""
    under, rows = many_elements(typical)
    assert faults(asked_of, asked("whole", "number", measure=measure), under, rows) == []


def test_weights_by_the_elements_of_counts_are_found(asked_of: Asked) -> None:
    """One row with a value counts in full, so noise is for one element where a member counts in four."""

    def by_counts(resolution: Resolution) -> Resolution:
        stated = resolution.parameters.sums
        assert stated is not None
        columns = tuple(replace(column, typical=None) for column in stated.columns)
        assert columns != stated.columns
        sums = replace(stated, columns=columns)
        return replace(resolution, parameters=replace(resolution.parameters, sums=sums))

    under, rows = many_elements(4)
    over_rows = asked("number", measure=Measure.EVENTS)
    assert faults(asked_of, over_rows, under, rows) == []
    assert CHARGED in faults(asked_of, over_rows, under, rows, translate=by_counts)


def rooted(by: str) -> Callable[[str], str]:
    """Return what rounds the weights of sums and averages otherwise."""
    return lambda sql: re.sub(r'FLOOR(\(SQRT\(FLOOR\([^/]*/ "gris_square_)', rf"{by}\1", sql)


@pytest.mark.parametrize(
    "broken",
    [
        rooted("CEIL"),
        rooted("ROUND"),
        lambda sql: sql.replace('"gris_square_1" > ', '-"gris_square_1" > '),
        lambda sql: sql.replace('"gris_square_2" > ', '-"gris_square_2" > '),
        lambda sql: sql.replace('"gris_weight_1"', '"gris_weight"'),
        lambda sql: sql.replace('"gris_weight_2"', '"gris_weight"'),
        lambda sql: of_each_element(sql, "text"),
    ],
    ids=[
        *("rounded up", "rounded", "sums without weights", "averages without weights"),
        *("sums by the counts", "averages by the counts", "of each element"),
    ],
)
def test_wrong_weights_of_sums_are_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch, broken: Callable[[str], str]
) -> None:
    """Each form of the query changes more than is charged for a member of some number of elements."""

    def rendered(resolution: Resolution, dialect: str) -> str:
        sql = render(resolution, dialect)
        assert broken(sql) != sql
        return broken(sql)

    monkeypatch.setattr(measuring, "render", rendered)
    under, rows = many_elements(1)
    assert CHARGED in faults(asked_of, asked("number", measure=Measure.EVENTS), under, rows)


def every_row(value: QueryValue, place: int, tau: int, dialect: Dialect) -> str:
    """Write the centred sum of all of a member's rows, whatever tau is."""
    total, count = (identifier(name, dialect) for name in (f"gris_total_{place + 1}", "gris_member_count"))
    rows = value.bounds.rows
    return f"2 * {rows.parts} * {total} - ({rows.finer.centre}) * {count}"


def unweighted(value: QueryValue, place: int, tau: int, dialect: Dialect) -> str:
    """Write the sum of all of a member's rows, centred by the number of those that count."""
    total, count = (identifier(name, dialect) for name in (f"gris_total_{place + 1}", "gris_member_count"))
    rows = value.bounds.rows
    return f"2 * {rows.parts} * {total} - ({rows.finer.centre}) * LEAST({count}, {tau})"


@pytest.mark.parametrize("wrong", [every_row, unweighted])
def test_sums_of_more_rows_than_are_counted_are_found(
    asked_of: Asked,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[QueryValue, int, int, Dialect], str],
) -> None:
    """Ada's three rows of a text count as two, so their sum may move by twice the width."""
    over_rows = asked("whole", measure=Measure.EVENTS)
    rows = [*HEAVY, *(Row("ada", "a", 20, 1.0) for _ in range(3))]
    assert faults(asked_of, over_rows, policy(whole=SIGNED), rows) == []
    monkeypatch.setattr(sums, "_centred_rows", wrong)
    found = faults(asked_of, over_rows, policy(whole=SIGNED), rows)
    assert "a member changes a sum by more than its width" in found


def test_counts_of_more_rows_than_tau_are_found(asked_of: Asked) -> None:
    """A query that clips at five rows where the price is for two."""

    def clips_later(resolution: Resolution) -> Resolution:
        parameters = replace(resolution.parameters, tau=5)
        return replace(resolution, query=replace(resolution.query, clip=5), parameters=parameters)

    rows = [*HEAVY, Row("ada", "a", 20, 1.0)]
    over_rows = asked("whole", measure=Measure.EVENTS)
    assert NOT_COUNTED in faults(asked_of, over_rows, policy(whole=SIGNED), rows, translate=clips_later)
