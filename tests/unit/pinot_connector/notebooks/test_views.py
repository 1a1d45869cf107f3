"""Results in notebooks: tables, frames and pictures, whatever strangers have called the elements."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from gris_api.dp.v1 import dp_pb2

from pinot_connector import Cost, PrivateResult, Row
from pinot_connector.coverage import Interval, TwoSided
from pinot_connector.engines.base import ColumnType, ExpectedColumn
from pinot_connector.errors import InvalidQuestion
from pinot_connector.parameters import (
    Consistency,
    CountNoise,
    Gumbel,
    IntervalKind,
    Mechanism,
    Parameters,
)
from pinot_connector.results import Explanation
from pinot_connector.statements import Statement

mpl.use("agg")
from matplotlib import pyplot as plt

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></tr></table><h1>paid by others",
    "abc\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET} 12",
    r"$\frac{1}{$",
    "=HYPERLINK(1)",
    "\x1b[2J\u200b",
)
PARAMETERS = Parameters(
    mechanism=Mechanism.UNK_GUMB,
    epsilon_per=Fraction(3, 20),
    delta=Fraction(1, 10**10),
    tau=1,
    k=10,
    domain_size=None,
    consistency=Consistency.KEYED,
    kind=Gumbel(d_bar=1000, count_noise=CountNoise.LAPLACE, noise_scale=Fraction(20, 3)),
    coverage=TwoSided(),
)


ENDED = "The list ended in bottom (noisy threshold 42): nothing below may be shown."


def result_of(
    elements: tuple[Any, ...], kind: ColumnType = ColumnType.STRING, *, counts: bool = True
) -> PrivateResult:
    """Return a result with these elements of one column, ranked by counts that go down."""
    rows = [
        Row((element,), 100 - place, Interval(90 - place, 110 - place))
        if counts
        else Row((element,), None, None)
        for place, element in enumerate(elements)
    ]
    return PrivateResult(
        columns=(ExpectedColumn("element", kind),),
        count_alias="people",
        rows=tuple(rows),
        ended_in_bottom=True,
        bottom=42,
        parameters=PARAMETERS,
        interval_kind=IntervalKind.PLAIN if counts else IntervalKind.NONE,
        confidence=0.95,
        cost=Cost(21, 1, "unit"),
        charged=Cost(0, 0, "unit"),
        remaining=(),
        data_version="v",
        release_id="r",
        query_id="q",
        key_id="k",
        statements=(Statement("list.ended", ENDED),),
        _messages=(dp_pb2.Shown(), dp_pb2.ShownElements()),
    )


class Page(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect tags."""
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        """Collect texts."""
        self.cells.append(data)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_hostile_elements_are_text_in_html() -> None:
    """No tag but the table's own, no formula, and no letter that is not seen or turns its neighbours around."""
    page = Page(result_of(HOSTILE)._repr_html_())
    assert {"table", "thead", "tbody", "tr", "th", "td", "p", "bdi"} == page.tags
    assert [element for element in HOSTILE if element.isprintable()] == [
        cell for cell in page.cells if cell in HOSTILE
    ]
    assert "abc\N{REPLACEMENT CHARACTER}gpj.exe" in page.cells
    assert all(cell.isprintable() for cell in page.cells)


def test_printed_is_a_table_too() -> None:
    """For consoles: what HTML says, in lines of text that can be seen and in which nothing turns its neighbours."""
    lines = str(result_of(HOSTILE)).splitlines()
    assert "element" == lines[0].split()[0]
    assert len(HOSTILE) + 1 == lines.index(ENDED)
    turned = next(line for line in lines if "12" in line)
    assert turned.startswith(f"\N{FIRST STRONG ISOLATE}{HOSTILE[4]}\N{POP DIRECTIONAL ISOLATE}")
    assert all(line.isprintable() for line in lines if line != turned)
    assert "cost: 21 information and 1 call; charged now: 0 information and 0 calls" == lines[-1]


