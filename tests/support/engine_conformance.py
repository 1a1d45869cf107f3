"""What every engine has to do: one test class, run over each of them.

To add an engine, put a test module test_engine_conformance.py beside its other tests with

    class TestMyEngine(EngineConformance):
        @pytest.fixture
        def held(self, tmp_path: Path) -> Iterator[HeldTable]:
            ...

whose fixture stores `ROWS` in a table of that engine and yields it as a `HeldTable`: the engine, the table's name, and
how to replace its rows by `OTHER_ROWS`. The fixture closes the engine. Where tests share it, a fixture `own` gives
those that replace the rows or close the engine a table of their own. What is special about the engine (its formats, its
settings, how it notices changes) is tested beside the class, not in it.
"""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

import pytest

from dp_service.queries.policy import parse_policy
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from pinot_connector.engines.base import (
    ColumnType,
    Element,
    Engine,
    EngineAnswer,
    EngineQuery,
    ExpectedColumn,
    Feature,
    ReadColumn,
    TimeUnit,
)
from pinot_connector.errors import (
    DataChanged,
    EngineError,
    EngineRefused,
    IncompleteAnswer,
)
from tests.support.engine_queries import engine_query
from tests.support.some import some

Rows = tuple[dict[str, Any], ...]

COLUMNS = {
    "member_id": ColumnType.STRING,
    "page": ColumnType.STRING,
    "nickname": ColumnType.STRING,
    "score": ColumnType.INT64,
    "regular": ColumnType.BOOL,
    "visited": ColumnType.DATE,
}
TIMESTAMPS = {"seen": None, "seen_s": "seconds", "seen_ms": "milliseconds", "seen_us": "microseconds"}
"""Columns of timestamps, each with the unit that its integers count; None: the engine's own type."""

# Around both changes of the clocks in Berlin, and on the first day of all.
INSTANTS = tuple(
    map(
        datetime.datetime.fromisoformat,
        (
            "2026-03-28T22:59:59.999Z",
            "2026-03-28T23:00:00.000Z",
            "2026-03-29T21:59:59.999Z",
            "2026-03-29T22:00:00.000Z",
            "2026-10-24T21:59:59.999Z",
            "2026-10-24T22:00:00.000Z",
            "2026-10-25T22:59:59.999Z",
            "2026-10-25T23:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
        ),
    )
)


def microseconds(instant: datetime.datetime) -> int:
    """Returns the microseconds from 1970-01-01T00:00Z to an instant."""
    return (instant - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
        microseconds=1
    )


def _row(member: int, page: str, score: int, visited: int, nickname: str | None = "n") -> dict[str, Any]:
    instant = microseconds(INSTANTS[(3 * member + score) % len(INSTANTS)])
    return {
        "seen": instant,
        "seen_s": instant // 1_000_000,
        "seen_ms": instant // 1_000,
        "seen_us": instant,
        "member_id": f"m{member}",
        "page": page,
        "nickname": nickname,
        "score": score,
        "regular": score > 0,
        "visited": visited,
    }


ROWS: Rows = (
    *(_row(member, "home", 1, 0) for member in range(5)),
    _row(0, "home", 1, 0),
    *(_row(member, "Home", -7, 19_000) for member in range(3)),
    *(_row(member, "höme '% ", 1, -1) for member in range(2)),
    _row(9, "zoo", 1, 0, nickname=None),
)
"""Five members have "home", one of them twice; days are numbers since 1970-01-01, and `seen` is in microseconds."""

OTHER_ROWS: Rows = tuple({**row, "page": row["page"].replace("zoo", "new")} for row in ROWS)
"""As many rows as `ROWS`, and one other element."""

COUNTS = {"home": 5, "Home": 3, "höme '% ": 2, "zoo": 1}


_VISITS = """
epsilon_per: 1
delta: 1e-2
tables:
  {table}:
    member: member_id
    time: {{column: {column}, type: timestamp, zone: Europe/Berlin{unit}}}
    measures: {{distinct_members: true, events: {{tau: 1, tau_is: clipped}}}}
    columns:
      member_id: {{type: string}}
      page: {{type: string, group_by: true}}
      {column}: {{type: timestamp{unit}{null}}}
"""


