"""What one policy says otherwise than another, key by key, and what that means: for those who review a policy.

What is compared is what keys mean: their order, defaults that are written out, and comments change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dp_service.queries.audience_terms import Audience, Named, OfferedTable
from dp_service.queries.blocks import Blocks
from dp_service.queries.columns import Column
from dp_service.queries.currency import Currency
from dp_service.queries.elements import date_of
from dp_service.queries.policy_review import is_promise
from dp_service.queries.shown_elements import D_BAR_PER_K, DEFAULT_D_BAR
from dp_service.queries.table_contributions import Choice, Contributions, Names, Sums, Totals
from dp_service.queries.tables import Events, Measures, Policy, PreparedPairs, Table, TauIs
from dp_service.queries.times import CompleteBy, TimeColumn
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import BoundedBy, Consistency, CountNoise, ValueType
from gris_data.policy.field_changes import (
    Change,
    Effect,
    Field,
    Meaning,
    Most,
    Place,
    Said,
    below,
    bounded,
    by_name,
    members,
    nothing,
    offered,
    optional,
    ordered,
    promise,
    promised,
    weaker_if,
    whole,
)


def changes(old: Policy, new: Policy) -> tuple[Change, ...]:
    """Return what differs between two policies."""
    return tuple(below(old, new, Place(RULES)))


def _table(old: Any, new: Any, place: Place) -> Iterator[Change]:
    yield from below(old, new, place._replace(within=(old, new)))


def _audiences(old: Any, new: Any, place: Place) -> Iterator[Change]:
    if bool(old) is bool(new):
        yield from by_name(Effect.ANSWERABLE, Effect.REFUSED)(old, new, place)
    elif new:
        yield place.change(Effect.STRONGER, _EVERYBODY, sorted(new))
        yield place.change(Effect.REFUSED, _EVERYBODY, "no question without an audience")
    else:
        yield place.change(Effect.WEAKER, sorted(old), _EVERYBODY)


def _tables_of_audience(old: Any, new: Any, place: Place) -> Iterator[Change]:
    each = by_name(Effect.WEAKER, Effect.STRONGER) if None not in (old, new) else _SCOPE
    yield from each(old, new, place)


def _one_value(old: Any, new: Any, place: Place) -> Iterator[Change]:
    kept = members(Effect.WEAKER, Effect.STRONGER, to_all=Effect.STRONGER, to_some=Effect.WEAKER)
    yield from kept(old or (), new or (), place)


def _units(place: int) -> Meaning:
    """Return what the least or the most units are, where they are not `units`."""

    def meaning(stated: Contributions, table: Table) -> int | None:
        found = stated.allowed_units[place]
        return None if found == stated.units else found

    return meaning


def _periods(stated: Contributions, table: Table) -> int | None:
    number = stated.number_of_periods
    return 1 if number is None and stated.bounded_by is BoundedBy.PREPARED and not stated.calendar else number


def _fetched(table: Table, within: Table) -> int | None:
    """Return how many elements are fetched, where that does not grow with k."""
    does_not_grow = D_BAR_PER_K * table.max_k <= DEFAULT_D_BAR
    return DEFAULT_D_BAR if table.d_bar is None and does_not_grow else table.d_bar


def _version(old: Any, new: Any) -> Effect:
    return Effect.OTHER if old and new else promised(old, new)


def _publication(column: Column | ValueColumn, table: Table) -> Said | None:
    price = column.publication
    return (
        None
        if price is None
        else Said(price, f"rho {float(price.rho):g}, delta {float(price.delta):g}, {price.id}")
    )


def _timestamps(column: Column, table: Table) -> Said | None:
    found = column.timestamps
    if found is None:
        return None
    return Said(
        found, f"{found.stored.name.lower() if found.stored else 'the type of the engine'}, {found.zone}"
    )


def _lookup(column: Column, table: Table) -> str | None:
    found = column.lookup
    return None if found is None else f"by {found.key.name}, {found.hash}"


def _expected(choice: Choice, table: Table) -> list[str]:
    """Return what is expected of counts, rank by rank."""
    return [
        f"{name} {each.rank}: {each.count}"
        for name, stated in sorted(choice.expected.items())
        for each in stated.root
    ]


def _in_units(steps: int, column: ValueColumn | QuantileColumn) -> object:
    return date_of(steps) if column.type is ValueType.DATE else steps * column.bounds.quantum.size


def _end(of: str, end: str) -> Meaning:
    """Return an end of the bounds of a column of numbers, in the units of the column."""

    def meaning(column: ValueColumn | QuantileColumn, table: Table) -> object:
        return _in_units(getattr(getattr(column.bounds, of), end), column)

    return meaning


def _months(column: ValueColumn, table: Table) -> list[object] | None:
    own = column.bounds_in_months.totals
    return None if own == column.bounds.totals else [_in_units(each, column) for each in (own.low, own.high)]


def _grid(column: QuantileColumn, table: Table) -> list[object]:
    grid = column.spec
    return [grid.scale, *(_in_units(each, column) for each in (grid.low, grid.high)), f"{grid.cells} cells"]


def _rows(offered_table: OfferedTable, table: Table) -> dict[str, list[object]]:
    """Return the values that rows must have, by column, with names as a policy writes them."""
    return {
        column: [f"${each.name}" if isinstance(each, Named) else each for each in values]
        for column, values in offered_table.rows
    }


_EVERYBODY = "everybody, everything"
_OTHER = whole(lambda old, new: Effect.OTHER)
_MORE = weaker_if(lambda old, new: new > old)
_LESS = weaker_if(lambda old, new: new < old)
_UP_TO = whole(lambda old, new: Effect.WEAKER if (new or 0) > (old or 0) else Effect.STRONGER)
_ANY = weaker_if(lambda old, new: True)
_BOUND = whole(bounded)
_OFFER = whole(offered)
_OFFERS = members(Effect.ANSWERABLE, Effect.REFUSED, to_all=Effect.ANSWERABLE, to_some=Effect.REFUSED)
_SCOPE = members(Effect.WEAKER, Effect.STRONGER, to_all=Effect.WEAKER, to_some=Effect.STRONGER)
_FOLLOWS = Field(nothing)
_PLAIN = Field(_OTHER)
_FILE_OF_LOOKUP = "a promise that nothing checks: the file is public, and was not made from the data"
_PUBLISHED = "was published from the data; each publication of a window costs everybody"
_ONLY_PROMISED = "a promise that nothing checks"
_OF_A_COPY = "what is promised of a prepared copy"
_INEXACT = "promised; beyond it sums may be inexact"

RULES: Mapping[type, Mapping[str, Field]] = {
    Policy: {
        "currency": Field(below, keys=()),
        "tables": Field(by_name(Effect.ANSWERABLE, Effect.REFUSED, _table)),
        "audiences": Field(_audiences, "who is offered what"),
        "whole": _FOLLOWS,
        "asked_as": _FOLLOWS,
    },
    Currency: {
        "epsilon_per": Field(_MORE, "how much of a member one information unit may tell"),
        "delta": Field(_MORE, "how likely the guarantee fails in one call"),
        "count_noise": Field(
            ordered(*CountNoise), "with Gaussian counts weaker bounds hold for every account"
        ),
        "blocks": Field(
            optional(Effect.WEAKER, Effect.STRONGER), "promised: a member's rows are of one block"
        ),
    },
    Blocks: {
        "name": _PLAIN,
        "values": Field(_OTHER, meaning=lambda blocks, table: sorted(blocks.values, key=str)),
        "moves": Field(_ANY, "promised; a budget may be spent once more for each move of a member"),
    },
    Table: {
        "member": Field(_ANY, "who is protected: the new column must name the same people"),
        "time": Field(optional(Effect.ANSWERABLE, Effect.REFUSED)),
        "data_version": Field(whole(_version), "promised: it changes whenever the data do"),
        "consistency": Field(
            ordered(*Consistency),
            "fresh noise for each repeat, which only the budget keeps from being averaged",
        ),
        "d_bar": Field(_OTHER, meaning=_fetched),
        "reserve_first": _PLAIN,
        "contributions": Field(optional(Effect.OTHER, Effect.WEAKER), "how many elements a member counts in"),
        "measures": Field(below),
        "purpose": Field(
            optional(Effect.STRONGER, Effect.WEAKER, _ANY),
            "which limits of the ledger charges count against beside those of all",
        ),
        "block": Field(promise, "promised: this column says of which block a member is"),
        "name": _FOLLOWS,
        "columns": Field(by_name(Effect.ANSWERABLE, Effect.REFUSED)),
        "max_k": _PLAIN,
        "values": Field(by_name(Effect.ANSWERABLE, Effect.REFUSED)),
        "prepared": Field(optional(Effect.OTHER, Effect.OTHER)),
        "quantiles": Field(by_name(Effect.ANSWERABLE, Effect.REFUSED)),
        "forced": _FOLLOWS,
    },
    TimeColumn: {
        "name": _PLAIN,
        "type": _PLAIN,
        "counts": _PLAIN,
        "zone": _PLAIN,
        "refresh": _PLAIN,
        "delay_minutes": Field(
            _LESS,
            "promised: later than this no row arrives of a closed period",
            lambda time, table: None if time.refresh is None else time.delay_minutes,
        ),
        "complete_by": Field(ordered(CompleteBy.OFFSETS, CompleteBy.DELAY), "delay alone is promised"),
        "replaced_rows": Field(promise, _ONLY_PROMISED),
        "replaced_by": Field(promise, _ONLY_PROMISED),
        "offline_part": Field(promise, _ONLY_PROMISED),
        "buckets": Field(_OFFERS),
        "parts": Field(_OFFERS),
        "begins": _PLAIN,
        "ends": _PLAIN,
    },
    Contributions: {
        "bounded_by": Field(
            ordered(BoundedBy.IN_QUERY, BoundedBy.PREPARED, BoundedBy.ASSUMED),
            "who sees to it that a member counts in no more elements: the query, a copy, or nobody",
        ),
        "delta_0": Field(
            _BOUND,
            "in how many elements a member counts; enforced, it changes noise and not the guarantee",
            lambda stated, table: Most(stated.delta_0, stated.bounded_by is not BoundedBy.IN_QUERY),
        ),
        "units": Field(_MORE, "how much of a member one answer may tell, from the same budget"),
        "least_units": Field(_OTHER, meaning=_units(0)),
        "most_units": Field(_UP_TO, "how much of a member one answer may tell", _units(-1)),
        "min_count": Field(_LESS, "rarer elements are considered"),
        "elements": Field(_ANY, _OF_A_COPY, lambda stated, table: stated.elements or None),
        "period": Field(promise, _OF_A_COPY),
        "number_of_periods": Field(promise, _OF_A_COPY, _periods),
        "calendar": Field(promise, _OF_A_COPY),
        "names": Field(optional(Effect.OTHER, Effect.OTHER)),
        "shift": _PLAIN,
        "choice": Field(optional(Effect.OTHER, Effect.OTHER)),
        "sums": Field(optional(Effect.ANSWERABLE, Effect.REFUSED)),
        "sharpening": Field(_OFFER, "how many units a sharpening may take"),
        "buckets": Field(_OTHER, "in how many buckets of time a member counts"),
        "totals": Field(optional(Effect.ANSWERABLE, Effect.REFUSED)),
    },
    Names: {"delta_1": _PLAIN, "share": _PLAIN, "max_names": _PLAIN},
    Choice: {
        "among": _PLAIN,
        "units": _PLAIN,
        "kept": _PLAIN,
        "kept_names": _PLAIN,
        "expected": Field(_OTHER, meaning=_expected),
    },
    Sums: {
        "max_members": Field(promise, _INEXACT),
        "max_rows": Field(promise, _INEXACT),
        "share": _PLAIN,
    },
    Totals: {"share": _PLAIN, "one_value": Field(_one_value, "promised: a member has one value")},
    Measures: {
        "distinct_members": Field(_OFFER),
        "events": Field(optional(Effect.ANSWERABLE, Effect.REFUSED)),
        "distinct": Field(by_name(Effect.ANSWERABLE, Effect.REFUSED, _OTHER)),
    },
    Events: {
        "tau": Field(
            _BOUND,
            "how many rows of a member count in one element; enforced, it changes noise and not the guarantee",
            lambda events, table: Most(events.tau, events.tau_is is TauIs.ASSUMED),
        ),
        "tau_is": Field(ordered(TauIs.CLIPPED, TauIs.ASSUMED), "who sees to tau: the query, or nobody"),
    },
    PreparedPairs: {
        "table": _PLAIN,
        "manifest": Field(
            _OTHER, meaning=lambda copy, table: Said(copy.manifest, f"until {copy.manifest.end}")
        ),
        "path": _FOLLOWS,
    },
    Column: {
        "type": _PLAIN,
        "group_by": Field(_OFFER),
        "operators": Field(_OFFERS, meaning=lambda column, table: sorted(table.operators(column))),
        "delta": Field(
            _BOUND,
            "how many of the column's values a member has; a promise where nothing else bounds them",
            lambda column, table: Most(column.delta, is_promise(column, table)),
        ),
        "attribute": Field(promise, "promised: every member has one value, in all rows"),
        "name": _FOLLOWS,
        "domain": Field(_OFFERS, "the values that answers show; none: those that the data have often enough"),
        "nulls": _PLAIN,
        "null_value": _PLAIN,
        "publication": Field(promise, _PUBLISHED, _publication),
        "timestamps": Field(_OTHER, meaning=_timestamps),
        "lookup": Field(promise, _FILE_OF_LOOKUP, _lookup),
    },
    ValueColumn: {
        "type": _PLAIN,
        "quantum": _PLAIN,
        "lower": Field(_OTHER, meaning=_end("totals", "low")),
        "upper": Field(_OTHER, meaning=_end("totals", "high")),
        "row_lower": Field(_OTHER, meaning=_end("rows", "low")),
        "row_upper": Field(_OTHER, meaning=_end("rows", "high")),
        "months": Field(_OTHER, meaning=_months),
        "weight": _PLAIN,
        "nulls": _PLAIN,
        "null_value": _PLAIN,
        "name": _FOLLOWS,
        "bounds": _FOLLOWS,
        "bounds_in_months": _FOLLOWS,
        "publication": Field(promise, _PUBLISHED, _publication),
    },
    QuantileColumn: {
        "type": _PLAIN,
        "quantum": _PLAIN,
        "member_value": _PLAIN,
        "grid": Field(_OTHER, meaning=_grid),
        "row_lower": Field(_OTHER, meaning=_end("rows", "low")),
        "row_upper": Field(_OTHER, meaning=_end("rows", "high")),
        "max_rows": Field(promise, _INEXACT),
        "nulls": _PLAIN,
        "null_value": _PLAIN,
        "name": _FOLLOWS,
        "bounds": _FOLLOWS,
        "spec": _FOLLOWS,
    },
    Audience: {"tables": Field(_tables_of_audience, "what an audience is offered")},
    OfferedTable: {
        "columns": Field(_SCOPE, "what an audience is offered"),
        "rows": Field(
            by_name(Effect.STRONGER, Effect.WEAKER, _SCOPE),
            "of which rows an audience is answered",
            _rows,
            ("where",),
        ),
    },
}
