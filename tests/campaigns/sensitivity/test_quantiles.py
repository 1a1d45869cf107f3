"""A member has at most tau values in at most Delta elements, through the real SQL and a real DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_service.queries.policy import Policy
from dp_service.queries.render import quantiles as rendered
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS, Dialect
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import checked_histogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.quantiles import CELL_TYPE
from dp_service.terms import Bounding, Element, MemberValue
from tests.support.examples import examples
from tests.support.queries.quantiles import NUMBERS, WHOLES, asked, days_policy, policy
from tests.support.queries.sums import NOW, ROWS, Row

Translate = Callable[[Resolution], Resolution]
SCHEMA = pa.schema(
    [("member", pa.string()), ("text", pa.string()), ("whole", pa.int64()), ("number", pa.float64())]
)


@dataclass(frozen=True)
class Asked:
    """A database whose table is a Parquet file, as those of analysts are: what DuckDB knows of it changes its plans."""

    connection: duckdb.DuckDBPyConnection
    path: Path

    def counts(self, resolution: Resolution, rows: Sequence[Row]) -> dict[Element, int]:
        """Return what the mechanism meets: members by element and cell."""
        columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
        arrays = [pa.array(each, kind.type) for each, kind in zip(columns, SCHEMA, strict=True)]
        pq.write_table(pa.table(arrays, SCHEMA), self.path)
        self.connection.read_parquet(str(self.path)).create_view("t")
        answer = self.connection.execute(render(resolution, "duckdb")).fetchall()
        of_cells = (CELL_TYPE,) if resolution.parameters.counts_cells else ()
        types = (*(kind for _, kind in resolution.columns), *of_cells)
        *elements, numbers = [list(each) for each in zip(*answer, strict=True)] or [
            [] for _ in (*types, "count")
        ]
        histogram = checked_histogram(types, elements, numbers, row_limit=resolution.row_limit)
        if of_cells:
            known = resolution.parameters.domain
            histogram = kind_of(resolution.parameters).histogram(
                histogram, known, row_limit=resolution.row_limit
            )
        return dict(zip(histogram.elements, histogram.counts.tolist(), strict=True))


@pytest.fixture(scope="module")
def asked_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Give a database with the small table."""
    with duckdb.connect() as found:
        yield Asked(found, tmp_path_factory.mktemp("quantiles") / "t.parquet")


def faults(
    asked_of: Asked,
    query: HistogramQuery,
    under: Policy,
    rows: Sequence[Row],
    *,
    translate: Translate = lambda resolution: resolution,
) -> set[str]:
    """Return what some member changes beyond what is charged; empty: the promise holds."""
    return faults_of(asked_of, resolve(query, under, now=NOW), rows, translate=translate)


def faults_of(
    asked_of: Asked,
    resolution: Resolution,
    rows: Sequence[Row],
    *,
    translate: Translate = lambda resolution: resolution,
) -> set[str]:
    """Return the same of one look at a question."""
    reach = resolution.parameters.delta_l0
    assert reach is not None
    elements = len(resolution.columns)
    asked_so = translate(resolution)
    whole = asked_of.counts(asked_so, rows)
    found: set[str] = set()
    for member in sorted({row.member for row in rows if row.member is not None}):
        without = asked_of.counts(asked_so, [row for row in rows if row.member != member])
        changes = {
            key: whole.get(key, 0) - without.get(key, 0)
            for key in whole.keys() | without.keys()
            if whole.get(key, 0) != without.get(key, 0)
        }
        by_element: Counter[Element] = Counter()
        for key, change in changes.items():
            by_element[key[:elements]] += abs(change)
        if any(change < 0 for change in changes.values()):
            found.add("a member takes values away")
        if max(by_element.values(), default=0) > resolution.parameters.tau:
            found.add("a member has more values in an element than tau")
        if len(by_element) > reach:
            found.add("a member changes more elements than Delta")
    return found


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(
    rows=ROWS,
    place=st.sampled_from(range(3)),
    rule=st.sampled_from(MemberValue),
    column=st.sampled_from(["whole", "number"]),
    by=st.sampled_from([(), ("text",), ("text",)]),
    typical=st.integers(1, 2),
    tau=st.integers(1, 3),
)
def test_a_member_has_at_most_tau_values_in_each_of_its_elements(
    asked_of: Asked,
    *,
    rows: list[Row],
    place: int,
    rule: MemberValue,
    column: str,
    by: tuple[str, ...],
    typical: int,
    tau: int,
) -> None:
    """Rows of NULL, NaN, infinities, 2^63, negative and repeated ones, of members who come and who leave."""
    under = policy(whole=WHOLES[place], number=NUMBERS[place], typical=typical, tau=tau)
    assert faults(asked_of, asked(column, by=by, of=rule), under, rows) == set()


