"""What is printed of the parameters of a question."""

from __future__ import annotations

from fractions import Fraction

import pytest
from gris_api.dp.v1 import dp_pb2

from gris_cli.formatting import format_totals
from gris_cli.printing import print_result
from pinot_connector import Cost, PrivateResult
from pinot_connector.engines.base import ColumnType, ExpectedColumn
from pinot_connector.parameters import (
    BoundedBy,
    Consistency,
    Contributions,
    CountNoise,
    IntervalKind,
    Mechanism,
    Parameters,
    SummedColumn,
    Sums,
    TotalOf,
    Totals,
)


def test_totals_are_shown_with_the_noise_of_their_own() -> None:
    """Of counts, and of sums as half of B + (lower + upper) N: with the N of totals, or the column's own."""
    column = SummedColumn(
        "paid", Fraction(1, 2), Fraction(0), Fraction(10), Fraction(1, 4), Fraction(7), None, None
    )
    own = SummedColumn(
        "weight",
        Fraction(1, 2),
        Fraction(0),
        Fraction(10),
        Fraction(1, 4),
        Fraction(7),
        has_own_count=True,
        count_variance=Fraction(50),
    )
    shown = format_totals(
        Parameters(
            mechanism=Mechanism.BOUND_MOMENTS,
            epsilon_per=Fraction(3, 20),
            delta=None,
            tau=1,
            delta_l0=2,
            d_bar=None,
            k=None,
            domain_size=8,
            count_noise=CountNoise.DISCRETE_GAUSSIAN,
            noise_scale=Fraction(5),
            consistency=Consistency.KEYED,
            contributions=Contributions(BoundedBy.IN_QUERY, 2, 1, 20, None, None, Fraction(25)),
            sums=Sums(Fraction(1, 2), (column, own), ()),
            totals=Totals(
                "shop", Fraction(1, 4), TotalOf.CONTRIBUTIONS, Fraction(100), (Fraction(400), Fraction(400))
            ),
        )
    )
    # Half of the root of 400 / 4 + 100 * 10^2; the own count has four times its variance in the list, 200.
    assert "noise of sigma 10 in each count, 50.25 in each sum of paid, 70.89 in each sum of weight;" in shown


def test_an_empty_list_has_the_column_of_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader who sees no rows still sees what they would be."""
    parameters = Parameters(
        mechanism=Mechanism.BOUND_GAUSS,
        epsilon_per=Fraction(3, 20),
        delta=Fraction(1, 10**10),
        tau=1,
        delta_l0=2,
        d_bar=None,
        k=6,
        domain_size=None,
        count_noise=CountNoise.DISCRETE_GAUSSIAN,
        noise_scale=Fraction(5),
        consistency=Consistency.KEYED,
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
