"""The short form of the campaign `one_row` on a real Pinot: odd rows make no error, and count as in the reference."""

from __future__ import annotations

import pytest

from deploy.pinot.cluster import PinotCluster
from tests.campaigns.one_row.asking import Totals, faults
from tests.campaigns.one_row.forms import forms, policy
from tests.campaigns.one_row.pinot import held_by

pytestmark = pytest.mark.nightly


def test_no_row_makes_an_error_or_counts_where_it_does_not_in_the_reference(
    pinot_cluster: PinotCluster,
) -> None:
    """All odd rows at once."""
    under = policy()
    with held_by(pinot_cluster) as held:
        assert faults(held, under, [*forms(under)][::3], Totals(), one_at_a_time=False) == []
