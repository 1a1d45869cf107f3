"""Messages of dp_service about mechanisms, and what they say as values."""

from __future__ import annotations

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ColumnType, TimeUnit
from pinot_connector.parameters import (
    BoundedBy,
    Consistency,
    CountNoise,
    GridScale,
    IntervalKind,
    Mechanism,
    MemberValue,
    Parameters,
    TotalOf,
)
from pinot_connector.views import day, exact, known, meanings, view

__all__ = ["day", "exact", "known", "parameters_of"]

COLUMN_TYPES = meanings(ColumnType, histogram_pb2.ColumnType.DESCRIPTOR)
TIME_UNITS = meanings(TimeUnit, dp_pb2.TimeUnit.DESCRIPTOR)
INTERVAL_KINDS = meanings(IntervalKind, dp_pb2.IntervalKind.DESCRIPTOR)


def parameters_of(message: dp_pb2.MechanismParameters) -> Parameters:
    """Returns what was resolved for a question.

    Raises:
        IntegrityError: the message holds something that this version does not know.
    """
    return view(Parameters, message)


MECHANISMS = meanings(Mechanism, dp_pb2.Mechanism.DESCRIPTOR)
BOUNDED_BY = meanings(BoundedBy, dp_pb2.BoundedBy.DESCRIPTOR)
MEMBER_VALUES = meanings(MemberValue, dp_pb2.MemberValue.DESCRIPTOR)
GRID_SCALES = meanings(GridScale, dp_pb2.GridScale.DESCRIPTOR)
TOTAL_OF = meanings(TotalOf, dp_pb2.TotalOf.DESCRIPTOR)
COUNT_NOISES = meanings(CountNoise, dp_pb2.CountNoise.DESCRIPTOR)
CONSISTENCIES = meanings(Consistency, dp_pb2.Consistency.DESCRIPTOR)
