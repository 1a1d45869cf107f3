"""A question means the same on every Spark: no setting of an application's, and no odd text, changes what is asked."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import NotIn
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS, literal
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from pinot_connector import PrivateResult
from pinot_connector.engines.base import ColumnType, Engine, EngineAnswer, EngineQuery, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.spark import SparkEngine
from pinot_connector.errors import EngineError
from pinot_connector.release_store import MemoryReleaseStore
from tests.support.clients import blocking_client_of
from tests.support.engine_queries import engine_query
from tests.support.queries.duckdb_rows import store
from tests.support.queries.odd_conditions import CONDITIONS, DROPPED, KEPT, ROWS, asked
from tests.support.queries.reference import Row, answer
from tests.support.queries.strategies import NOW, TEXTS
from tests.support.texts import NOT_UTF8, write_rows
from tests.support.world import World, copy, new_account

ODD = [
    *TEXTS,
    "${env:HOME}",
    "${spark.app.name}",
    "$",
    "\\u0024{env:HOME}",
    "\\",
    "\\\\'",
    "' OR '1'='1",
    "a''b",
    'a"b`c',
    "line\r\nbreak\u2028\x85\x1a",
    "?:p0",
    "/* */ -- {x}",
    "\\%\\_\\0\\x41\\101",
]


def test_any_text_is_itself_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """No text is read as an escape or replaced by what the server's environment holds, in any application."""
    rows = [(text, f"m{number}") for number, text in enumerate(dict.fromkeys(ODD))]
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (text VARCHAR, m VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    listed = ", ".join(literal(text, DIALECTS["spark"]) for text, _ in rows)
    sql = f"SELECT `text`, COUNT(DISTINCT `m`) AS gris_count FROM `t` WHERE `text` IN ({listed}) GROUP BY `text`"
    query = EngineQuery("t", sql, (ExpectedColumn("text", ColumnType.STRING),), 100)
    engine = SparkEngine(spark, {"t": str(path)})
    answer = engine.run(query, engine.data_version("t"))
    assert {text for text, _ in rows} == set(answer.elements[0])


def test_no_text_is_replaced_by_what_the_environment_holds(spark: SparkSession) -> None:
    """Not even where a session substitutes variables, which Spark does inside texts and before it parses anything."""
    session = spark.newSession()
    session.conf.set("spark.sql.parser.escapedStringLiterals", "false")
    assert session.sql("SELECT '${env:PATH}'").first() != ("${env:PATH}",)
    listed = ", ".join(f"{literal(text, DIALECTS['spark'])} AS c{number}" for number, text in enumerate(ODD))
    assert tuple(ODD) == session.sql(f"SELECT {listed}").first()


def _days(day: str) -> int:
    return (datetime.date.fromisoformat(day) - datetime.date(1970, 1, 1)).days


ODD_POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  odd:
    member: m
    measures: {distinct_members: true}
    columns:
      name: {type: string, group_by: true, delta: 1}
      day: {type: date, group_by: true, delta: 1}
      kept: {type: date, group_by: true, delta: 1, nulls: keep, null_value: 1970-01-01}
""")


_DAYS = {_days("0001-01-01"): 1, _days("2019-01-01"): 2, _days("2019-01-02"): 1}


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [("day", _DAYS), ("kept", _DAYS | {0: 3}), ("name", {"a": 5, "y" * 1024: 1})],
)
def test_a_row_that_no_answer_can_carry_is_left_out(
    spark: SparkSession, tmp_path: Path, dimension: str, expected: dict[object, int]
) -> None:
    """A day beyond the year 9999, a text without end, texts that are no UTF-8: none decides if there is an answer."""
    path = str(tmp_path / "odd")
    spark.sql("""
        SELECT m, CAST(name AS STRING) AS name, day, day AS kept FROM VALUES
            (1, BINARY('a'), DATE '2019-01-01'), (2, BINARY('a'), DATE '2019-01-01' + 4000000),
            (3, BINARY('a'), DATE '1970-01-01' - 800000), (4, BINARY('a'), DATE '0001-01-01'),
            (5, BINARY(repeat('x', 1025)), DATE '2019-01-01'), (6, BINARY(repeat('y', 1024)), DATE '2019-01-02'),
            (7, X'61FF', DATE '1970-01-01' - 900000), (8, X'61FE', NULL), (9, X'C0AF', NULL), (10, BINARY('a'), NULL)
            AS t(m, name, day)
    """).coalesce(1).write.parquet(path)
    query = HistogramQuery("odd", (dimension,), Measure.DISTINCT_MEMBERS)
    resolution = resolve(query, ODD_POLICY, now=0)
    columns = tuple(ExpectedColumn(name, ColumnType(kind.value)) for name, kind in resolution.columns)
    engine = SparkEngine(spark, {"odd": path})
    answer = engine.run(
        EngineQuery("odd", render(resolution, "spark"), columns, resolution.row_limit),
        engine.data_version("odd"),
    )
    assert expected == dict(zip(answer.elements[0], answer.counts, strict=True))


NAMED_POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  visits:
    member: m
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      page: {type: string, group_by: true, delta: 1, filter: [in]}
      kind: {type: string, filter: [in, not_in]}
""")


