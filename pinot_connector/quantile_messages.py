"""Quantiles of a result as messages again, for a gateway to pass on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from gris_api.dp.v1 import dp_pb2

from pinot_connector.parameter_messages import GRID_SCALES, MEMBER_VALUES
from pinot_connector.parameters import Quantiles
from pinot_connector.questions import RANK_NUMBERS
from pinot_connector.shown_values import ShownValue

_Number = TypeVar("_Number", bound=int)
_Meaning = TypeVar("_Meaning")


def quantiles_message(quantiles: Quantiles) -> dp_pb2.Quantiles:
    """Returns of what quantiles were released."""
    column = quantiles.column
    return dp_pb2.Quantiles(
        column=dp_pb2.QuantileColumn(
            name=column.name,
            member_value=_number(MEMBER_VALUES, column.member_value),
            quantum=str(column.quantum),
            scale=_number(GRID_SCALES, column.scale),
            lower=str(column.lower),
            upper=str(column.upper),
            cells=column.cells,
        ),
        shown=[
            dp_pb2.ShownQuantile(
                function=RANK_NUMBERS[each.function],
                q="" if each.q is None else str(each.q),
                alias=each.alias or "",
                rank_error=str(each.rank_error),
                cuts=[dp_pb2.RankCut(position=cut.position, part=str(cut.part)) for cut in each.cuts],
            )
            for each in quantiles.shown
        ],
        spare_members=quantiles.spare_members or 0,
    )


def quantile_values(values: Sequence[ShownValue | None], rank_error: Fraction) -> dp_pb2.QuantileValues:
    """Returns one quantile of all rows."""
    message = dp_pb2.QuantileValues(rank_error=str(rank_error))
    for each in values:
        if each is None:
            raise AssertionError("every element has each of its quantiles")
        message.values.append(str(each.value))
        message.lower.append(str(each.interval[0]))
        message.upper.append(str(each.interval[1]))
    return message


def _number(meanings: Mapping[_Number, _Meaning], meaning: _Meaning) -> _Number:
    return next(number for number, each in meanings.items() if each is meaning)
