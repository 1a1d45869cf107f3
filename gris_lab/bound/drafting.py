"""A draft of a policy with all that rows say: which columns, which bounds, and how contributions are bounded.

The latter is the cheapest setting whose answers about the column with the most elements are useful in trial runs, as
those of `gris plan bound`. Bounds come from the very data that questions will be about, in round numbers: their owner
decides whether they may.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import duckdb

from dp_service.terms import ColumnType
from gris_data.policy.draft import Draft, draft_of, member_of
from gris_data.policy.draft_contents import ColumnContents, contents_of, has_rows, reading
from gris_data.policy.draft_numbers import values_of
from gris_data.policy.draft_shape import CURRENCY, Looks, Planned, shape_of, usual_elements
from gris_data.policy.draft_text import Drafted
from gris_data.table_schema import TableSchema
from gris_lab.bound.contributions import BoundedCounts, powers_up_to, summed
from gris_lab.bound.looks import BothLooks, Question, Sketch, Trials
from gris_lab.bound.search import NAMES_SHARES, USEFUL, best
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
        return Drafted(draft, (shape,), tuple(values_of(connection, draft, shape)))


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
    others = usual_elements(connection, draft, planned)
    longest = Question(CURRENCY, min(LONGEST, values), 1, D_BAR)
    names = summed(connection, longest.k, longest.most_names, powers_up_to(longest.most_names))
    widest = max(longest.most_names, others)
    counts = summed(connection, question.k, question.most_names, powers_up_to(widest))
    trials, tried = Trials(counts, question, Draws(0), _TRIALS), _looks(names, longest, others)
    looks, is_useful = _cheapest(trials, question, tried)
    return Planned(looks, planned, question.k, is_useful)


def _looks(counts: BoundedCounts, longest: Question, others: int) -> Iterator[Looks]:
    """Yield looks for each number of units.

    Of the bounds, a longer list has more to lose than a shorter one, and other columns may need more.
    """
    sketch, clearest = Sketch(counts, longest, 0), _clearest(counts, longest.k)
    for units in UNITS:
        two = best(sketch.both_looks(units, NAMES_SHARES), longest.k, USEFUL)
        share = min(max(two.names_share, LEAST_SHARE), MOST_SHARE)
        yield Looks(max(two.counts_bound, others), units, clearest, share, NAMES)


def _cheapest(trials: Trials, question: Question, tried: Iterable[Looks]) -> tuple[Looks, bool]:
    """Return the first looks whose answers are useful, and True; else the first that come nearly as close as any."""
    found = []
    for each in tried:
        worth = trials.two_looks(BothLooks(each.units, each.delta_1, each.delta_0, each.share))
        if USEFUL.is_met(worth, question.k):
            return each, True
        found.append((each, worth))
    reached = USEFUL.within_reach([worth for _, worth in found], question.k)
    # Where nothing is shown, whatever the price, nothing is reached.
    return next((looks for looks, worth in found if reached.is_met(worth, question.k)), found[0][0]), False


def _clearest(counts: BoundedCounts, k: int) -> int:
    """Return the bound of a first look under which the largest elements rise highest above the noise.

    Where the question that was planned for finds all of them under any bound, questions with conditions, or by rows,
    which have fewer members or more noise, still do not.
    """
    return max(counts.bounds, key=lambda bound: float(counts.under(bound)[:k].sum()) / math.sqrt(bound))
