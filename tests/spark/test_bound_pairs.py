"""`gris bound --pairs --engine spark`: the copy that DuckDB makes, row by row."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dp_service.queries.pairs_manifest import PairsManifest, read_manifest
from gris_cli.__main__ import main
from gris_data.bound.pairs_folder import PairsMade
from gris_data.bound.pairs_on_spark import paired
from gris_data.bound.pairs_source import PairsCopyRequest
from gris_data.errors import InputError
from pinot_connector.engines.spark.sessions import own_session
from tests.support.pairs_copies import START, UNTIL, Row, asked, make, random_rows, reference, rows_of, write

JUNE = datetime.date(2024, 6, 1)
LAST = UNTIL - datetime.timedelta(days=3)
ODD: list[Row] = [
    ("m01", "\N{GRINNING FACE}" * 512, "DE", LAST),
    ("m97", "é,3:\n", None, LAST),
    (None, None, "FR", None),
    ("null", "e1", "FR", LAST),
    ("m01", "e1", "DE", None),
    ("m01", None, "DE", LAST),
    ("m01", "nul\0", "DE", LAST),
    ("m01", "\N{GRINNING FACE}" * 513, "DE", LAST),
    ("m01", "e1", "DE", UNTIL),
]


def on_spark(
    spark: SparkSession, source: Path, folder: Path, what: PairsCopyRequest | None = None
) -> PairsMade:
    """Make a copy, or append to it."""
    with own_session(spark) as own:
        return paired(own, str(source), folder, what or asked())


def manifest_of(folder: Path) -> PairsManifest:
    """Return a copy's manifest; checksums are those of the engine that wrote the files."""
    found = read_manifest((folder / "manifest.json").read_bytes())
    return replace(found, periods=tuple(replace(each, checksum="") for each in found.periods))


def test_spark_makes_the_copy_of_one_machine(spark: SparkSession, tmp_path: Path) -> None:
    """At once, and what began there is appended to here: rows, builds, and what was left out."""
    rows = random_rows(800, seed=21)
    source = write(tmp_path / "visits.parquet", [*rows, *ODD])
    made = make(source, tmp_path / "copy")
    assert on_spark(spark, source, tmp_path / "spark") == made
    assert rows_of(tmp_path / "spark") == reference([*rows, *ODD[:2]])
    make(source, tmp_path / "grown", asked(until=JUNE))
    on_spark(spark, source, tmp_path / "grown")
    for name in ("quick", "quick on one machine"):
        make(source, tmp_path / name, asked(until=JUNE))
    make(source, tmp_path / "quick on one machine", replace(asked(), new_only=True))
    on_spark(spark, source, tmp_path / "quick", replace(asked(), new_only=True))
    expected = rows_of(tmp_path / "copy", numbers=True)
    for name in ("spark", "grown", "quick"):
        assert rows_of(tmp_path / name, numbers=True) == expected
    assert manifest_of(tmp_path / "quick") == manifest_of(tmp_path / "quick on one machine")
    for name in ("spark", "grown"):
        assert manifest_of(tmp_path / name) == manifest_of(tmp_path / "copy")
        # DuckDB goes on with it.
        make(source, tmp_path / name)


CHANGED: list[Row] = [("ada", "x", "FR", START), ("ada", "y", None, LAST), ("bob", "x", "DE", LAST)]


def test_spark_refuses_what_one_machine_does(spark: SparkSession, tmp_path: Path) -> None:
    """A backfill, a pair that is gone, and an attribute that changed, unless the first one is kept."""
    source = write(tmp_path / "visits.parquet", CHANGED)
    with pytest.raises(InputError, match="column country: 1 members have more than one value"):
        on_spark(spark, source, tmp_path / "copy")
    first = replace(asked(), first_attributes=True)
    make(source, tmp_path / "one", first)
    for until in (JUNE, UNTIL):
        on_spark(spark, source, tmp_path / "copy", replace(first, until=until))
    assert rows_of(tmp_path / "copy", numbers=True) == rows_of(tmp_path / "one", numbers=True)
    for rows, message in (
        ([*CHANGED, ("eve", "x", "FR", START)], "1 pairs are of periods before 2024-07-01"),
        ([("bob", "x", "DE", LAST)], "the input lacks 1 pairs that the copy has"),
    ):
        with pytest.raises(InputError, match=message):
            on_spark(spark, write(tmp_path / "other.parquet", rows), tmp_path / "copy", first)


def test_a_copy_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    """As on one machine."""
    on_spark(spark, write(tmp_path / "visits.parquet", [("ada", "x", "FR", None)]), tmp_path / "copy")
    assert rows_of(tmp_path / "copy", numbers=True) == []


def test_the_command_refuses_settings_of_one_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Spark is started."""
    options = ["bound", "--engine", "spark", "--input", "x", "--member", "who", "--elements", "what"]
    options += [
        "--period",
        "day",
        "--calendar",
        "month",
        "--table",
        "visits",
        "--pairs",
        str(tmp_path / "copy"),
    ]
    assert main([*options, "--memory", "1GB"]) == 2
    assert "--memory is of --engine duckdb" in capsys.readouterr().err
    assert main([*options, "--spark", "sc://localhost"]) == 2
    assert "Spark Connect" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
