"""Whether the data behind an engine keep a policy's promises: for `gris check` on Apache Pinot and Spark.

Each promise takes a query for each column that it is about, whose answer is one number. The engine checks it as the
answer of any question: columns, version and completeness, within its own time-out. They are true counts, of the owner's
data and for the owner alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from dp_service.queries.answer_columns import COUNT_COLUMN
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.blocks import Blocks
from dp_service.queries.columns import Column, Lookup, Nulls
from dp_service.queries.currency import Currency
from dp_service.queries.policy_review import is_promise
from dp_service.queries.render.dialects import DIALECTS, identifier
from dp_service.queries.render.statement import most_of_a_member
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import MAXIMUM_DIMENSIONS, HistogramQuery
from dp_service.queries.table_contributions import Sums
from dp_service.queries.tables import Measures, Policy, Table
from dp_service.terms import BoundedBy, ColumnType
from gris_cli.data.policy.reads import reads_of
from pinot_connector.engines.base import Engine, EngineQuery

ASSUMED_BOUND = "contributions.delta"
BLOCK = "block"
_SIZES = "contributions.sums."


@dataclass(frozen=True)
class Promise:
    """A promise of the policy that nothing checks when a question is asked, and what the data hold.

    Attributes:
        key: The policy's key: `columns.C.delta`, `measures.events.tau`, `contributions.delta`,
            `block`, or a size of the table, `contributions.sums.max_members` or
            `contributions.sums.max_rows`.
        promised: The most that a member, or the table, may have.
        found: The most that a member has: values of the column, rows in one element of `column`, elements or blocks. Of
            a size, what the table has.
        column: The column that `found` is of; of elements, the columns that make them up, separated by commas. Empty:
            it is of none.
        members: How many members have more than is promised; None: that was not counted.
    """

    key: str
    promised: int
    found: int
    column: str
    members: int | None

    @property
    def is_kept(self) -> bool:
        """Whether no member has more."""
        return self.found <= self.promised


@dataclass(frozen=True)
class PromiseReport:
    """The promises about a table, as the data behind an engine keep them."""

    table: str
    promises: tuple[Promise, ...]


def counted(engine: Engine, table: Table, currency: Currency) -> PromiseReport:
    """Count what a policy promises of every member of a table and no query enforces.

    Args:
        engine: The engine that has the table.
        table: The policy's table.
        currency: The policy's currency.

    Raises:
        GrisError: The engine cannot be reached, took too long, refuses a column, or its answer is not whole.
    """

    def most(columns: Sequence[Column], rows: bool, promised: int) -> tuple[int, int | None]:
        found = _most(engine, table, columns, currency, rows=rows)
        return found, 0 if found <= promised else None

    found = promises_of(
        table, currency.blocks, engine.dialect, most, lambda counted: _size(engine, table, counted)
    )
    return PromiseReport(table.name, tuple(found))


def require_columns(engine: Engine, table: Table) -> None:
    """Check that an engine's table has the columns of a policy, and as the policy says; no row is counted.

    Raises:
        EngineRefused: A column is missing, or is of another type.
        GrisError: The engine cannot be reached, or took too long.
    """
    dialect = DIALECTS[engine.dialect]
    sql = f"SELECT COUNT(*) AS {identifier(COUNT_COLUMN, dialect)} FROM {identifier(table.name, dialect)} WHERE 1 = 0"  # noqa: S608
    query = EngineQuery(table.name, sql, columns=(), row_limit=1, reads=tuple(reads_of(table)))
    engine.run(query, engine.data_version(table.name))


Most = Callable[[Sequence[Column], bool, int], tuple[int, int | None]]
"""Returns the most elements of some columns that a member has, or the most rows in one of them if the second argument
says so, and how many members have more than is promised; None: that was not counted."""


def promises_of(
    table: Table, blocks: Blocks | None, dialect: str, most: Most, number: Callable[[str], int]
) -> Iterator[Promise]:
    """Yield what the policy promises of every member and no query enforces, and what the data have.

    Args:
        table: The policy's table.
        blocks: How the policy divides members; None: it does not.
        dialect: The engine's.
        most: Counts of members.
        number: Answers how a dialect counts the table's size.
    """

    def largest(key: str, promised: int, choices: Iterable[Sequence[Column]], *, rows: bool) -> Promise:
        counted = [(*most(each, rows, promised), names_of(each)) for each in choices]
        found, members, names = max(counted, key=lambda each: (each[0], each[1] or 0, each[2]))
        return Promise(key, promised, found, names, members)

    for column in table.columns:
        if column.delta is not None and is_promise(column, table):
            yield largest(f"columns.{column.name}.delta", column.delta, [(column,)], rows=False)
    tau, contributions = table.measures.assumed_tau, table.contributions
    grouped = [(column,) for column in table.own_columns if column.group_by]
    if tau is not None and grouped:
        # An element of several columns has no more rows of a member than each of its values.
        yield largest("measures.events.tau", tau, grouped, rows=True)
    keys = list(largest_keys(table))
    if contributions is not None and contributions.bounded_by is BoundedBy.ASSUMED and keys:
        yield largest(ASSUMED_BOUND, contributions.delta, keys, rows=False)
    if blocks is not None and (block := block_column(table, blocks)) is not None:
        yield largest(BLOCK, blocks.times, [(block,)], rows=False)
    if contributions is not None and contributions.sums is not None:
        for key, promised, counted in sizes(table, contributions.sums, dialect):
            found = number(counted)
            yield Promise(key, promised, found, "", 0 if found <= promised else None)


def block_column(table: Table, blocks: Blocks | None) -> Column | None:
    """Return a column of each row's block, looked up by the column of the table that says it; None: it has none."""
    if blocks is None or table.block is None:
        return None
    # A row without a value has a block as well.
    key = table.column(table.block).model_copy(update={"nulls": Nulls.KEEP})
    found = {
        "name": "gris_block",
        "type": ColumnType.STRING,
        "lookup": Lookup(key, tuple(sorted(blocks.ids.items())), ""),
        "nulls": Nulls.KEEP,
        "null_value": blocks.rest,
        "domain": None,
        "delta": None,
    }
    return key.model_copy(update=found)


