"""Totals beside a list by two columns, and what the list leaves of each: from messages, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ExpectedColumn
from pinot_connector.errors import IntegrityError
from pinot_connector.formats import written
from pinot_connector.parameters import Parameters
from pinot_connector.releases import column_values
from pinot_connector.shown_values import (
    AggregateValue,
    ShownScalar,
    aggregate_values,
    numbers_of,
    shown_values,
)


@dataclass(frozen=True)
class TotalRow:
    """A total with its interval, both ends inclusive, and what the elements that are shown leave of it.

    What it counts says `Parameters.totals`. `sums` are its sums, in the order of `Parameters.aggregates`. `other_count`
    and `other_sums` are the total less the elements of it that are shown.
    """

    value: ShownScalar
    noisy_count: int
    interval: tuple[int, int]
    other_count: int
    other_interval: tuple[int, int]
    sums: tuple[AggregateValue, ...] = ()
    other_sums: tuple[AggregateValue, ...] = ()


def totals_of(
    columns: Sequence[ExpectedColumn], message: dp_pb2.Shown, parameters: Parameters
) -> tuple[TotalRow, ...] | None:
    """Returns the totals that a message shows; None: the question asks for none.

    Raises:
        IntegrityError: they are others than the parameters say, or do not belong together.
    """
    # Without a release, as for LIMIT 0, nothing is shown that was asked for.
    stated = parameters.totals if message.release_id else None
    if message.HasField("totals") is (stated is None):
        raise IntegrityError(
            "dp_service sent totals where it says that there are none, or none where there are"
        )
    if stated is None:
        return None
    column = next((each for each in columns if each.name == stated.column), None)
    if column is None:
        raise IntegrityError("dp_service sent totals of a column that was not asked for")
    quanta = [each.quantum for each in parameters.aggregates]
    return tuple(_rows(column, message.totals, quanta))


def _rows(
    column: ExpectedColumn, shown: dp_pb2.ShownTotals, quanta: Sequence[Fraction]
) -> Iterator[TotalRow]:
    values = shown_values(column.type, column_values(column, shown.column))
    numbers = (
        shown.noisy_counts,
        shown.interval_lower,
        shown.interval_upper,
        shown.other_counts,
        shown.other_lower,
        shown.other_upper,
    )
    sizes = {len(each) for each in numbers}
    for each_sum in map(numbers_of, (*shown.sums, *shown.other_sums)):
        sizes |= {len(each_sum.values), len(each_sum.lower), len(each_sum.upper)}
    if len(shown.sums) != len(quanta) or len(shown.other_sums) != len(quanta):
        raise IntegrityError("dp_service sent other sums of totals than it says")
    if sizes != {len(values)}:
        raise IntegrityError("dp_service sent totals that do not belong together")
    found, others = (list(map(_sums, each, quanta)) for each in (shown.sums, shown.other_sums))
    for place, value in enumerate(values):
        count, lower, upper, other, other_lower, other_upper = (each[place] for each in numbers)
        yield TotalRow(
            value,
            count,
            (lower, upper),
            other,
            (other_lower, other_upper),
            tuple(each[place] for each in found),
            tuple(each[place] for each in others),
        )


def _sums(message: dp_pb2.AggregateValues, quantum: Fraction) -> list[AggregateValue]:
    """Returns sums, of which there is one for every total."""
    found = [each for each in aggregate_values(message, quantum) if each is not None]
    if len(found) != len(numbers_of(message).values):
        raise IntegrityError("dp_service sent a total without a sum")
    return found


def total_lines(totals: Sequence[TotalRow] | None, parameters: Parameters) -> Iterator[str]:
    """Yields each total with what the rows leave of it, a line each; none without totals."""
    stated = parameters.totals
    if stated is None:
        return
    yield f"totals by {stated.column}, of {stated.counted.value}"
    names = ["count", *(aggregate.title for aggregate in parameters.aggregates)]
    for total in totals or ():
        ends = [
            (_words(total.noisy_count, total.interval), _words(total.other_count, total.other_interval)),
            *(
                (_words(whole.value, whole.interval, digits), _words(other.value, other.interval, digits))
                for whole, other, digits in zip(
                    total.sums, total.other_sums, parameters.decimals, strict=True
                )
            ),
        ]
        said = (f"{name} {whole}, other {other}" for name, (whole, other) in zip(names, ends, strict=True))
        yield f"total of {total.value}: {'; '.join(said)}"


def _words(value: Fraction | int, interval: tuple[Fraction | int, Fraction | int], decimals: int = 0) -> str:
    lower, upper = interval
    number, below, above = written(Fraction(value), (Fraction(lower), Fraction(upper)), decimals)
    return f"{number} ({below} to {above})"