def test_an_explanation_is_a_table_with_the_price() -> None:
    """Before asking."""
    sentence = "a sentence that is not cut " * 40
    said = tuple(Statement("question", text) for text in ("<b>text</b>", sentence))
    explanation = Explanation(Cost(21, 1, "unit"), PARAMETERS, said, (), _estimate=dp_pb2.Estimate())
    cells = Page(explanation._repr_html_()).cells
    assert ["information units, at most", "21", "calls, at most", "1"] == cells[1:5]
    assert {"<b>text</b>", sentence} <= set(cells)


def test_long_results_show_their_beginning() -> None:
    """And say how much there is."""
    cells = Page(result_of(tuple(map(str, range(100_000))))._repr_html_()).cells
    assert "the first 100 of 100,000 elements" in cells
    assert "100" not in cells[100 * 3 + 3 :]


def test_a_long_name_leaves_room_for_the_result() -> None:
    """In pictures and tables it ends in an ellipsis; frames have all of it."""
    result = result_of(("a" * 100_000, "b"))
    axes = result.plot()
    axes.figure.canvas.draw()
    assert [40, 1] == [len(label.get_text()) for label in axes.get_yticklabels()]
    assert axes.get_position().width > 0.4
    assert len(result._repr_html_()) < 5_000
    assert len(str(result).splitlines()[1]) < 120
    assert 100_000 == len(result.to_pandas().element[0])


@pytest.mark.parametrize("counts", [True, False])
def test_frames_hold_elements_unchanged(*, counts: bool) -> None:
    """With the DB-API's columns; types do not depend on how many rows there are."""
    names = ["element", "people", "people_lower", "people_upper"][: None if counts else 1]
    result = result_of(HOSTILE, counts=counts)
    frame = result.to_pandas()
    assert [names, list(HOSTILE)] == [list(frame.columns), list(frame.element)]
    assert names == list(result_of((), counts=counts).to_pandas().columns)
    assert {"release_id": "r", "confidence": 0.95, "bottom": 42} == frame.attrs


def test_days_are_days() -> None:
    """As pandas reads them from a database."""
    day = datetime.date(2024, 2, 29)
    result = result_of((day,), ColumnType.DATE)
    assert pd.Series([day]).equals(result.to_pandas().element.rename(None))


def test_a_ranking_is_bars_with_intervals_and_bottom() -> None:
    """Labels are texts, and no formula that could fail to be drawn."""
    axes = result_of(HOSTILE).plot()
    axes.figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [HOSTILE[5], HOSTILE[6], "\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}"] == labels[5:]
    assert [100, 99] == [bar.get_width() for bar in axes.patches[:2]]
    # One for each interval, and their ends.
    assert [(90.0, 110.0)] == [tuple(axes.collections[0].get_segments()[0][:, 0])]
    assert [42, 42] == list(axes.get_lines()[-1].get_xdata())
    assert "people" == axes.get_xlabel()


def test_a_series_is_a_line_with_a_band_in_the_order_of_days() -> None:
    """Results are ranked, and time is not."""
    days = tuple(datetime.date(2024, 3 - month, 1) for month in range(3))
    axes = result_of(days, ColumnType.DATE).plot()
    axes.figure.canvas.draw()
    assert [98, 99, 100] == list(axes.get_lines()[0].get_ydata())
    assert 1 == len(axes.collections)
    named = result_of(HOSTILE).plot(series=True)
    named.figure.canvas.draw()
    assert '"><img src=x onerror=alert(1)>' in [label.get_text() for label in named.get_xticklabels()]


def test_a_ranking_without_counts_has_no_picture() -> None:
    """The error says what is missing."""
    with pytest.raises(InvalidQuestion, match="expected a result with counts"):
        result_of(("a",), counts=False).plot()


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"clipped": True}, {"tau": 3}])
def test_an_axis_of_rows_says_rows_and_how_many_bars_there_are_not(more: dict[str, Any]) -> None:
    """Members are another number; and a reader who sees only 50 bars would take them for all."""
    unnamed = replace(result_of(tuple(map(str, range(60)))), count_alias=None)
    counted = replace(unnamed, parameters=replace(PARAMETERS, **more))
    assert [result.plot().get_xlabel() for result in (unnamed, counted)] == [
        "members, the first 50 of 60",
        "rows, the first 50 of 60",
    ]
    assert counted.plot(series=True).get_ylabel() == "rows"
