"""What is drawn of members' steps and first times: each number as a part of the first one that it belongs to.

A part is the quotient of two numbers as they are shown, noise and all, and has no interval. It is there only where the
interval of the first number lies above 0: noise alone would make most of any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pinot_connector.notebooks.svg import BAR, Number, escaped
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import ShownScalar

STEP = "gris_step"
_FIRST, _LATER = "gris_first", "gris_later"
MOST_COHORTS = 40
_NAME, _CELL, _HEIGHT, _TOP = 92, 58, 30, 44
_PALEST, _DARKEST = 0.05, 0.5


def place_of(result: PrivateResult, function: str) -> int | None:
    """Returns where in an element a function is; None: the question does not group by it."""
    return next((place for place, each in enumerate(result.columns) if each.name == function), None)


def is_retention(result: PrivateResult) -> bool:
    """Returns whether elements are first times and how much later members come back, and nothing besides."""
    return {_FIRST, _LATER} == {each.name for each in result.columns}


def percent(part: float) -> str:
    """Returns a part of a whole in percent."""
    return f"{100 * part:.0f} %" if abs(part) >= 0.095 else f"{100 * part:.1f} %"


def part_of(number: Number, first: Number | None) -> float | None:
    """Returns which part of the first number another one is; None: that says nothing."""
    return None if first is None or first.low <= 0 else number.value / first.value


def parts_of_steps(result: PrivateResult, numbers: Mapping[int, Number]) -> dict[int, str]:
    """Returns which part of step 1 the number of each row of a funnel is, in words; of other results nothing.

    Args:
        result: The answer.
        numbers: What is drawn, by row.
    """
    step = place_of(result, STEP)
    if step is None:
        return {}
    beside = {row: _without(result.rows[row].element, step) for row in numbers}
    first = {beside[row]: numbers[row] for row in numbers if result.rows[row].element[step] == 1}
    found = ((row, part_of(number, first.get(beside[row]))) for row, number in numbers.items())
    later = ((row, part) for row, part in found if result.rows[row].element[step] != 1)
    return {row: f"{percent(part)} of step 1" for row, part in later if part is not None}


def _without(element: tuple[ShownScalar, ...], place: int) -> tuple[ShownScalar, ...]:
    return element[:place] + element[place + 1 :]


def _places(result: PrivateResult) -> tuple[int, int]:
    return place_of(result, _FIRST) or 0, place_of(result, _LATER) or 0


def rows_of_cohorts(result: PrivateResult, rows: Sequence[int]) -> list[int]:
    """Returns which of these rows are drawn: those of the first cohorts, and of as many buckets later."""
    first, later = _places(result)
    days = {str(result.rows[row].element[first]) for row in rows}
    shown = set(sorted(days)[:MOST_COHORTS])
    elements = ((row, result.rows[row].element) for row in rows)
    return [
        row for row, each in elements if str(each[first]) in shown and int(str(each[later])) < MOST_COHORTS
    ]


@dataclass(frozen=True)
class Cell:
    """A number of the cohort at a place, which part of its first number it is, and how dark: from 0 to 1."""

    place: int
    later: int
    number: Number
    part: float | None
    strength: float

    @property
    def text(self) -> str:
        """What is written in it: a number in the first column, else a part, and nothing where that says nothing."""
        if self.part is None:
            return "" if self.later else self.number.text
        return percent(self.part)

    def svg(self, name: str) -> str:
        """Returns it with what is said of it while the pointer is there; `name` is the cohort's."""
        part = "" if self.part is None else f", {percent(self.part)} of column 0"
        hint = f"{name}, {self.later} later: {self.number.text} ({self.number.interval}){part}"
        x, y = _NAME + _CELL * self.later, _TOP + _HEIGHT * self.place
        return (
            f'<g><title>{escaped(hint)}</title><rect x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" '
            f'height="{_HEIGHT - 2}" rx="2" class="cell" fill="{BAR}" fill-opacity="{self.strength:.2f}"></rect>'
            f"{_text(_middle(self.later), _line(self.place), self.text)}</g>"
        )


@dataclass(frozen=True)
class Cohorts:
    """Numbers by first time and by how many buckets later.

    Attributes:
        titles: What these two are called.
        rows: For each first time the number of each of the buckets later.
    """

    titles: tuple[str, str]
    rows: Mapping[ShownScalar, Mapping[int, Number]]

    @classmethod
    def of(cls, result: PrivateResult, numbers: Mapping[int, Number]) -> Cohorts:
        """Returns those of an answer.

        Args:
            result: The answer.
            numbers: What is drawn, by row.
        """
        first, later = _places(result)
        rows: dict[ShownScalar, dict[int, Number]] = {}
        for row, number in sorted(numbers.items(), key=lambda each: str(result.rows[each[0]].element[first])):
            element = result.rows[row].element
            rows.setdefault(element[first], {})[int(str(element[later]))] = number
        return cls((result.columns[first].title, result.columns[later].title), rows)

    def cells(self) -> Iterator[Cell]:
        """Yields the numbers with their parts of the first column, cohort by cohort."""
        parts = {
            (place, later): part_of(number, row.get(0)) if later else None
            for place, row in enumerate(self.rows.values())
            for later, number in row.items()
        }
        largest = max([each for each in parts.values() if each is not None and each > 0], default=1.0)
        for place, row in enumerate(self.rows.values()):
            for later, number in sorted(row.items()):
                part = parts[place, later]
                strength = 0.0 if part is None else min(1.0, max(0.0, part / largest))
                yield Cell(place, later, number, part, _PALEST + (_DARKEST - _PALEST) * strength)

    def svg(self, label: str) -> str:
        """Returns a table in colours, as wide as it has columns: darker where more of those who came first come back.

        Args:
            label: What is drawn, for those who do not see it.
        """
        cells, names = list(self.cells()), list(map(str, self.rows))
        columns = 1 + max((each.later for each in cells), default=0)
        first, later = self.titles
        shapes = [
            *(_text(0, _TOP - 10, first, "start"), _text(_NAME, 14, later, "start")),
            *(_text(_middle(place), _TOP - 10, str(place)) for place in range(columns)),
            *(_text(0, _line(place), name, "start") for place, name in enumerate(names)),
            *(each.svg(names[each.place]) for each in cells),
        ]
        return (
            f'<svg class="cohorts tex2jax_ignore mathjax_ignore" role="img" aria-label="{escaped(label)}" '
            f'width="{_NAME + _CELL * columns}" height="{_TOP + _HEIGHT * len(names)}">{"".join(shapes)}</svg>'
        )


def _line(place: int) -> float:
    return _TOP + _HEIGHT * place + 19


def _middle(later: int) -> float:
    return _NAME + _CELL * (later + 0.5)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    where = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text {where} font-size="12" fill="currentColor">{escaped(text)}</text>'
