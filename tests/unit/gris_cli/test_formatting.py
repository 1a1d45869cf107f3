"""What is printed of the parameters of a question."""

from __future__ import annotations

from fractions import Fraction

import pytest
from gris_api.dp.v1 import dp_pb2

from gris_cli.printing import print_result
from pinot_connector import Cost, PrivateResult
from pinot_connector.coverage import AtLeast
from pinot_connector.engines.base import ColumnType, ExpectedColumn
from pinot_connector.parameters import (
    Bounded,
    BoundedBy,
    Consistency,
    Contributions,
    IntervalKind,
    Mechanism,
    OneLook,
    Parameters,
)


def test_an_empty_list_has_the_column_of_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader who sees no rows still sees what they would be."""
    parameters = Parameters(
        mechanism=Mechanism.BOUND_GAUSS,
        epsilon_per=Fraction(3, 20),
        delta=Fraction(1, 10**10),
        tau=1,
        k=6,
        domain_size=None,
        consistency=Consistency.KEYED,
        kind=Bounded(
            Contributions(BoundedBy.IN_QUERY, 2, 1),
            8,
            Fraction(25),
            Fraction(5),
            None,
            OneLook(3, Fraction(20)),
        ),
        coverage=AtLeast(),
    )
    empty = PrivateResult(
        columns=(ExpectedColumn("shop", ColumnType.STRING),),
        count_alias=None,
        rows=(),
        ended_in_bottom=False,
        bottom=None,
        parameters=parameters,
        interval_kind=IntervalKind.GIVEN_SHOWN,
        confidence=0.95,
        cost=Cost(20, 1, "u"),
        charged=Cost(20, 1, "u"),
        remaining=(),
        data_version="v",
        release_id="r",
        query_id="q",
        key_id="k",
        _messages=(dp_pb2.Shown(), dp_pb2.ShownElements()),
    )
    print_result(empty, None, as_json=False)
    assert "noisy count" in capsys.readouterr().out
