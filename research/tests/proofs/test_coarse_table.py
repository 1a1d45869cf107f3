"""The table that Coq checks is one of the solver's, and no better than any strategy allows."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np

from research.accounting.adaptive import lower_tables
from research.tests.proofs.coarse_table import ONE, UNITS, WHOLE, rows, tables, written

E = Fraction(1, 4)


def test_the_file_holds_what_the_solver_makes() -> None:
    """Up to what another machine's floats round elsewhere."""
    made, held = rows(), written()
    assert [len(each) for each in made] == [len(each) for each in held]
    assert all(np.abs(np.subtract(one, other)).max() <= 1 for one, other in zip(made, held, strict=True))


def test_no_number_is_below_what_a_strategy_reaches() -> None:
    """At every point from epsilon 0 on, of all units."""
    step = tables()[0].grid.step
    below = list(islice(lower_tables(E), UNITS + 1))
    for row, table in zip(written(), below, strict=True):
        for steps, number in enumerate(row[ONE:]):
            assert number / WHOLE >= table.delta(steps * step)
