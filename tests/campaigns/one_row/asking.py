"""Asks an engine the questions, with and without each odd row, and compares its answers with the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.queries.canonical_columns import QueryCount
from dp_service.queries.policy import Policy
from pinot_connector.engines.base import Engine, Feature
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import DataChanged, EngineRefused, GrisError
from tests.campaigns.one_row.forms import Form
from tests.campaigns.one_row.rows import MET, ORDINARY, TYPES, Row, odd_rows, selected
from tests.support.engine_queries import engine_query
from tests.support.texts import as_texts

TABLES = ("dropped", "kept", "summed", "looked")


@dataclass(frozen=True)
class Held:
    """An engine, how it is given rows, and which row a question sees of one that it is given; None: it sees none.

    Questions that need what it `lacks` are not asked.
    """

    engine: Engine
    hold: Callable[[Sequence[Row]], None]
    seen: Callable[[Row], Row | None]
    lacks: frozenset[Feature] = frozenset()


@dataclass
class Totals:
    """What a campaign has looked at."""

    forms: int = 0
    rows: int = 0
    answers: int = 0
    refused: int = 0

    def __str__(self) -> str:
        return (
            f"{self.forms} forms, {self.rows} odd rows, {self.answers} answers; {self.refused} forms are refused for "
            "the types of columns, whatever they hold"
        )


def written(path: Path, rows: Iterable[Row]) -> None:
    """Write a Parquet file of rows, whole before it has its name."""
    columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
    arrays = [
        as_texts([each.encode() if isinstance(each, str) else each for each in columns[name]])
        if kind == "string"
        else pa.array(columns[name], pa.type_for_alias(kind))
        for name, kind in TYPES.items()
    ]
    new = path.with_suffix(".new")
    pq.write_table(pa.table(arrays, names=list(TYPES)), new)
    new.replace(path)


def faults(
    held: Held, policy: Policy, asked: Sequence[Form], totals: Totals, *, one_at_a_time: bool
) -> list[str]:
    """Return what is wrong with the answers to questions; nothing if rows decide only what is counted.

    Questions that the engine refuses of the ordinary rows, for the type of a column, are not asked again.

    Args:
        held: The engine.
        policy: The policy of the questions.
        asked: The questions.
        totals: What is looked at is added to it.
        one_at_a_time: Whether each odd row is asked of beside the ordinary ones alone, by the questions that name its
            column. Otherwise all are there at once.
    """
    able = [
        form for form in asked if not engine_query(form.resolution, held.engine.dialect).requires & held.lacks
    ]
    found = list(_faults(held, policy, able, ORDINARY, totals))
    refused = [form for form, error in found if isinstance(error, EngineRefused) and "column " in str(error)]
    able = [form for form in able if form not in refused]
    odd = list(odd_rows())
    totals.forms, totals.rows, totals.refused = len(able), len(odd), len(refused)
    if not one_at_a_time:
        found += _faults(held, policy, able, [*ORDINARY, *(row for _, row in odd)], totals)
    for column, row in odd if one_at_a_time else ():
        concerned = [form for form in able if column in form.names]
        found += _faults(held, policy, concerned, [*ORDINARY, row], totals)
    return [f"{form.sql}\n  {error!r}" for form, error in found if form not in refused]


def _faults(
    held: Held, policy: Policy, asked: Sequence[Form], rows: Sequence[Row], totals: Totals
) -> Iterator[tuple[Form, Exception]]:
    """Yield the questions whose answers are wrong, with what is wrong, which names the last of the rows."""
    held.hold(rows)
    seen = [row for row in map(held.seen, rows) if row is not None]
    for form in asked:
        totals.answers += 1
        expected = selected(form, policy, seen)
        try:
            answered = _answered(held.engine, form)
        except GrisError as error:
            yield form, type(error)(f"{error}; with {_short(rows[-1])}")
            continue
        if answered != expected:
            missing, beside = dict(expected - answered), dict(answered - expected)
            yield form, ValueError(f"missing {missing}, beside {beside}; with {_short(rows[-1])}")


def _answered(engine: Engine, form: Form) -> Counter[tuple[Any, ...]]:
    query = engine_query(form.resolution, engine.dialect)
    try:
        answer = engine.run(query, engine.data_version(form.table))
    except DataChanged:
        # The rows have just been replaced; a client asks again as well.
        answer = engine.run(query, engine.data_version(form.table))
    elements = [*zip(*answer.elements, strict=True)] if query.columns else [()] * len(answer.counts)
    bounded = form.resolution.parameters.contributions
    # A member of few elements counts as 1 in each: where members are weighted, as a hundred hundredths.
    grid = 1 if bounded is None else bounded.grid
    found = Counter({element: count / grid for element, count in zip(elements, answer.counts, strict=True)})
    if form.counted is not None:
        # An own count as it is; otherwise a sum of 2 - 1 for each row that meets the condition, and -1 for the others,
        # of rows in finer steps.
        met: Sequence[float] = answer.sums[-1]
        if isinstance(form.counted, QueryCount):
            of_rows = form.resolution.query.rows_summed is not None
            steps = form.counted.bounds.rows.parts if of_rows else 1
            met = [(each / steps + count) / 2 for each, count in zip(met, answer.counts, strict=True)]
        found.update({(*element, MET): number / grid for element, number in zip(elements, met, strict=True)})
    return found


def _short(row: Row) -> str:
    return str(row)[:300]


def as_it_is(row: Row) -> Row:
    """Return a row of Parquet as Spark sees it."""
    return row


def if_readable(row: Row) -> Row | None:
    """Return a row of Parquet as DuckDB sees it: none that has a text in any column which is no UTF-8."""
    return None if any(isinstance(each, bytes) for each in row) else row


@contextmanager
def on_duckdb(folder: Path) -> Iterator[Held]:
    """Give a DuckDB that reads a file of the rows."""
    path = folder / "t.parquet"
    written(path, ORDINARY)
    with closing(DuckDBEngine(dict.fromkeys(TABLES, path))) as engine:
        yield Held(engine, lambda rows: written(path, rows), if_readable)
