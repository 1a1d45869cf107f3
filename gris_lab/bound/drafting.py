"""A draft of a policy with all that rows say: which columns, which bounds, and how contributions are bounded.

The latter is what `gris plan bound` proposes for the column with the most elements. Bounds come from the very data that
questions will be about, in round numbers: their owner decides whether they may.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import duckdb

from dp_service.terms import ColumnType
from gris_data.converting import types_of_texts
from gris_data.policy.draft import Draft, draft_of, member_of
from gris_data.policy.draft_contents import ColumnContents, contents_of, has_rows, reading
from gris_data.policy.draft_numbers import values_of
from gris_data.policy.draft_shape import CURRENCY, Looks, Planned, shape_of, usual_elements
from gris_data.policy.draft_text import Drafted
from gris_data.table_schema import TableSchema
from gris_lab.bound.contributions import BoundedCounts, powers_up_to, summed
from gris_lab.bound.looks import BothLooks, Question, Trials
from gris_lab.bound.proposal import TradeOff, proposal, trade_off
from gris_lab.bound.search import USEFUL
from gris_lab.simulation import Draws
from pinot_connector.engines.parquet import quoted

UNITS = (5, 7, 10, 14, 20, 30, 50)
TOP, LONGEST, NAMES = 20, 50, 75
"""How many elements the price is planned for, how many a list can show, and how many a first look names for that."""

LEAST_SHARE, MOST_SHARE = Fraction(1, 4), Fraction(3, 4)
"""Of the units, for names: with less, questions by rows and with conditions find too few, with more, counts suffer."""

D_BAR = 1000
_TRIALS = 20
_NOTHING_TO_PLAN = Planned(Looks(4, 10))


def drafted(schema: TableSchema, member: str, *, reads_rows: bool) -> Drafted:
    """Return a draft of a table.

    Args:
        schema: Its name and columns.
        member: The column of its members; empty: the only one whose name says so.
        reads_rows: Whether its rows are read, for their owner; otherwise names and types alone decide.

    Raises:
        InputError: The member is not known, or rows cannot be read.
    """
    who = member_of(schema, member)
    if not reads_rows:
        return Drafted(draft_of(schema, who, {}, is_member_named=bool(member)))
    with reading(schema) as connection:
        if not has_rows(connection, schema, who):
            return Drafted(draft_of(schema, who, {}, is_member_named=bool(member)))
        contents = contents_of(connection, schema, who)
        draft = draft_of(schema, who, contents, is_member_named=bool(member))
        shape = shape_of(connection, draft, planned_for(connection, draft, contents))
        texts = [
            each.name for each in schema.columns if each.type is ColumnType.STRING and each.name != who.name
        ]
        likely = types_of_texts(connection, quoted(schema.name), texts)
        return Drafted(draft, (shape,), tuple(values_of(connection, draft, shape)), likely)


def planned_for(
    connection: duckdb.DuckDBPyConnection, draft: Draft, contents: Mapping[str, ColumnContents]
) -> Planned:
    """Return how contributions are bounded, by the column with the most elements.

    Raises:
        InputError: There are no pairs of a member and an element.
    """
    # Days are asked for in buckets, which have a bound of their own.
    planned = max(
        (each.name for each in draft.elements if each.type in (ColumnType.STRING, ColumnType.INT64)),
        key=lambda name: contents[name].values,
        default="",
    )
    values = contents[planned].values if planned else 0
    if values < 2:
        return _NOTHING_TO_PLAN
    question = Question(CURRENCY, min(TOP, values), 1, D_BAR)
    member, element = quoted(draft.member.name), quoted(planned)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE pairs AS SELECT DISTINCT hash({member}) AS member, hash({element}) AS element "  # noqa: S608
        f"FROM {quoted(draft.table.name)} WHERE {member} IS NOT NULL AND {element} IS NOT NULL"
    )
    made, counts = _tried(connection, question, UNITS)
    chosen = proposal(made, counts, question).proposed
    others = usual_elements(connection, draft, planned)
    longest = Question(CURRENCY, min(LONGEST, values), 1, D_BAR)
    enough = UNITS[UNITS.index(chosen.look.units) :] if USEFUL.is_met(chosen.worth, question.k) else ()
    widest = max(longest.most_names, others)
    found = _useful(
        connection, question, widest, (_looks(connection, longest, each, others) for each in enough)
    )
    looks = found or _looks(connection, longest, chosen.look.units, others)
    return Planned(looks, planned, question.k, found is not None)


def _useful(
    connection: duckdb.DuckDBPyConnection, question: Question, widest: int, tried: Iterable[Looks]
) -> Looks | None:
    """Return the first looks whose answers are useful: bounds that other questions want may have more noise."""
    counts = summed(connection, question.k, question.most_names, powers_up_to(widest))
    runs = Trials(counts, question, Draws(0), _TRIALS)
    for each in tried:
        worth = runs.two_looks(BothLooks(each.units, each.delta_1, each.delta_0, each.share))
        if USEFUL.is_met(worth, question.k):
            return each
    return None


def _looks(connection: duckdb.DuckDBPyConnection, longest: Question, units: int, others: int) -> Looks:
    """Return the looks for so many units; of the bounds, a longer list has more to lose than a shorter one."""
    made, counts = _tried(connection, longest, (units,))
    # Quantiles by a column of unknown values take two looks, also where one look would do for counts.
    two = next(each.look for each in made.tried if isinstance(each.look, BothLooks))
    share = min(max(two.names_share, LEAST_SHARE), MOST_SHARE)
    return Looks(max(two.counts_bound, others), units, _clearest(counts, longest.k), share, NAMES)


def _tried(
    connection: duckdb.DuckDBPyConnection, question: Question, units: Sequence[int]
) -> tuple[TradeOff, BoundedCounts]:
    """Return what the best looks find of the pairs that a connection has, and what bounds leave of these."""
    counts = summed(connection, question.k, question.most_names, powers_up_to(question.most_names))
    return trade_off(counts, question, units, _TRIALS, Draws(0), seed=0), counts


def _clearest(counts: BoundedCounts, k: int) -> int:
    """Return the bound of a first look under which the largest elements rise highest above the noise.

    Where the question that was planned for finds all of them under any bound, questions with conditions, or by rows,
    which have fewer members or more noise, still do not.
    """
    return max(counts.bounds, key=lambda bound: float(counts.under(bound)[:k].sum()) / math.sqrt(bound))
