"""The campaign `one_row` on Spark, in short: odd rows make no error, and count where they do in the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pinot_connector.engines.spark import SparkEngine
from tests.campaigns.one_row.asking import TABLES, Held, Totals, as_it_is, faults, written
from tests.campaigns.one_row.forms import forms, policy
from tests.campaigns.one_row.rows import ORDINARY

pytestmark = pytest.mark.nightly


def test_no_row_makes_an_error_or_counts_where_it_does_not_in_the_reference(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All odd rows at once."""
    under, path = policy(), tmp_path / "t.parquet"
    written(path, ORDINARY)
    engine = SparkEngine(spark, dict.fromkeys(TABLES, str(path)))
    held = Held(engine, lambda rows: written(path, rows), as_it_is)
    assert faults(held, under, [*forms(under)][::113], Totals(), one_at_a_time=False) == []