@pytest.mark.parametrize("column", ["m", "page", "kind"])
def test_a_row_whose_text_is_not_utf8_is_left_out_where_the_question_names_the_column(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    """Of a member, of an element, and of a condition that it would meet: as on DuckDB."""
    rows = [{"m": f"m{i}", "page": "p", "kind": "k"} for i in range(5)]
    write_rows(tmp_path / "visits.parquet", [*rows, {"m": "m", "page": "p", "kind": "k", column: NOT_UTF8}])
    query = HistogramQuery(
        "visits", ("page",), Measure.DISTINCT_MEMBERS, filters=(NotIn("kind", ("another",)),)
    )
    resolution = resolve(query, NAMED_POLICY, now=0)
    columns = (ExpectedColumn("page", ColumnType.STRING),)
    for engine in (
        SparkEngine(spark, {"visits": str(tmp_path / "visits.parquet")}),
        DuckDBEngine({"visits": tmp_path / "visits.parquet"}),
    ):
        asked = EngineQuery("visits", render(resolution, engine.dialect), columns, resolution.row_limit)
        answer = engine.run(asked, engine.data_version("visits"))
        assert (["p"], [5]) == (answer.elements[0], answer.counts)


@pytest.mark.parametrize(
    "policy", [pytest.param(DROPPED, marks=pytest.mark.nightly), KEPT], ids=["dropped", "kept"]
)
def test_the_same_rows_meet_a_condition_as_in_the_reference(
    spark: SparkSession, tmp_path: Path, policy: Policy
) -> None:
    """Conditions of every form, on texts near to the patterns and on one that is very long."""
    rows = [*ROWS, Row("long", "a" * 100_000 + "b", 0, False, None)]
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE)"
        )
        store(connection, "t", rows)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    engine = SparkEngine(spark, {"t": str(path)})
    for condition in CONDITIONS:
        query = asked(condition, policy, by="number")
        found = engine.run(engine_query(resolve(query, policy, now=NOW), "spark"), engine.data_version("t"))
        expected = answer(query, policy, rows, now=NOW)
        assert sorted(expected) == sorted(zip(*found.elements, found.counts, strict=True)), condition


