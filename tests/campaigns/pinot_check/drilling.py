"""Totals beside lists: Pinot counts for them what DuckDB and plain Python count, and the releases are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.queries.policy import Policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from gris_cli.data.bound.bounded_copies import BoundedCopyRequest
from gris_cli.data.bound.on_duckdb import bounded_copy
from gris_cli.data.bound.source import Columns
from pinot_connector.engines.base import Feature
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import EngineRefused
from tests.campaigns.pinot_check.cluster import CheckedCluster
from tests.campaigns.pinot_check.connector import FIRST_DAY, answered, refused, require_equal
from tests.campaigns.pinot_check.rows import row
from tests.engines.pinot.queries import confirmed
from tests.support.engine_queries import engine_query
from tests.support.queries import drill_down

_COLUMNS = {**dict.fromkeys(("member", "country", "article", "shop"), "STRING"), "paid": "LONG"}

Asked = tuple[HistogramQuery, Policy]


@row
def totals(cluster: CheckedCluster) -> str:
    """Totals of contributions, of members of one value, of rows and of sums have all elements, also hidden ones."""
    if cluster.version < (1, 0):
        return _refused_before(cluster)
    rows = drill_down.rows()
    with TemporaryDirectory() as name:
        file = _stored(Path(name) / "rows.parquet", rows)
        table = _loaded(cluster, "totals", rows)
        asked = [*_questions(table)]
        _compared(cluster, file, rows, asked)
    return f"{len(asked)} questions"


@row
def totals_of_copies(cluster: CheckedCluster) -> str:
    """Totals over bounded copies are those of the raw rows, on every version."""
    rows = drill_down.rows()
    compared = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        _stored(folder / "rows.parquet", rows)
        for by in drill_down.BY:
            table = cluster.name_of("_".join(by))
            copy = folder / f"{by[1]}.parquet"
            what = BoundedCopyRequest(table, Columns("member", by), drill_down.TYPICAL)
            bounded_copy(folder / "rows.parquet", copy, what, work=_run)
            held = _rows_of(copy)
            _loaded(cluster, "_".join(by), held)
            for known in (False, True):
                policy = drill_down.policy(known=known, copied_by=by, table=table)
                asked = [(question, policy) for question in drill_down.questions_of_copy(by, table)]
                # The copy bounds members by all of their elements, also by those that are in no domain.
                _compared(cluster, copy, held if known else rows, asked)
                compared += len(asked)
    return f"{compared} questions"


def _questions(table: str) -> Iterator[Asked]:
    for known in (False, True):
        policy = drill_down.policy(known=known, table=table)
        for question in drill_down.questions(table):
            yield question, policy


def _refused_before(cluster: CheckedCluster) -> str:
    """Try that a version without the multi-stage engine is not even asked."""
    asked = [*_questions("t")]
    with closing(cluster.engine()) as engine:
        for question, policy in asked:
            query = engine_query(resolve(question, policy, now=0), "pinot")
            require_equal(True, Feature.PINOT_MULTISTAGE in query.requires, "the query requires nothing")
            with refused(EngineRefused, "a question that needs the multi-stage engine"):
                engine.check(query)
    return f"{len(asked)} refused by name"


def _run(connection: duckdb.DuckDBPyConnection, statement: str, _what: str) -> None:
    connection.execute(statement)


def _stored(path: Path, rows: Sequence[drill_down.Row]) -> Path:
    columns = dict(zip(drill_down.Row._fields, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path)
    return path


def _rows_of(copy: Path) -> list[drill_down.Row]:
    with duckdb.connect() as connection:
        names = ", ".join(drill_down.Row._fields)
        found = connection.execute(f"SELECT {names} FROM read_parquet(?)", [str(copy)]).fetchall()  # noqa: S608
    return [drill_down.Row(*each) for each in found]


def _loaded(cluster: CheckedCluster, name: str, rows: Sequence[drill_down.Row]) -> str:
    """Return a table in four segments, so that members and elements are on every server."""
    table = cluster.create(name, _COLUMNS, nulls={"paid": drill_down.NULL})
    stored = [
        {**each._asdict(), "paid": drill_down.NULL if each.paid is None else each.paid, "day": FIRST_DAY}
        for each in rows
    ]
    for part in range(4):
        cluster.upload(table, str(part), stored[part::4])
    cluster.wait_for_rows(table, len(rows))
    return table


def _compared(
    cluster: CheckedCluster, file: Path, rows: Sequence[drill_down.Row], asked: Sequence[Asked]
) -> None:
    """Compare what Pinot counts, and what is released of it, with plain Python and with DuckDB."""
    tables = {question.table for question, _ in asked}
    with closing(DuckDBEngine(dict.fromkeys(tables, file))) as duck, closing(cluster.engine()) as engine:
        for question, policy in asked:
            resolution = resolve(question, policy, now=0)
            query = engine_query(resolution, "pinot")
            counted = drill_down.reference(question, policy, rows)
            engine.check(query)
            on_pinot = drill_down.rows_of(answered(engine, query))
            on_duckdb = drill_down.rows_of(confirmed(duck, engine_query(resolution, duck.dialect)))
            what = f"totals by {question.totals_by} of {', '.join(question.plain_dimensions)}"
            wanted = sorted((*element, *numbers) for element, numbers in counted.items())
            require_equal(wanted, sorted(on_pinot), f"{what}: other rows on Pinot")
            require_equal(wanted, sorted(on_duckdb), f"{what}: other rows on DuckDB")
            left, right = (drill_down.released(resolution, each) for each in (on_pinot, on_duckdb))
            drill_down.require_released(resolution, left, drill_down.totals(question, counted))
            require_equal(right.release_id, left.release_id, f"{what}: another release")
