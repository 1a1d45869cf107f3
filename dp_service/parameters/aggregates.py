"""The parameters of what a release says besides counts: sums, averages and quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.parameters.numbers import ShownNumber
from dp_service.terms import FINE_STEPS, AggregateFunction, GridSpec, MemberValue, RankFunction


@dataclass(frozen=True)
class SummedValue:
    """What a release adds up of each member, or of its rows: the values of a column, or how many there are.

    Attributes:
        name: The name of the column; empty where members or rows are counted.
        quantum: What one step of its sums is worth.
        low: The least that a member's total in an element can be, in steps; over rows, that of a row.
        high: The most.
        share: The part of the release's units that its sums take.
        count_share: The part that a count of its own takes; None: it has none, and shares that of the elements.
        function: SUM of a column; MEMBERS or ROWS where these are counted.
        condition: The number of its condition, by the order in which the question names them, from 1 on; 0: it has
            none. What the condition is, the question says, so this is no part of the release.
        keeps_nulls: Whether rows without a value count with the number that the policy states. No part of it either.
        is_raised: Whether rows below 0 or without a value are added up: then a sum may be too large as well.
            No part of the release.
        rows: How many rows of a member count in full in an element; None: its total does.
        is_centred: Whether what is added up is twice that, less both ends; otherwise it is twice that.
        typical: In how many elements a member counts in full, where these are fewer than for counts; None: in as many.
    """

    name: str
    quantum: Fraction
    low: int
    high: int
    share: Fraction
    count_share: Fraction | None = None
    function: AggregateFunction = AggregateFunction.SUM
    condition: int = 0
    keeps_nulls: bool = False
    is_raised: bool = False
    rows: int | None = None
    is_centred: bool = True
    typical: int | None = None

    @property
    def called(self) -> str:
        """What statements call it."""
        of = self.name or self.function.value
        return f"{of} where condition {self.condition} holds" if self.condition else of

    def grid(self, of_counts: int) -> int:
        """Return what one step is in its sums: values of many steps need not be on the grid of counts."""
        is_fine = self.function is AggregateFunction.SUM and self.high - self.low >= FINE_STEPS
        return 1 if is_fine else of_counts

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [
            ("sum", self.name),
            ("quantum", self.quantum),
            ("low", self.low),
            ("high", self.high),
            ("centred", self.is_centred),
            ("rows", self.rows),
            ("sum_share", self.share),
            *([] if self.count_share is None else [("count_share", self.count_share)]),
            *([] if self.function is AggregateFunction.SUM else [("number_of", self.function.name)]),
            *([] if self.typical is None else [("sum_typical", self.typical)]),
        ]


@dataclass(frozen=True)
class SumsReleased:
    """What a release of sums has besides what every release of bounded contributions has.

    Attributes:
        share: The part of the units that the counts take.
        columns: The columns that are summed, by name; empty: numbers of the count alone are asked for.
        asked: What the question shows of them; no part of the release.
        ordered_by: The place in `asked` of what the list is in descending order of; None: it is in the order of its
            counts. No part of the release either.
    """

    share: Fraction
    columns: tuple[SummedValue, ...]
    asked: tuple[ShownNumber, ...]
    ordered_by: int | None = None

    @property
    def own_counts(self) -> tuple[int, ...]:
        """The places in `columns` of those with a count of their own."""
        return tuple(place for place, column in enumerate(self.columns) if column.count_share is not None)

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        if not self.columns:
            # Counts alone, whatever is computed of them, are one release.
            return []
        return [("share", self.share), *(pair for column in self.columns for pair in column.specified())]


@dataclass(frozen=True)
class ShownQuantile:
    """What the question shows in one place: which rank (`q` for a quantile, else None), and its alias in SQL."""

    function: RankFunction
    q: Fraction | None = None
    alias: str = ""


@dataclass(frozen=True)
class QuantilesReleased:
    """What a release of quantiles has besides what every release has.

    Attributes:
        column: The column.
        quantum: What one step of its values is worth.
        grid: The public grid, in steps.
        rule: Which value of a member counts; it is part of what the question means.
        quantiles: The quantiles that are chosen, ascending.
        smallest: Whether about the smallest value is, too.
        largest: Whether about the largest value is, too.
        asked: What the question shows, in its order: each of the above once. The order is no part of the release.
        ordered_by: The place in `asked` of what the list is in descending order of; None: it is in the order of its
            elements. No part of the release either.
    """

    column: str
    quantum: Fraction
    grid: GridSpec
    rule: MemberValue
    quantiles: tuple[Fraction, ...]
    smallest: bool
    largest: bool
    asked: tuple[ShownQuantile, ...]
    ordered_by: int | None = None

    @property
    def places(self) -> tuple[int, ...]:
        """Where each of `asked` is in the release: quantiles come first, then the smallest, then the largest."""
        order: list[tuple[RankFunction, Fraction | None]] = [
            *((RankFunction.QUANTILE, q) for q in self.quantiles),
            *([(RankFunction.SMALLEST, None)] if self.smallest else []),
            *([(RankFunction.LARGEST, None)] if self.largest else []),
        ]
        return tuple(order.index((each.function, each.q)) for each in self.asked)

    @property
    def units(self) -> int:
        """What one group costs a member that has a value in it: ceil(log2(m + 1)), and one for each extreme."""
        return len(self.quantiles).bit_length() + self.smallest + self.largest

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        grid = self.grid
        return [
            ("quantiles_of", self.column),
            ("quantum", self.quantum),
            ("grid", f"{grid.scale.name} {grid.low} {grid.high} {grid.cells}"),
            ("quantiles", " ".join(map(str, self.quantiles))),
            ("smallest", self.smallest),
            ("largest", self.largest),
        ]

    @classmethod
    def of(
        cls,
        column: str,
        quantum: Fraction,
        grid: GridSpec,
        rule: MemberValue,
        asked: tuple[ShownQuantile, ...],
        *,
        ordered_by: int | None = None,
    ) -> QuantilesReleased:
        """Return what a question releases that shows all of this."""
        functions = {each.function for each in asked}
        return cls(
            column,
            quantum,
            grid,
            rule,
            tuple(sorted(each.q for each in asked if each.q is not None)),
            RankFunction.SMALLEST in functions,
            RankFunction.LARGEST in functions,
            asked,
            ordered_by,
        )