_TOTALS = """
epsilon_per: 1
delta: 1e-2
tables:
  {table}:
    member: member_id
    measures: {{distinct_members: true, events: {{tau: 4, tau_is: clipped}}}}
    columns:
      member_id: {{type: string}}
      page: {{type: string, group_by: true, filter: [in]}}
"""


def members_seen(column: str, start: str, end: str) -> dict[str, int]:
    """Returns how many members have each page, of the rows from one instant to before another."""
    unit = {"seen_s": 1_000_000, "seen_ms": 1_000}.get(column, 1)
    ends = [microseconds(datetime.datetime.fromisoformat(each)) for each in (start, end)]
    found = {(row["page"], row["member_id"]) for row in ROWS if ends[0] <= row[column] * unit < ends[1]}
    return dict(Counter(page for page, _ in found))


@dataclass(frozen=True)
class HeldTable:
    """A table that holds `ROWS`, in an engine.

    Args:
        engine: the engine, open.
        table: its name of the table.
        replace_rows: replaces the rows by `OTHER_ROWS`.
        features: what the engine has of what a query can require.
        null_stand_in: what the engine stores where a text is missing; None: NULL.
    """

    engine: Engine
    table: str
    replace_rows: Callable[[], None]
    features: frozenset[Feature] = field(default_factory=frozenset)
    null_stand_in: str | None = None

    def query(self, *columns: str, where: str = "", limit: int = 100, row_limit: int = 100) -> EngineQuery:
        """Returns the query for the distinct members by these columns, the largest count first."""
        selected = ", ".join(f"{column} AS d{number}" for number, column in enumerate(columns))
        names = ", ".join(f"d{number}" for number in range(len(columns)))
        sql = (
            f"SELECT {selected}, COUNT(DISTINCT member_id) AS gris_count FROM {self.table} {where} "
            f"GROUP BY {', '.join(columns)} ORDER BY gris_count DESC, {names} LIMIT {limit}"
        )
        expected = tuple(ExpectedColumn(f"d{n}", COLUMNS[column]) for n, column in enumerate(columns))
        return EngineQuery(self.table, sql, expected, row_limit)

    def visits(self, column: str, where: str, *, rows: bool = False) -> EngineQuery:
        """Returns dp_service's own query for the pages of a table whose time column is this column of timestamps."""
        unit = TIMESTAMPS[column]
        stored = "" if unit is None else f", unit: {unit}"
        # What Pinot stores for NULL where its type is INT.
        null = ", null_value: -2147483648" if column == "seen_s" else ""
        policy = parse_policy(_VISITS.format(table=self.table, column=column, unit=stored, null=null))
        count = "COUNT(*)" if rows else "COUNT(DISTINCT member_id)"
        sql = f"SELECT page, {count} FROM {self.table} WHERE {where} GROUP BY page ORDER BY 2 DESC LIMIT 5"
        return engine_query(resolve(parse_sql(sql, policy), policy, now=0), self.engine.dialect)

    def total(self, where: str, *, rows: bool) -> EngineQuery:
        """Returns dp_service's own query for the total of members or of rows."""
        policy = parse_policy(_TOTALS.format(table=self.table))
        count = "COUNT(*)" if rows else "COUNT(DISTINCT member_id)"
        question = parse_sql(f"SELECT {count} FROM {self.table} {where}", policy)
        return engine_query(resolve(question, policy, now=0), self.engine.dialect)

    def read(self, name: str, type_: ColumnType) -> ReadColumn:
        """Returns a column of texts as one that a query was written for."""
        return ReadColumn(name, type_, self.null_stand_in or "null")

    def answer(self, query: EngineQuery) -> EngineAnswer:
        """Returns a confirmed answer on the present version."""
        answer = self.engine.run(query, self.engine.data_version(self.table))
        self.engine.confirm(query, answer)
        return answer

    def answer_on_new_data(self, query: EngineQuery, old_version: str) -> EngineAnswer:
        """Returns a confirmed answer on another version than the old one; a cluster may need a while for it."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                answer = self.answer(query)
            except (DataChanged, IncompleteAnswer):
                time.sleep(0.1)
                continue
            if answer.data_version != old_version:
                return answer
        raise AssertionError("the engine goes on with the old version")


# A day of 23 hours, one of 25, and what is not before or after an instant.
COMPARISONS = (
    ("{} >= DATE '2026-03-29' AND {} < DATE '2026-03-30'", "2026-03-28T23:00Z", "2026-03-29T22:00Z"),
    ("{} >= '2026-10-25' AND {} < '2026-10-26'", "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
    ("{} >= TIMESTAMP '2026-03-29 23:59:59.999'", "2026-03-29T21:59:59.999Z", "2100-01-01T00:00Z"),
    ("{} > TIMESTAMP '2026-03-28T23:00:00Z'", "2026-03-28T23:00:00.000001Z", "2100-01-01T00:00Z"),
    ("{} <= TIMESTAMP '2026-03-28T23:00:00Z'", "1900-01-01T00:00Z", "2026-03-28T23:00:00.000001Z"),
    ("{} < TIMESTAMP '1970-01-01 01:00:00'", "1900-01-01T00:00Z", "1970-01-01T00:00Z"),
)


class TimestampConformance:
    """The promises about time; alone for an engine that keeps timestamps in more than one way."""

    every = 1
    """How far apart a slow engine's questions are; no divisor of the number of comparisons, so that all are met."""

    @pytest.fixture
    def held(self) -> HeldTable:
        """A table that holds `ROWS`; every engine has its own."""
        pytest.fail("every class of an engine gives a table of its own")

    def test_timestamps_are_compared_exactly(self, held: HeldTable) -> None:
        """Days begin where clocks of the policy's zone say so, whichever zone the engine or this machine is in."""
        for column, (where, start, end) in some(
            islice(product(TIMESTAMPS, COMPARISONS), 0, None, self.every)
        ):
            expected = members_seen(column, start, end)
            assert expected
            answer = held.answer(held.visits(column, where.replace("{}", column)))
            assert expected == dict(zip(answer.elements[0], answer.counts, strict=True)), (column, where)

    @pytest.mark.parametrize("column", TIMESTAMPS)
    def test_timestamps_are_compared_inside_a_clipped_query_too(self, held: HeldTable, column: str) -> None:
        """It has a query inside another one, which some engines plan by other rules."""
        query = held.visits(
            column, f"{column} >= DATE '2026-03-29' AND {column} < DATE '2026-03-30'", rows=True
        )
        if not query.requires <= held.features:
            pytest.skip("this engine runs no query inside another one")
        answer = held.answer(query)
        expected = members_seen(column, "2026-03-28T23:00Z", "2026-03-29T22:00Z")
        assert expected == dict(zip(answer.elements[0], answer.counts, strict=True))

    @pytest.mark.parametrize(
        ("name", "type_", "unit"),
        [
            ("seen", ColumnType.DATE, None),
            ("seen", ColumnType.INT64, None),
            ("seen", ColumnType.TIMESTAMP, TimeUnit.MILLISECONDS),
            ("seen_ms", ColumnType.TIMESTAMP, None),
            ("visited", ColumnType.TIMESTAMP, None),
        ],
    )
    def test_a_timestamp_that_is_declared_as_something_else_is_refused(
        self, held: HeldTable, name: str, type_: ColumnType, unit: TimeUnit | None
    ) -> None:
        """The error names the column, what the policy says and what the engine holds."""
        read = ReadColumn(name, type_, None if type_ is ColumnType.DATE else 0, time_unit=unit)
        with pytest.raises(EngineRefused, match=rf"column {name}\b.*holds [A-Za-z_ ]+, .*{read.declared}"):
            held.answer(replace(held.query("page"), reads=(read,)))


