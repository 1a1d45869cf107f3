"""Results: released values, their cost, and their confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import repeat
from typing import Any

from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budgets import Charge, Cost, Level, Share, cost_of, narrowest, shares_of
from pinot_connector.combining import (
    Coefficient,
    Combined,
    Element,
    Part,
    combined,
    part_of,
    parts_of,
    quotient,
)
from pinot_connector.coverage import Cell, Ends, InCells
from pinot_connector.engines.base import ExpectedColumn
from pinot_connector.errors import IntegrityError
from pinot_connector.json_values import to_json
from pinot_connector.notebooks import ExplanationViews, ResultViews
from pinot_connector.parameters import IntervalKind, Mechanism, Parameters
from pinot_connector.releases import column_values, require_shown
from pinot_connector.shown_values import (
    DayValue,
    ShownScalar,
    ShownValue,
    aggregate_values,
    exact_values,
    shown_values,
)
from pinot_connector.statements import Statement
from pinot_connector.views import day, exact, read_by, view


@dataclass(frozen=True)
class Row:
    """One element with its noisy count and the ends beside it (`coverage`); None without counts.

    The noisy count is a whole number. Where counts are released relative to their total (`Contributions.shift`), it is
    a float that is exactly a multiple of 1 / `denominator`, such as 412.5.

    `values` are its sums and averages, or its quantiles, in the order of `Parameters.values`. It is None where there is
    no number to show: where the interval of a divisor, such as an average's count, holds 0.
    """

    element: tuple[ShownScalar, ...]
    noisy_count: int | float | None
    interval: Ends[int] | None
    values: tuple[ShownValue | None, ...] = ()


@dataclass(frozen=True)
class Total:
    """How many members count in any element: the noisy number, and the ends beside it (`coverage`)."""

    noisy_count: int
    interval: Ends[int]


def _total_of(shown: dp_pb2.Shown) -> Total | None:
    if not shown.HasField("total"):
        return None
    total, covers = shown.total, view(Parameters, shown.parameters).coverage
    return Total(total.count, covers.ends(total.noise_lower, total.noise_upper))


@dataclass(frozen=True)
class PrivateResult(ResultViews):
    """A release that has been paid for.

    `rows` are ranked. `count_alias` is what a question in SQL calls their counts, None where it gives no name. If
    `ended_in_bottom`, nothing below may be shown, and `bottom` is the noisy threshold, rounded down, where the
    mechanism releases one. `cost` is what the release costs, `charged` what it took from the budget this time: nothing
    if this account had paid for it. `remaining` is what was left right afterwards; empty if the result was given from
    what is kept, without asking the ledger. `data_version` is keyed and verifies no guess about the data.
    `audience_rows` names the rows that the audience of who asked is restricted to; empty: to none. `requested_k` is the
    question's k where the policy shows at most `parameters.k` elements, which is less; None where it shows as many.
    `total` is how many members count in any element, where that is a part of the release. `rank_errors` are of
    quantiles, in the order of `Parameters.values`: with the confidence of the result, all wanted ranks of an
    element together are within so many members of the ranks that the shown cells hold, besides what
    `ShownQuantile.cuts` add. `selected` is what a question in SQL selects, in its order: places
    among the columns, the count and the values; empty: all of them. `statements` say what the numbers are of, what
    their intervals cover, and how they were made.
    """

    columns: tuple[ExpectedColumn, ...]
    count_alias: str | None
    rows: tuple[Row, ...]
    ended_in_bottom: bool
    bottom: int | None
    parameters: Parameters
    interval_kind: IntervalKind
    confidence: float
    cost: Cost
    charged: Cost
    remaining: tuple[Level, ...]
    data_version: str
    release_id: str
    query_id: str
    key_id: str
    audience_rows: str = ""
    requested_k: int | None = None
    total: Total | None = field(default=None, metadata=read_by(_total_of))
    rank_errors: tuple[Fraction, ...] = ()
    statements: tuple[Statement, ...] = ()
    selected: tuple[int, ...] = ()
    _explanation: Explanation | None = field(default=None, repr=False)
    _messages: tuple[dp_pb2.Shown, dp_pb2.ShownElements] = field(repr=False, compare=False, kw_only=True)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that the release came from."""
        return self.parameters.mechanism

    @property
    def explanation(self) -> Explanation | None:
        """What `explain` returns, where SQL asks for that alone (EXPLAIN); None: the question was answered.

        Beside it there are no rows, and nothing was charged.
        """
        return self._explanation

    def part(self, element: Element, number: str | None = None) -> Part:
        """Returns a number of an element, to be combined with numbers of another answer of the same account.

        Args:
            element: the element: its value, or a tuple of its values where the answer has several columns.
            number: the title of a sum or another number beside the count; None: the count.

        Raises:
            InvalidQuestion: the answer shows no such element or number.
        """
        return part_of(self, element, number)

    def combine(
        self,
        coefficients: Mapping[Element | Part, Coefficient],
        *,
        number: str | None = None,
        candidates: int = 1,
    ) -> Combined:
        """Returns the sum of numbers times their coefficients, with an interval. It is free.

        Args:
            coefficients: by element of this answer, or by `part` of another one.
            number: the title of a sum or another number beside the count; None: the count.
            candidates: among how many combinations this one was picked by its value.

        Raises:
            InvalidQuestion: the answer shows no such element or number, or a coefficient is no finite number from 10^-9
                to 10^9.

        Example:
            >>> answer = client.top_k("feedback", "article_id", 3)
            >>> first, second, _ = (row.element for row in answer.rows)
            >>> answer.combine({first: 1, second: -1}).confidence
            0.9
        """
        return combined(parts_of(self, coefficients, number), candidates)

    def ratio(
        self, above: Element | Part, below: Element | Part, *, number: str | None = None, candidates: int = 1
    ) -> Combined:
        """Returns one number divided by another one, with an interval; no value where the divisor may be 0. It is free.

        Args:
            above: an element of this answer, or a `part` of another one.
            below: what it is divided by.
            number: the title of a sum or another number beside the count; None: the count.
            candidates: among how many quotients this one was picked by its value.

        Raises:
            InvalidQuestion: the answer shows no such element or number.
        """
        (divided, _), (divisor, _) = (parts_of(self, {each: 1}, number)[0] for each in (above, below))
        return quotient(divided, divisor, candidates)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result in terms of JSON: days as ISO 8601, exact numbers as "p/q"."""
        return {"mechanism": self.mechanism.value, **to_json(self)}


@dataclass(frozen=True)
class RenderedQuery:
    """The query that an engine of this dialect would run, for an operator to read.

    `look` is 1 or 2 for the queries of two looks, and 0 where there is one; the second has ":names" where it will list
    what the first one named.
    """

    dialect: str
    sql: str
    look: int = 0


@dataclass(frozen=True)
class ExpectedPrice:
    """What a question costs on average, if k elements lie `above` the count at rank d_bar + 1 and nothing else does."""

    above: int
    found: float
    information: float


@dataclass(frozen=True)
class Accuracy:
    """How exact an answer can be expected to be, by the question's public parameters alone.

    By its noise alone a count is off by at most `half_width` with 95 %, and by `mean_error` on average; None without
    counts. An element passes the threshold with 50 % if its count is `found_half` and with 95 % if it is
    `found_mostly`: that number itself if `is_fixed`, else so far above the count at rank d_bar + 1; None where there is
    no threshold. Two counts that lie `ordered_mostly` apart are ranked in their order before noise with 95 %; None
    where the noise in the counts alone decides. `prices` are for counts of `found_half` and `found_mostly`; empty where
    the price is the same, whatever is found.
    """

    half_width: int | None
    mean_error: float | None
    found_half: int | None
    found_mostly: int | None
    is_fixed: bool
    ordered_mostly: int | None
    prices: tuple[ExpectedPrice, ...]


@dataclass(frozen=True)
class Explanation(ExplanationViews):
    """What a question would cost at most and what would be done, before anything is asked or paid.

    `shares` are the cost's shares of every limit, by level and unit; empty if the budget was not read, or nothing has a
    limit. A question whose answers repeat, and which the account has paid for on the same data, costs nothing.
    `requested_k` is the question's k where the policy shows at most `parameters.k` elements, which is less.
    `accuracy` is how exact the answer can be expected to be; None: the service is of a version that does not say.
    """

    worst_case_cost: Cost
    parameters: Parameters
    statements: tuple[Statement, ...]
    queries: tuple[RenderedQuery, ...]
    shares: tuple[Share, ...] = ()
    requested_k: int | None = None
    accuracy: Accuracy | None = None
    _estimate: dp_pb2.Estimate = field(repr=False, compare=False, kw_only=True)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements as texts."""
        return tuple(each.text for each in self.statements)

    @property
    def narrowest(self) -> Share | None:
        """The share that decides: of the level and unit that end first; None if none of them enforces a limit."""
        return narrowest(self.shares)

    def of_budget(self, levels: Iterable[Level]) -> Explanation:
        """Returns the same with the shares of a budget."""
        return replace(self, shares=shares_of(levels, self.worst_case_cost))

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation in terms of JSON."""
        return {
            "mechanism": self.parameters.mechanism.value,
            **to_json(self),
            "narrowest": to_json(self.narrowest),
        }


def prepared(shown: dp_pb2.Shown, elements: dp_pb2.ShownElements) -> Callable[[Charge], PrivateResult]:
    """Prepares everything of a result that can fail, and returns the function that completes it after the charge.

    A release that cannot be shown must not be charged, so nothing may fail after the charge.

    Raises:
        IntegrityError: a message says something that this version does not know, or its parts do not belong together.
    """
    require_shown(shown, elements)
    columns = tuple(view(ExpectedColumn, column) for column in shown.columns)
    parameters = view(Parameters, shown.parameters)
    result = view(
        PrivateResult,
        shown,
        columns=columns,
        parameters=parameters,
        rows=_rows_of(columns, shown, elements, parameters),
        rank_errors=tuple(exact(each.rank_error) for each in elements.quantiles),
        charged=cost_of(shown.cost),
        remaining=(),
        _explanation=None,
        _messages=(shown, elements),
    )
    return lambda charge: replace(result, charged=charge.charged, remaining=charge.remaining)


def free_result(answer: dp_pb2.FreeAnswer) -> PrivateResult:
    """Returns the result of a question that needs no release: nothing was read, and nothing was charged.

    Raises:
        IntegrityError: the answer says something that this version does not know, or its parts do not belong together.
    """
    return prepared(answer.shown, answer.elements)(Charge(cost_of(answer.shown.cost), ()))


def explaining(result: PrivateResult, explanation: Explanation) -> PrivateResult:
    """Returns the result of SQL that asks for this explanation alone."""
    return replace(result, _explanation=explanation)


def priced_result(explanation: Explanation, confidence: float) -> PrivateResult:
    """Returns the result of SQL that asks for a price alone: it has no rows, and nothing was charged."""
    estimate = explanation._estimate
    shown = dp_pb2.Shown(
        parameters=estimate.parameters,
        statements=estimate.statements,
        requested_k=estimate.requested_k,
        interval_kind=dp_pb2.INTERVAL_KIND_NONE,
        confidence=confidence,
        cost=cost_pb2.Cost(unit_id=estimate.worst_case_cost.unit_id),
    )
    complete = prepared(shown, dp_pb2.ShownElements())
    return explaining(complete(Charge(cost_of(shown.cost), ())), explanation)


def messages_of(result: PrivateResult) -> tuple[dp_pb2.Shown, dp_pb2.ShownElements]:
    """Returns the messages that a result was made of, to be passed on; nobody may change them."""
    return result._messages


def estimate_of(explanation: Explanation) -> dp_pb2.Estimate:
    """Returns the message that an explanation was made of, to be passed on; nobody may change it."""
    return explanation._estimate


def explanation_of(
    estimate: dp_pb2.Estimate, queries: Iterable[dp_pb2.EngineQuery] = (), shares: Iterable[Share] = ()
) -> Explanation:
    """Returns the explanation in a message of dp_service.

    Raises:
        IntegrityError: the message holds something that this version does not know.
    """
    # What this version does not know is not passed on.
    estimate.DiscardUnknownFields()
    rendered = tuple(view(RenderedQuery, query) for query in queries)
    return view(Explanation, estimate, queries=rendered, shares=tuple(shares), _estimate=estimate)


def _rows_of(
    columns: tuple[ExpectedColumn, ...],
    shown: dp_pb2.Shown,
    message: dp_pb2.ShownElements,
    parameters: Parameters,
) -> tuple[Row, ...]:
    if not shown.element_count:
        return ()
    elements = _elements_of(columns, shown, message)
    values = _values_of(message, parameters)
    if shown.interval_kind == dp_pb2.INTERVAL_KIND_NONE:
        values = values if message.quantiles else repeat(())
        return tuple(Row(element, None, None, each) for element, each in zip(elements, values, strict=False))
    intervals = map(parameters.coverage.ends, message.noise_lower, message.noise_upper)
    return tuple(map(Row, elements, _counts_of(message, parameters), intervals, values))


def _elements_of(
    columns: tuple[ExpectedColumn, ...], shown: dp_pb2.Shown, message: dp_pb2.ShownElements
) -> Iterable[tuple[ShownScalar, ...]]:
    if len(columns) != len(message.columns):
        raise IntegrityError("dp_service answered with other columns than asked")
    if not columns:
        return [()] * shown.element_count
    values = (
        shown_values(column.type, column_values(column, each))
        for column, each in zip(columns, message.columns, strict=True)
    )
    return zip(*values, strict=True)


def _counts_of(message: dp_pb2.ShownElements, parameters: Parameters) -> Sequence[int | float]:
    """Returns noisy counts: on a grid rounded to whole numbers, as multiples of another fraction the nearest floats.

    These are exact where the denominator is a power of two, as no count that is real needs 53 bits.
    """
    denominator = message.noisy_denominator or 1
    if denominator not in (1, parameters.denominator, parameters.grid):
        raise IntegrityError("dp_service sent noisy counts of another denominator than it says")
    if denominator == parameters.grid > 1:
        return [(2 * each + denominator) // (2 * denominator) for each in message.noisy_numerators]
    return [each / denominator for each in message.noisy_numerators] or message.noisy_counts


def _values_of(
    message: dp_pb2.ShownElements, parameters: Parameters
) -> Iterable[tuple[ShownValue | None, ...]]:
    """Returns the sums and averages of each element, or its quantiles; without either, an empty tuple for each."""
    asked = () if parameters.quantiles is None else parameters.quantiles.shown
    if len(message.aggregates) != len(parameters.aggregates) or len(message.quantiles) != len(asked):
        raise IntegrityError("dp_service sent other sums or quantiles than it says")
    if message.quantiles:
        values_of = _day_values if parameters.has_days else _cell_values
        return zip(*map(values_of, message.quantiles), strict=True)
    if not message.aggregates:
        return repeat(())
    return zip(*map(aggregate_values, message.aggregates, parameters.aggregates), strict=True)


def _cell_values(message: dp_pb2.QuantileValues) -> Sequence[ShownValue | None]:
    return exact_values(message, InCells())


def _day_values(message: dp_pb2.QuantileValues) -> Sequence[ShownValue | None]:
    ends = zip(message.values, message.lower, message.upper, strict=True)
    return [DayValue(day(value), Cell(day(lower), day(upper))) for value, lower, upper in ends]
