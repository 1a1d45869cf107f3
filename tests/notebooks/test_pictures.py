"""Pictures of answers, as SVG: what is drawn, where, and that every text in them is only a text."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from pinot_connector import PrivateResult, Row
from pinot_connector.engines.base import ColumnType, ExpectedColumn
from pinot_connector.notebooks.parts import MOST_COHORTS
from pinot_connector.notebooks.pictures import MOST_BARS, MOST_POINTS, Picture, picture
from pinot_connector.parameters import (
    Bounded,
    BoundedBy,
    Contributions,
    OneLook,
    Quantiles,
)
from pinot_connector.questions import RankFunction
from pinot_connector.shown_values import AggregateValue
from pinot_connector.statements import Statement
from pinot_connector.value_parameters import (
    GridScale,
    MemberValue,
    QuantileColumn,
    ShownNumber,
    ShownQuantile,
    SummedColumn,
    Sums,
)
from tests.notebooks.test_views import HOSTILE, result_of


def drawn(result: PrivateResult, place: int | None = None) -> Picture:
    """Return the picture of a result that has one."""
    found = picture(result, place)
    assert found is not None
    return found


def days(count: int) -> tuple[datetime.date, ...]:
    """Return the first days of 2024."""
    return tuple(datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(count))


def with_sums(result: PrivateResult, *, ordered_by: int | None = None) -> PrivateResult:
    """Return the result with a sum and an average of each element, the average of the last one not shown."""
    column = SummedColumn("paid", Fraction(1, 100), Fraction(0), Fraction(9), Fraction(1, 2), Fraction(1))
    shown = (
        ShownNumber("sum_paid", Fraction(1, 100), may_be_missing=False),
        ShownNumber("average_paid_per_member", Fraction(1, 100), may_be_missing=True),
    )
    sums = Sums(Fraction(1, 2), (column,), shown, ordered_by)
    kind = Bounded(
        Contributions(BoundedBy.IN_QUERY, 1, 1), 6, Fraction(9), Fraction(3), sums, OneLook(None, None)
    )
    value = AggregateValue(Fraction(123450, 100), (Fraction(1200), Fraction(1300)))
    rows = [replace(row, values=(value, value)) for row in result.rows]
    rows[-1] = replace(rows[-1], values=(value, None))
    parameters = replace(result.parameters, kind=kind)
    return replace(result, parameters=parameters, rows=tuple(rows), bottom=None)


def by(
    result: PrivateResult, columns: tuple[str, ...], elements: tuple[tuple[object, ...], ...]
) -> PrivateResult:
    """Return the result by other columns; intervals are 10 wide on both sides."""
    of_columns = tuple(
        ExpectedColumn(name, ColumnType.STRING, name.removeprefix("gris_")) for name in columns
    )
    rows = tuple(
        Row(element[:-1], element[-1], (element[-1] - 10, element[-1] + 10))  # type: ignore[arg-type, operator]
        for element in elements
    )
    return replace(result, columns=of_columns, rows=rows, bottom=None)


def test_a_funnel_says_beside_each_bar_which_part_of_step_1_it_is() -> None:
    """Of the same other values alone, and only where step 1 is no noise by itself."""
    steps = (("a", 1, 200), ("a", 2, 100), ("a", 3, 9), ("b", 1, 5), ("b", 2, 4), ("c", 2, 50))
    found = drawn(by(result_of(("a",)), ("app", "gris_step"), steps))
    assert ("a", "step 2") == found.bars[1].names
    assert ["", "50 % of step 1", "4.5 % of step 1", "", "", ""] == [bar.part for bar in found.bars]
    assert "which part of step 1" in found.caption
    result = by(result_of(("a",)), ("app", "gris_step"), steps)
    assert "50 % of step 1" in result._repr_html_()
    assert "a, step 2, 50 % of step 1" == result.plot().get_yticklabels()[1].get_text()


def test_retention_is_a_table_in_colours_of_parts_of_its_first_column() -> None:
    """A cell that cannot be yet is empty; without a first number that means something there are counts and no parts."""
    one, two, three = days(3)
    cells = (
        (two, 1, 40),
        (one, 0, 100),
        (one, 1, 50),
        (one, 2, -3),
        (two, 0, 80),
        (three, 0, 10),
        (three, 1, 5),
    )
    found = drawn(by(result_of(("a",)), ("gris_first", "gris_later"), cells))
    assert not found.bars
    titles = re.findall("<title>([^<]*)</title>", found.cohorts)
    assert titles == [
        "2024-01-01, 0 later: 100 (90 to 110)",
        "2024-01-01, 1 later: 50 (40 to 60), 50 % of column 0",
        "2024-01-01, 2 later: -3 (-13 to 7), -3.0 % of column 0",
        "2024-01-02, 0 later: 80 (70 to 90)",
        "2024-01-02, 1 later: 40 (30 to 50), 50 % of column 0",
        "2024-01-03, 0 later: 10 (0 to 20)",
        "2024-01-03, 1 later: 5 (-5 to 15)",
    ]
    assert len(titles) == found.cohorts.count('class="cell"')
    shown = re.findall('font-size="12" fill="currentColor">([^<]*)<', found.cohorts)
    assert ["-3.0 %", "80", "50 %", "10", ""] == shown[-5:]
    darkest = re.findall(r'fill-opacity="([\d.]+)"', found.cohorts)
    assert ["0.05", "0.50", "0.05", "0.05", "0.50", "0.05", "0.05"] == darkest
    result = by(result_of(("a",)), ("gris_first", "gris_later"), cells)
    assert found.cohorts in result._repr_html_()
    axes = result.plot()
    axes.figure.canvas.draw()
    assert ["100", "50 %", "-3.0 %", "80", "50 %", "10", ""] == [each.get_text() for each in axes.texts]
    assert "later: people, then parts of them" == axes.get_xlabel()


def test_of_many_cohorts_the_first_are_drawn() -> None:
    """The caption says how many there are."""
    cells = tuple((day, later, 100) for day in days(MOST_COHORTS + 2) for later in (0, 1))
    found = drawn(by(result_of(("a",)), ("gris_first", "gris_later"), cells))
    assert 2 * MOST_COHORTS == found.cohorts.count("<title>")
    assert f"the first {2 * MOST_COHORTS} of {len(cells)} elements" in found.caption


def test_hostile_names_and_titles_are_escaped() -> None:
    """In hints of a series and in what is said of it; names of bars are given as they are, for their page to escape."""
    result = replace(result_of(days(3), ColumnType.DATE), count_alias=HOSTILE[0])
    assert "<script" not in drawn(result).series
    assert "&lt;script&gt;" in drawn(result).series
    assert [bar.names for bar in drawn(result_of(HOSTILE)).bars] == [(name,) for name in HOSTILE]
    assert not any(name in bar.svg for bar in drawn(result_of(HOSTILE)).bars for name in HOSTILE)


@pytest.mark.parametrize("count", [1, 2, 24, 400, 3000])
def test_a_series_is_a_line_with_a_band_and_as_many_hints(count: int) -> None:
    """In the order of days, however they came; places are in percent and none is outside."""
    result = result_of(days(count)[::-1], ColumnType.DATE)
    svg = drawn(result).series
    (line,) = re.findall(r'class="line" points="([^"]*)"', svg)
    places = [tuple(map(float, point.split(","))) for point in line.split()]
    assert len(places) == min(count, MOST_POINTS)
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert all(0 <= part <= 100 for place in places for part in place)
    assert len(re.findall("class=.band.", svg)) == 1
    hints = re.findall("<title>([^<]*)</title>", svg)
    assert len(hints) == (count if count <= 400 else 0)
    assert hints[:1] == ([f"2024-01-01: {101 - count} ({91 - count} to {111 - count})"] if hints else [])
    cut = "; the first 2,000 of 3,000 elements" if count == 3000 else ""
    assert drawn(result).caption == (
        f"people, with a band between the ends of its intervals{cut}; dashed: nothing below may be shown"
    )


def test_whole_numbers_in_their_order_are_a_series_and_ranked_ones_are_not() -> None:
    """Hours of a day as a line, and the largest of some ids as bars."""
    ranked = result_of(tuple(range(24)), ColumnType.INT64)
    listed = replace(ranked, statements=(Statement("order.of_elements", "in order"),))
    assert not drawn(ranked).series
    assert drawn(listed).series
    assert not drawn(replace(result_of(("a", "b")), statements=listed.statements)).series


def test_bars_have_their_intervals_where_they_are_and_are_not_too_many() -> None:
    """A count below 0 goes to the other side of the line at 0."""
    result = replace(result_of(tuple(map(str, range(60)))), bottom=None)
    found = drawn(replace(result, rows=(Row(("a",), -10, (0, 0)), *result.rows)))
    assert len(found.bars) == MOST_BARS
    assert "; the first 50 of 61 elements" in found.caption
    first = found.bars[0]
    # From -10 to 110: 0 is at a twelfth.
    assert 'x="0.00%" y="3" width="8.33%" height="16" rx="2" class="value"' in first.svg
    assert (first.row, first.names, first.text) == (0, ("a",), "-10")
    assert "stroke-dasharray" not in first.svg
    assert "stroke-dasharray" in drawn(result_of(("a",))).bars[0].svg


def test_sums_and_averages_are_drawn_when_asked_for() -> None:
    """Or where the list is in their order, or the question selects nothing else; a place that is none is the first."""
    result = with_sums(result_of(("a", "b")))
    assert list(drawn(result).titles) == ["people", "sum_paid", "average_paid_per_member"]
    assert [drawn(result, place).drawn for place in (None, 1, 2, 7)] == [0, 1, 2, 0]
    assert [bar.text for bar in drawn(result, 1).bars] == ["1,234.50", "1,234.50"]
    # No average is shown of the other.
    assert [bar.row for bar in drawn(result, 2).bars] == [0]
    assert drawn(with_sums(result_of(("a", "b")), ordered_by=0)).drawn == 1
    assert drawn(replace(result, selected=(0, 2))).drawn == 1
    assert drawn(replace(result, selected=(0, 2, 1))).drawn == 0
    assert "sum_paid" in drawn(with_sums(result_of(days(2), ColumnType.DATE)), 1).series


def test_quantiles_are_cells_along_one_scale() -> None:
    """Each with its colour; of an element without any there is no line."""
    column = QuantileColumn(
        "age", MemberValue.LARGEST, Fraction(1), GridScale.LINEAR, Fraction(0), Fraction(99), 20
    )
    shown = tuple(
        ShownQuantile(RankFunction.QUANTILE, "age", q, None, Fraction(5))
        for q in (Fraction(1, 2), Fraction(9, 10))
    )
    result = result_of(("a", "b"), counts=False)
    parameters = replace(result.parameters, kind=Quantiles(column, shown, None))
    cells = [AggregateValue(Fraction(low + 2), (Fraction(low), Fraction(low + 4))) for low in (20, 40)]
    rows = (Row(("a",), None, None, tuple(cells)), Row(("b",), None, None, (None, None)))
    found = drawn(replace(result, parameters=parameters, rows=rows))
    (bar,) = found.bars
    assert bar.text == "22 · 42"
    assert re.findall(r'x="([\d.]+)%" y="3" width="([\d.]+)%" height="16" rx="2" class="cell"', bar.svg) == [
        ("0.00", "16.67"),
        ("83.33", "16.67"),
    ]
    assert [name for name, _ in found.legend] == ["age_p50", "age_p90"]


def test_what_has_no_numbers_has_no_picture() -> None:
    """Elements alone, or no element at all."""
    assert picture(result_of(("a",), counts=False)) is None
    assert picture(result_of(())) is None