def sizes(table: Table, sums: Sums, dialect: str) -> Iterator[tuple[str, int, str]]:
    """Yield key and number of what a policy promises of a table's size, and how a dialect counts it."""
    member = identifier(table.member, DIALECTS[dialect])
    yield f"{_SIZES}max_members", sums.max_members, f"COUNT(DISTINCT {member})"
    yield f"{_SIZES}max_rows", sums.max_rows, "COUNT(*)"


def is_size(key: str) -> bool:
    """Return whether a promise is about the size of a table."""
    return key.startswith(_SIZES)


def largest_keys(table: Table) -> Iterator[tuple[Column, ...]]:
    """Yield columns to group by, together; in no other question does a member have more elements.

    A question by one column more tells elements further apart, unless the column drops rows.
    """
    grouped = [column for column in table.columns if column.group_by]
    for size in range(1, min(MAXIMUM_DIMENSIONS, len(grouped)) + 1):
        for chosen in combinations(grouped, size):
            others = [each for each in grouped if each not in chosen]
            if size == MAXIMUM_DIMENSIONS or all(each.nulls is Nulls.DROP for each in others):
                yield chosen


def names_of(columns: Sequence[Column]) -> str:
    """Return the names of columns that make up an element."""
    return ", ".join(column.name for column in columns)


def _size(engine: Engine, table: Table, counted: str) -> int:
    """Return how many rows or members a table has."""
    dialect = DIALECTS[engine.dialect]
    name, number = identifier(table.name, dialect), identifier(COUNT_COLUMN, dialect)
    sql = f"{dialect.prefix}SELECT {counted} AS {number} FROM {name} LIMIT 1"  # noqa: S608 - names of the policy
    reads = tuple(each for each in reads_of(table) if each.name == table.member)
    query = EngineQuery(table.name, sql, columns=(), row_limit=1, reads=reads)
    answer = engine.run(query, engine.data_version(table.name))
    engine.confirm(query, answer)
    return sum(answer.counts)


def _most(engine: Engine, table: Table, columns: Sequence[Column], currency: Currency, *, rows: bool) -> int:
    """Return the most elements of some columns that a member has, or the most rows in one of them."""
    # All values count towards Delta, also outside a domain, and all rows, also of periods that are not closed.
    anything = {"group_by": True, "domain": None, "publication": None, "delta": None}
    bare = tuple(each.model_copy(update=anything) for each in columns)
    member, names = table.member_column(), tuple(each.name for each in columns)
    keys = tuple(
        each.lookup.key for each in bare if each.lookup is not None and each.lookup.key not in columns
    )
    asked = table.model_copy(
        update={
            "columns": (*bare, *keys) if member is None or member.name in names else (*bare, *keys, member),
            "time": None,
            "measures": Measures(distinct_members=True),
            "contributions": None,
        }
    )
    question = HistogramQuery(table.name, names, Measure.DISTINCT_MEMBERS, k=1)
    resolution = resolve(question, Policy(currency, (asked,)), now=0)
    sql = most_of_a_member(resolution, DIALECTS[engine.dialect], rows=rows)
    reads = tuple(
        each for each in reads_of(asked) if each.name in (*names, *(key.name for key in keys), table.member)
    )
    query = EngineQuery(table.name, sql, columns=(), row_limit=1, reads=reads)
    answer = engine.run(query, engine.data_version(table.name))
    engine.confirm(query, answer)
    return sum(answer.counts)
