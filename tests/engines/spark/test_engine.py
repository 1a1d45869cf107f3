"""Spark over files and tables: whole answers on one version of the data, or an error that tells nothing."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pinot_connector.engines.base import (
    ColumnType,
    EngineAnswer,
    EngineQuery,
    ExpectedColumn,
    ReadColumn,
)
from pinot_connector.engines.spark import SparkEngine
from pinot_connector.errors import (
    DataChanged,
    DataUnreadable,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    IncompleteAnswer,
)
from tests.support.world import copy, write_small

SQL = "SELECT `element`, COUNT(DISTINCT `member_id`) AS `gris_count` FROM `small` GROUP BY `element` ORDER BY 2 DESC"
ELEMENT = ExpectedColumn("element", ColumnType.STRING)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A Parquet file in which 40 members have the element "a"."""
    write_small(tmp_path / "small.parquet", 40)
    return tmp_path / "small.parquet"


@pytest.fixture
def engine(spark: SparkSession, path: Path) -> Iterator[SparkEngine]:
    """An engine over that file."""
    engine = SparkEngine(spark, {"small": str(path)})
    yield engine
    engine.close()


def _query(
    sql: str = SQL, *, columns: tuple[ExpectedColumn, ...] = (ELEMENT,), row_limit: int = 10
) -> EngineQuery:
    return EngineQuery("small", sql, columns, row_limit)


def _run(engine: SparkEngine, query: EngineQuery) -> EngineAnswer:
    return engine.run(query, engine.data_version("small"))


def test_a_column_of_another_type_is_refused_by_name_where_it_is_only_filtered_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark would compare a moment with a day; where the type is the policy's, or nobody says it, it is asked."""
    path = tmp_path / "small.parquet"
    copy("SELECT 'a' AS element, 'm' AS member_id, TIMESTAMP '2024-01-01 08:00:00' AS day", path)
    engine = SparkEngine(spark, {"small": str(path)})
    sound = ReadColumn("element", ColumnType.STRING, "null"), ReadColumn("member_id", None, "null")
    assert [1] == _run(engine, replace(_query(), reads=sound)).counts
    for read, expected in (
        (ReadColumn("day", ColumnType.DATE, None), r"column day .* policy's type, date$"),
        (ReadColumn("nothing", None, None), "no column nothing"),
    ):
        with pytest.raises(EngineRefused, match=expected):
            _run(engine, replace(_query(), reads=(*sound, read)))
    engine.close()


def test_a_version_that_is_gone_is_refused_by_the_query_itself(engine: SparkEngine, path: Path) -> None:
    """The file was replaced between translation and query: `run` says so, before anything is confirmed."""
    before = engine.data_version("small")
    write_small(path, 41)
    with pytest.raises(DataChanged):
        engine.run(_query(), before)


def test_what_the_application_keeps_in_memory_is_not_asked(
    spark: SparkSession, engine: SparkEngine, path: Path
) -> None:
    """Spark would answer from its cache of the file that is gone, for every session, with nothing said."""
    cached = spark.read.parquet(str(path)).cache()
    assert cached.count() == 40
    write_small(path, 41)
    assert _run(engine, _query()).counts == [41]
    cached.unpersist()


def test_a_directory_of_files_is_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """Another file in it is another version."""
    directory = tmp_path / "many files"
    directory.mkdir()
    write_small(directory / "one.parquet", 3)
    engine = SparkEngine(spark, {"small": str(directory)})
    before = engine.data_version("small")
    write_small(directory / "two.parquet", 5)
    assert before != engine.data_version("small")
    assert _run(engine, _query()).counts == [5]


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_a_table_of_the_catalogue_is_asked_and_versioned(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    """Whatever is written to it by anybody is seen, although Spark remembers the files and rows of its tables."""
    name, location = f"small_{format_}", tmp_path / "a place with spaces"
    rows = "SELECT id AS member_id, 'a' AS element FROM range(4)"
    spark.sql(f"CREATE TABLE {name} USING {format_} LOCATION '{location}' AS {rows}")
    assert spark.table(name).cache().count() == 4
    engine = SparkEngine(spark, {"small": f"catalog:{name}"})
    before = engine.data_version("small")
    assert engine.run(_query(), before).counts == [4]
    spark.range(4, 9).selectExpr("id AS member_id", "'a' AS element").write.format(format_).mode(
        "append"
    ).save(str(location))
    assert before != engine.data_version("small")
    assert _run(engine, _query()).counts == [9]
    spark.sql(f"DROP TABLE {name}")


def test_a_table_of_another_format_is_refused(spark: SparkSession) -> None:
    """Of CSV the columns hold whatever could be read; of others the files do not say which rows are valid."""
    spark.sql("CREATE TABLE loose USING csv AS SELECT id AS member_id, 'a' AS element FROM range(4)")
    with pytest.raises(EngineRefused, match="Parquet and ORC only"):
        SparkEngine(spark, {"small": "catalog:loose"}).data_version("small")
    spark.sql("DROP TABLE loose")


@pytest.mark.parametrize("kept", [0, 20, 200])
def test_files_that_are_not_what_their_name_says_are_bad_input(
    engine: SparkEngine, path: Path, kept: int
) -> None:
    """Empty, or cut: nothing that is asked again is answered, and the error says of which table."""
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataUnreadable, match="the data of the table small are no Parquet files"):
        _run(engine, _query())