@pytest.mark.parametrize("rule", [MemberValue.LARGEST, MemberValue.ROWS])
def test_a_member_has_one_day_in_each_of_its_elements(asked_of: Asked, rule: MemberValue) -> None:
    """Rows without a day, with one beyond the calendar, on both sides of an edge, and of several elements."""
    days = ["2011-01-07", "2011-01-08", "infinity", None, "1999-01-01"]
    rows: list[tuple[str | None, str, str | None]]
    rows = [(member, text, day) for member in ("ada", "bob") for text in "ab" for day in days]
    rows += [("eve", "a", "infinity"), ("eve", "b", None), (None, "a", "2011-01-08")]
    resolution = resolve(asked("day", of=rule), days_policy(), now=NOW)
    connection = asked_of.connection
    connection.execute("CREATE OR REPLACE TABLE days (member VARCHAR, text VARCHAR, day DATE)")
    connection.executemany("INSERT INTO days VALUES (?, ?, ?::DATE)", rows)

    def cells(member: str) -> dict[tuple[str, int], int]:
        left = f"member IS DISTINCT FROM '{member}'"
        without = f"CREATE OR REPLACE VIEW t AS SELECT * FROM days WHERE {left}"  # noqa: S608 - the test's own
        found = connection.execute(without).execute(render(resolution, "duckdb")).fetchall()
        return {(text, cell): count for text, cell, count in found}

    whole = cells("nobody")
    for member, elements in (("ada", 1), ("bob", 1), ("eve", 0)):
        without = cells(member)
        changes = [whole[key] - without.get(key, 0) for key in whole if whole[key] != without.get(key, 0)]
        assert changes == [1] * elements
        assert set(without) <= set(whole)


# Ada has three texts, two of them in the domain, and values in several cells.
HEAVY = [Row("ada", text, value, float(value)) for text in "abz" for value in (1, 1, 9)]
HEAVY += [Row("bob", "a", 1, 1.0), Row("eve", "b", None, None), Row("eve", "b", 9, 9.0)]


@pytest.mark.parametrize("rule", MemberValue)
def test_the_true_query_has_no_fault(asked_of: Asked, rule: MemberValue) -> None:
    """Nothing is found of the rows on which every wrong query is."""
    assert faults(asked_of, asked("whole", of=rule), policy(), HEAVY) == set()


def test_a_query_that_bounds_nobody_is_found(asked_of: Asked) -> None:
    """Ada has a value in three elements where two may be hers."""

    def bounds_nobody(resolution: Resolution) -> Resolution:
        contributions = resolution.parameters.contributions
        assert contributions is not None
        unbounded = replace(contributions, bounding=Bounding.NOTHING)
        return replace(resolution, parameters=replace(resolution.parameters, contributions=unbounded))

    found = faults(asked_of, asked("whole"), policy(), HEAVY, translate=bounds_nobody)
    assert found == {"a member changes more elements than Delta"}


def test_rows_that_all_count_are_found(asked_of: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every row of a member is in a cell, and not one value of it, nothing bounds what a member changes."""

    def every_row(rows: str, query: object, member_text: str, dialect: Dialect) -> str:
        columns = ("text", "gris_member", "gris_step AS gris_total_1")
        return " ".join(["SELECT", ", ".join(columns), "FROM", f"({rows})", "AS every_row"])

    statement = import_module("dp_service.queries.render.statement")
    monkeypatch.setattr(statement, "chosen_rows", every_row)
    found = faults(asked_of, asked("whole", of=MemberValue.ROWS), policy(typical=3), HEAVY)
    assert found == {"a member has more values in an element than tau"}


def test_a_value_that_depends_on_other_members_is_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grid from the data's own smallest value moves everybody when that member leaves."""
    own_grid = '"gris_total_1" - MIN("gris_total_1") OVER ()'
    monkeypatch.setattr(rendered, "cell_of", lambda quantiles, dialect: f"CAST({own_grid} AS BIGINT)")
    rows = [Row("ada", "a", 1, 1.0), Row("bob", "a", 3, 3.0), Row("eve", "a", 6, 6.0)]
    found = faults(asked_of, asked("whole", by=(), of=MemberValue.LARGEST), policy(), rows)
    assert "a member takes values away" in found


def test_comparisons_that_an_infinity_decides_are_found(
    asked_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB drops them where no number of a file fails them, and then NaN counts: in rows of other members."""
    numbers = {"ada": float("nan"), "bob": float("nan"), "cy": 2.0, "eve": float("inf")}
    rows = [Row(member, "a", 1, number) for member, number in numbers.items()]
    assert faults(asked_of, asked("number"), policy(), rows) == set()
    duckdbs = replace(DIALECTS["duckdb"], finite=DIALECTS["spark"].finite)
    monkeypatch.setitem(DIALECTS, "duckdb", duckdbs)
    assert faults(asked_of, asked("number"), policy(), rows)
