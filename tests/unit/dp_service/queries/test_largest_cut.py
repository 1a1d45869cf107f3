"""The largest part of a number that bounds cut, as the owner states it: a power of two."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dp_service.queries.table_contributions import InQuery

BLOCK = {"bound": "in_query", "units": 10}


@pytest.mark.parametrize("stated", ["1/2", "1/16", "0.25", "1/1024"])
def test_a_power_of_two_is_accepted(stated: str) -> None:
    """As a fraction, or as a decimal."""
    found = InQuery.model_validate({**BLOCK, "largest_cut": stated}).largest_cut
    assert found is not None
    assert (1 / found).denominator == 1


@pytest.mark.parametrize("stated", ["1/3", "3/16", "1", "0", "2", "1/0", "little"])
def test_anything_else_is_refused(stated: str) -> None:
    """An exact share would tell more of the data."""
    with pytest.raises(ValidationError, match="expected"):
        InQuery.model_validate({**BLOCK, "largest_cut": stated})