@pytest.mark.parametrize("place", ["/nowhere/at/all.parquet", "catalog:nothing_of_this_name"])
def test_data_that_are_not_there_are_unavailable(spark: SparkSession, place: str) -> None:
    """The error says so, and names no path."""
    with pytest.raises(EngineUnavailable, match="cannot be found") as raised:
        SparkEngine(spark, {"small": place}).data_version("small")
    assert raised.value.__context__ is None


@pytest.mark.parametrize("place", ["", " ", "catalog:"])
def test_a_table_that_names_nothing_is_refused_at_once(spark: SparkSession, place: str) -> None:
    """A wrong configuration is reported before the first question."""
    with pytest.raises(EngineRefused, match="a path to Parquet"):
        SparkEngine(spark, {"small": place})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a' AS element, 1L AS other",
        "SELECT CAST(NULL AS STRING) AS element, 1L AS gris_count",
        "SELECT 'a' AS element, CAST(NULL AS BIGINT) AS gris_count",
        "SELECT 'a' AS element, 1L AS gris_count FROM range(11)",
        "SELECT 1L AS gris_count",
    ],
)
def test_an_answer_of_another_shape_is_incomplete(engine: SparkEngine, sql: str) -> None:
    """Other names, NULL, too many rows, a column too few."""
    with pytest.raises(IncompleteAnswer):
        _run(engine, _query(sql))


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (ColumnType.INT64, "DECIMAL(20, 0)"),
        (ColumnType.INT64, "STRING"),
        (ColumnType.STRING, "INT"),
        (ColumnType.DATE, "TIMESTAMP"),
        (ColumnType.BOOL, "INT"),
        (ColumnType.STRING, "STRING COLLATE UTF8_LCASE"),
    ],
)
def test_a_column_of_another_type_is_refused_whatever_its_rows(
    engine: SparkEngine, kind: ColumnType, type_: str
) -> None:
    """A type that could hold more than the policy's is refused as a type: no member's row makes the difference."""
    sql = f"SELECT CAST(NULL AS {type_}) AS element, 1L AS gris_count FROM range(0)"
    with pytest.raises(EngineRefused, match="the type that the policy gives"):
        _run(engine, _query(sql, columns=(ExpectedColumn("element", kind),)))


@pytest.mark.parametrize("type_", ["STRING COLLATE UTF8_LCASE", "CHAR(5)"])
def test_texts_that_are_equal_when_they_differ_are_refused(spark: SparkSession, type_: str) -> None:
    """A collation in any column could make one member of two, or a filter hold for other texts than it says."""
    spark.sql(f"CREATE TABLE odd (member_id {type_}, element STRING) USING parquet")
    with pytest.raises(EngineRefused, match="plain STRING"):
        _run(SparkEngine(spark, {"small": "catalog:odd"}), _query())
    spark.sql("DROP TABLE odd")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'canary' AS element, CAST('canary' AS BIGINT) AS gris_count",
        "SELECT element, CAST(concat('canary', element) AS BIGINT) AS gris_count FROM small",
        "SELECT canary FROM small",
        "SELECT 'canary",
        "SELECT raise_error('canary') AS element, 1L AS gris_count",
    ],
)
def test_an_error_does_not_carry_sparks_own(
    engine: SparkEngine, sql: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither in its text nor as its cause or context: Spark's repeats the query and values of the data."""
    with pytest.raises(EngineError) as raised:
        _run(engine, _query(sql))
    assert "canary" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert "canary" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("seconds", [3, 1e-9])
def test_a_query_that_takes_too_long_is_interrupted(spark: SparkSession, path: Path, seconds: float) -> None:
    """The time-out ends the jobs in Spark, not only the waiting for them; also one that passes before they begin."""
    engine = SparkEngine(spark, {"small": str(path)}, timeout_seconds=seconds)
    endless = (
        "SELECT 'a' AS element, COUNT(*) AS gris_count FROM range(10000000) a CROSS JOIN range(10000000) b"
    )
    with pytest.raises(EngineUnavailable, match="too long"):
        _run(engine, _query(endless))
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []


def test_many_threads_may_ask_at_once_while_the_file_is_replaced(engine: SparkEngine, path: Path) -> None:
    """Every question has a session of its own: it is answered on the version that it names, or not at all."""
    before = engine.data_version("small")

    def ask(number: int) -> list[int]:
        if number == 2:
            write_small(path, 41)
        try:
            answer = engine.run(_query(), before)
            engine.confirm(_query(), answer)
        except DataChanged:
            return []
        return answer.counts

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(6)))
    assert [] in answers
    assert {tuple(answer) for answer in answers} <= {(), (40,)}


def test_a_closed_engine_is_unavailable_and_the_applications_spark_goes_on(
    spark: SparkSession, path: Path
) -> None:
    """Closing twice is allowed; asking afterwards is an error like any other."""
    engine = SparkEngine(spark, {"small": str(path)})
    engine.close()
    engine.close()
    with pytest.raises(EngineUnavailable):
        engine.data_version("small")
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("session", [None, "local[2]", object()])
def test_what_is_no_session_is_refused(session: object) -> None:
    """The error names the argument and what was expected."""
    with pytest.raises(EngineRefused, match="session: expected a SparkSession"):
        SparkEngine(session, {})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("home", ["/nowhere", ""])
def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """Neither by JAVA_HOME nor in PATH."""
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineUnavailable, match="Java 17"):
        SparkEngine.at("local[1]", {})