class EngineConformance(TimestampConformance):
    """The promises of `pinot_connector.engines.base.Engine`."""

    @pytest.fixture
    def own(self, held: HeldTable) -> HeldTable:
        """A table whose rows a test may replace, and whose engine it may close."""
        return held

    def test_its_dialect_is_one_that_dp_service_renders(self, held: HeldTable) -> None:
        """Another name would get no query."""
        assert held.engine.dialect in DIALECTS

    def test_a_version_is_a_short_text_that_stays_while_the_data_do(self, held: HeldTable) -> None:
        """It goes into ids and noise, so equal data must have equal versions."""
        version = held.engine.data_version(held.table)
        assert 1 <= len(version) <= 256
        assert version == held.engine.data_version(held.table)

    def test_an_unknown_table_is_refused(self, held: HeldTable) -> None:
        """The engine answers only for the tables that it has."""
        with pytest.raises(EngineRefused):
            held.engine.data_version("no_such_table")

    def test_an_answer_is_columns_and_counts_in_the_order_of_the_query(self, held: HeldTable) -> None:
        """Texts that differ in case, accents or blanks are different elements; members count once."""
        version = held.engine.data_version(held.table)
        query = held.query("page")
        answer = held.engine.run(query, version)
        assert (list(COUNTS),) == answer.elements
        assert list(COUNTS.values()) == answer.counts
        assert version == answer.data_version
        held.engine.confirm(query, answer)

    def test_confirming_twice_is_allowed(self, held: HeldTable) -> None:
        """It changes nothing."""
        query = held.query("page")
        answer = held.answer(query)
        held.engine.confirm(query, answer)
        assert held.answer(query) == answer

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            ("score", {1: 6, -7: 3}),
            ("regular", {True: 6, False: 3}),
            ("visited", {0: 6, 19_000: 3, -1: 2}),
        ],
    )
    def test_elements_have_the_types_of_the_policy(
        self, held: HeldTable, column: str, expected: dict[Element, int]
    ) -> None:
        """Integers, truth values, and days as numbers since 1970, also before it."""
        answer = held.answer(held.query(column))
        assert expected == dict(zip(answer.elements[0], answer.counts, strict=True))
        assert {type(element) for element in expected} == {type(element) for element in answer.elements[0]}

    def test_several_columns_are_several_lists_of_the_same_length(self, held: HeldTable) -> None:
        """In the order of the query's columns."""
        answer = held.answer(held.query("page", "score"))
        assert (list(COUNTS), [1, -7, 1, 1]) == answer.elements
        assert list(COUNTS.values()) == answer.counts

    def test_an_answer_without_rows_is_whole(self, held: HeldTable) -> None:
        """One empty list for each column."""
        answer = held.answer(held.query("page", "score", where="WHERE page = 'nowhere'"))
        assert ([], []) == answer.elements
        assert answer.counts == []

    def test_an_answer_may_have_as_many_rows_as_the_limit(self, held: HeldTable) -> None:
        """The limit itself is allowed."""
        assert list(COUNTS.values()) == held.answer(held.query("page", row_limit=len(COUNTS))).counts

    def test_an_answer_of_more_rows_than_the_limit_is_incomplete(self, held: HeldTable) -> None:
        """One more row is one too many."""
        with pytest.raises(IncompleteAnswer):
            held.answer(held.query("page", row_limit=len(COUNTS) - 1))

    def test_an_answer_with_other_columns_than_asked_is_incomplete(self, held: HeldTable) -> None:
        """A name is another, or a column is missing."""
        query = held.query("page")
        more = (*query.columns, ExpectedColumn("d1", ColumnType.STRING))
        for columns in ((ExpectedColumn("other", ColumnType.STRING),), more):
            with pytest.raises(IncompleteAnswer):
                held.answer(replace(query, columns=columns))

    @pytest.mark.parametrize("type_", [ColumnType.INT64, ColumnType.BOOL, ColumnType.DATE])
    def test_an_answer_of_another_type_than_the_policys_is_no_answer(
        self, held: HeldTable, type_: ColumnType
    ) -> None:
        """A text is no integer, truth value or day, whatever it says."""
        with pytest.raises((EngineRefused, IncompleteAnswer)):
            held.answer(replace(held.query("page"), columns=(ExpectedColumn("d0", type_),)))

    def test_a_missing_value_is_null_or_has_a_stand_in(self, held: HeldTable) -> None:
        """NULL is no element: an answer with it is refused."""
        query = held.query("nickname")
        if held.null_stand_in is None:
            with pytest.raises(IncompleteAnswer):
                held.answer(query)
        else:
            assert held.null_stand_in in held.answer(query).elements[0]

    def test_columns_that_are_what_the_query_was_written_for_are_read(self, held: HeldTable) -> None:
        """Also if they are not in the answer."""
        reads = tuple(held.read(name, ColumnType.STRING) for name in ("page", "member_id"))
        assert list(COUNTS.values()) == held.answer(replace(held.query("page"), reads=reads)).counts

    @pytest.mark.parametrize(("name", "type_"), [("nothing", ColumnType.STRING), ("page", ColumnType.INT64)])
    def test_a_column_that_is_not_what_the_query_was_written_for_is_refused(
        self, held: HeldTable, name: str, type_: ColumnType
    ) -> None:
        """It is missing or of another type, and would mean something else in a filter; the error names it."""
        reads = (ReadColumn(name, type_, held.null_stand_in or "null"),)
        with pytest.raises(EngineRefused, match=rf"\b{name}\b"):
            held.answer(replace(held.query("page"), reads=reads))

    @pytest.mark.parametrize("rows", [False, True])
    @pytest.mark.parametrize(
        ("where", "members", "events"),
        [("", 6, 12), ("WHERE page = 'home'", 5, 6), ("WHERE page = 'nowhere'", 0, 0)],
    )
    def test_a_total_is_counted_also_where_nothing_matches(
        self, held: HeldTable, where: str, members: int, events: int, *, rows: bool
    ) -> None:
        """One row of one column, or none at all for 0; tau is enough for everyone's rows here, and its sum no NULL."""
        query = held.total(where, rows=rows)
        if not query.requires <= held.features:
            pytest.skip("this engine runs no query inside another one")
        answer = held.answer(query)
        assert () == answer.elements
        assert (events if rows else members) == sum(answer.counts)
        assert len(answer.counts) == 1 or not sum(answer.counts)
        assert {int} >= set(map(type, answer.counts))

    def test_other_data_have_another_version_and_another_answer(self, own: HeldTable) -> None:
        """Also where there are as many rows as before."""
        query = own.query("page")
        before = own.answer(query)
        own.replace_rows()
        after = own.answer_on_new_data(query, before.data_version)
        assert [*COUNTS] == before.elements[0]
        assert ["home", "Home", "höme '% ", "new"] == after.elements[0]

    def test_a_version_that_is_gone_is_not_answered(self, own: HeldTable) -> None:
        """The data were replaced between translation and query."""
        version = own.engine.data_version(own.table)
        query = own.query("page")
        own.replace_rows()
        with pytest.raises(DataChanged):
            own.engine.confirm(query, own.engine.run(query, version))

    def test_an_answer_is_not_confirmed_once_the_data_are_others(self, own: HeldTable) -> None:
        """The data were replaced after the query, or during it."""
        query = own.query("page")
        answer = own.engine.run(query, own.engine.data_version(own.table))
        own.replace_rows()
        with pytest.raises(DataChanged):
            own.engine.confirm(query, answer)

    def test_an_error_repeats_neither_query_nor_data(self, held: HeldTable) -> None:
        """Nor does an error of the engine's own client hang on it as its cause or context."""
        query = replace(held.query("page"), sql=f"SELECT secret FROM {held.table} LIMIT 1")
        with pytest.raises(EngineError) as raised:
            held.answer(query)
        assert "secret" not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None

    def test_check_refuses_what_the_engine_lacks_and_nothing_else(self, held: HeldTable) -> None:
        """A query that requires nothing runs on every engine."""
        query = held.query("page")
        held.engine.check(query)
        for feature in Feature:
            requiring = replace(query, requires=frozenset({feature}))
            if feature in held.features:
                held.engine.check(requiring)
            else:
                with pytest.raises(EngineRefused):
                    held.engine.check(requiring)

    def test_many_threads_may_ask_at_once(self, held: HeldTable) -> None:
        """Each gets the whole answer to its own question."""
        queries = [held.query("page"), held.query("score")] * 8
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(held.answer, queries))
        assert [[5, 3, 2, 1], [6, 3]] * 8 == [answer.counts for answer in answers]

    def test_closing_twice_is_allowed(self, own: HeldTable) -> None:
        """Also after an answer."""
        assert own.answer(own.query("page")).counts == [5, 3, 2, 1]
        own.engine.close()
        own.engine.close()