@pytest.mark.parametrize(
    "condition",
    [
        "kind <> 'x' OR page = 'p'",
        "kind LIKE 'k%' OR page LIKE 'p%'",
    ],
)
def test_a_row_without_a_text_is_left_out_of_the_alternative_that_names_it_alone(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Another alternative holds of it: as on DuckDB."""
    path = tmp_path / "visits.parquet"
    copy("SELECT 'm' || range AS m, 'p' AS page, nullif('k' || range, 'k1') AS kind FROM range(5)", path)
    sql = f"SELECT page, COUNT(DISTINCT m) FROM visits WHERE {condition} GROUP BY page"
    resolution = resolve(parse_sql(sql, NAMED_POLICY), NAMED_POLICY, now=0)
    for engine in (SparkEngine(spark, {"visits": str(path)}), DuckDBEngine({"visits": path})):
        answer_ = engine.run(engine_query(resolution, engine.dialect), engine.data_version("visits"))
        assert (["p"], [5]) == (answer_.elements[0], answer_.counts)


@pytest.mark.parametrize(
    "condition",
    [
        "kind <> 'x' OR page = 'q'",
        "kind NOT LIKE 'x%' OR page = 'q'",
        "kind LIKE '%' OR page = 'q'",
        "kind = 'k' OR page = 'p'",
    ],
)
def test_a_row_whose_text_is_not_utf8_is_left_out_where_an_alternative_names_it(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Where it would meet the condition, and where another alternative holds: as on DuckDB."""
    rows = [{"m": f"m{i}", "page": "p", "kind": "k"} for i in range(5)]
    write_rows(tmp_path / "visits.parquet", [*rows, {"m": "m", "page": "p", "kind": NOT_UTF8}])
    sql = f"SELECT page, COUNT(DISTINCT m) FROM visits WHERE {condition} GROUP BY page"
    resolution = resolve(parse_sql(sql, NAMED_POLICY), NAMED_POLICY, now=0)
    for engine in (
        SparkEngine(spark, {"visits": str(tmp_path / "visits.parquet")}),
        DuckDBEngine({"visits": tmp_path / "visits.parquet"}),
    ):
        answer_ = engine.run(engine_query(resolution, engine.dialect), engine.data_version("visits"))
        assert (["p"], [5]) == (answer_.elements[0], answer_.counts)


def test_a_broken_file_is_no_answer_on_the_rest(spark: SparkSession, tmp_path: Path) -> None:
    """An application that skips such files has the rest counted, and nothing says so."""
    copy("SELECT range AS m, 'a' AS element FROM range(5)", tmp_path / "good.parquet")
    broken = bytearray((tmp_path / "good.parquet").read_bytes())
    broken[4:40] = b"\xff" * 36
    (tmp_path / "bad.parquet").write_bytes(broken)
    sql = "SELECT element, COUNT(DISTINCT m) AS gris_count FROM t GROUP BY element"
    query = EngineQuery("t", sql, (ExpectedColumn("element", ColumnType.STRING),), 10)
    engine = SparkEngine(spark, {"t": str(tmp_path)})
    with pytest.raises(EngineError):
        engine.run(query, engine.data_version("t"))


def test_a_directorys_name_has_no_type(spark: SparkSession, tmp_path: Path) -> None:
    """Were `kind=12` a number until a `kind=x` comes, that one row would decide whether there is an answer."""
    (tmp_path / "kind=12").mkdir()
    copy("SELECT range AS m FROM range(5)", tmp_path / "kind=12" / "a.parquet")
    sql = "SELECT kind, COUNT(DISTINCT m) AS gris_count FROM t GROUP BY kind"
    query = EngineQuery("t", sql, (ExpectedColumn("kind", ColumnType.STRING),), 10)
    engine = SparkEngine(spark, {"t": str(tmp_path)})
    assert EngineAnswer((["12"],), [5], engine.data_version("t")) == engine.run(
        query, engine.data_version("t")
    )


def test_two_engines_give_one_release_of_a_declared_version(world: World, spark: SparkSession) -> None:
    """What was paid for on DuckDB is free on Spark, element for element and count for count, noise and all."""
    path = world.directory / "pinned.parquet"
    copy("SELECT range AS member_id, 'e' || (range % 7) AS element FROM range(3000)", path)
    account = new_account()

    def ask(engine: Engine) -> PrivateResult:
        # With a store of its own: the second engine is to draw the release too.
        with blocking_client_of(world, engine, account=account, releases=MemoryReleaseStore()) as client:
            result = client.histogram("pinned", "element")
        engine.close()
        return result

    first = ask(DuckDBEngine({"pinned": path}))
    again = ask(SparkEngine(spark, {"pinned": str(path)}))
    assert (first.rows, first.release_id) == (again.rows, again.release_id)
    assert (again.charged.information, again.charged.calls) == (0, 0)
