"""The first of two looks: from a histogram to names, and to the plan of the look that counts them.

Why the result is private: docs/proofs/bounded-contributions.md, theorem 2. What this module returns is the first look's
release, and has not been paid for when it goes to the trusted side; nobody else may see it, nor anything that follows
from it.

No name may be one that the second look could fail for. So elements that no query can name are left out before any
noise is drawn, by a rule that looks at the element alone, and there are at most as many names as fit into a query
whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dp_service.mechanisms.histogram import Histogram
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.queries.filters import fault_of
from dp_service.queries.intervals import UNIVERSES
from dp_service.queries.resolution import Resolution, second_look
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import IncompleteParametersError, kind_of
from dp_service.releases.plan import LooksPlan, Plan
from dp_service.releases.release_ids import look_specification, release_id, release_seed
from dp_service.releases.releasing import counted, from_the_draw_on
from dp_service.terms import ColumnType, Element, Scalar


@dataclass(frozen=True)
class Named:
    """What the first look released: at most M elements, in ascending order, and the id of that look."""

    names: tuple[Element, ...]
    release_id: str


def is_first_look(plan: Plan) -> bool:
    """Return whether a plan is that of the first of two looks, which shows nothing."""
    return plan.looks is not None and plan.looks.names is None


def names_of(plan: Plan, histogram: TypedHistogram, key: NoiseKey) -> Named:
    """Draw the first look that a plan describes. The same plan and histogram give the same names.

    Args:
        plan: The verified plan of a first look.
        histogram: The engine's answer.
        key: The key that signed the plan.

    Raises:
        HistogramError: The histogram cannot be the answer to the plan's query.
        UnansweredDrawError: Something failed once noise may have been drawn.
    """
    mechanism = kind_of(plan.parameters).first_look
    if mechanism is None:
        raise IncompleteParametersError
    rows = _nameable(counted(plan, histogram))
    specification = look_specification(plan.specification, 1)
    seed = release_seed(key, specification, plan.data_version, rows.digest(), plan.fresh)
    with from_the_draw_on():
        found = mechanism.draw_names(Histogram.from_element_order(rows.counts), KeyedNoise(KeyedStream(seed)))
        return Named(tuple(sorted(rows.elements[i] for i in found.tolist())), release_id(seed))


def second_plan(plan: Plan, found: Named, *, now: int) -> Plan:
    """Return the plan of the second look: the same question on the same data, about the names alone.

    Args:
        plan: The plan of the first look.
        found: What the first look named.
        now: Seconds since 1970 (UTC); the plan is valid for ten minutes from then on.
    """
    looks = replace(_looks(plan), names=found.names, before=found.release_id)
    return replace(plan, looks=looks, row_limit=len(found.names), issued_at=now)


def second_question(plan: Plan) -> Resolution:
    """Return what the second look asks of an engine, from its plan alone: the policy may be another one by now."""
    looks = _looks(plan)
    asked = Resolution(
        query=looks.query,
        parameters=plan.parameters,
        paid_by=plan.paid_by,
        fixed_data_version=plan.data_version,
        row_limit=plan.row_limit,
        window=None,
        reserve_first=True,
        reads=(),
        member_type=looks.member_type,
        copy=looks.copy,
    )
    return second_look(asked, looks.names or ())


def without_rows(histogram: TypedHistogram) -> TypedHistogram:
    """Return the answer to a second look at no names, which needs no query; its columns are those of the first."""
    return histogram.rows([])


def _looks(plan: Plan) -> LooksPlan:
    if plan.looks is None:
        raise IncompleteParametersError
    return plan.looks


def _nameable(histogram: TypedHistogram) -> TypedHistogram:
    """Return the rows whose elements a query can name."""
    types = histogram.types
    kept = [
        row
        for row, element in enumerate(histogram.elements)
        if all(_can_be_named(value, kind) for value, kind in zip(element, types, strict=True))
    ]
    return histogram.rows(kept)


def _can_be_named(value: Scalar, kind: ColumnType) -> bool:
    if kind is ColumnType.DATE:
        days = UNIVERSES[kind]
        return days.start <= int(value) < days.end
    return fault_of(value) is None
