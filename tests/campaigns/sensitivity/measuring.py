"""Asks a table and its neighbours through the real SQL and a real DuckDB, and compares what the mechanism meets."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.mechanisms import KnownGumb, KnownLap, UnkGumb, UnkLap
from dp_service.mechanisms.bounded import BoundGauss, Shift, TwoLooks
from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.audiences import seen_by
from dp_service.queries.canonical_query import QueryDistinct
from dp_service.queries.errors import QuestionError
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.resolution import Resolution, second_look
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.looks import Named, second_plan
from dp_service.releases.plan import Plan
from dp_service.releases.releasing import counted
from dp_service.releases.resolving import resolve_question
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import ColumnType, Element, MechanismName
from pinot_connector.engines import base
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.engine_queries import engine_query
from tests.support.queries.reference import Row
from tests.support.queries.sql_writer import spelled
from tests.support.queries.strategies import NOW

from .strategies import AUDIENCE, World

# More rows than any table here has groups.
ALL_ROWS = 10_000
_SCHEMA = pa.schema(
    [
        ("member", pa.string()),
        ("text", pa.string()),
        ("number", pa.int64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("at_ms", pa.int64()),
    ]
)
_KEY = NoiseKey(bytes(range(32)))

Translate = Callable[[Resolution], Resolution]


@dataclass
class Totals:
    """What a campaign has looked at."""

    questions: int = 0
    neighbours: int = 0
    changed: int = 0
    mechanisms: Counter[str] = field(default_factory=Counter)
    partly_known: int = 0
    at_delta: int = 0
    at_tau: int = 0
    at_weight: int = 0
    cut: int = 0
    in_time: int = 0
    totals: int = 0
    second_looks: int = 0
    shifts: int = 0
    compound: int = 0
    distinct: int = 0
    values_at_tau: int = 0
    spared: int = 0
    paying_alone: int = 0

    def __str__(self) -> str:
        named = ", ".join(f"{name} {number}" for name, number in sorted(self.mechanisms.items()))
        return (
            f"{self.questions} questions ({named}; {self.partly_known} with a key that is known in part, "
            f"{self.cut} cut at d_bar, {self.totals} totals, {self.second_looks} second looks, "
            f"{self.shifts} relative to a total, "
            f"{self.in_time} with a range of timestamps, {self.compound} with patterns or alternatives, "
            f"{self.distinct} of distinct values), "
            f"{self.neighbours} neighbours, "
            f"{self.changed} that differ: "
            f"{self.at_weight} weighted members at nine tenths of the charge and above, "
            f"{self.at_delta} in just Delta elements, {self.at_tau} by just tau in one, of which "
            f"{self.values_at_tau} are several distinct values; {self.spared} do not differ as the member's block "
            f"does not pay, {self.paying_alone} differ where few blocks pay"
        )


def faults(
    world: World, folder: Path, totals: Totals, *, translate: Translate = lambda resolution: resolution
) -> list[str]:
    """Return what one member changes beyond Delta, tau or the charge; nothing if the promises of all releases hold.

    `translate` stands between resolution and SQL; a test of this test breaks the query there.
    """
    policy = _policy(world, folder)
    resolutions = list(_resolutions(world, policy))
    with closing(AskedTable(folder / "t.parquet", world.rows)) as table:
        first = table.met([Asked.of(each) for each in resolutions])
        resolutions += list(_second_looks(resolutions, first))
        whole = table.met([Asked.of(translate(each)) for each in resolutions])
        whole_answers = [Asked.of(translate(uncut(each))) for each in resolutions]
        everything = table.met(whole_answers)
        found: list[str] = []
        for resolution, cut, all_ in zip(resolutions, whole, everything, strict=True):
            _count(totals, resolution, cut)
            found += _cut_faults(resolution, cut, all_)
        for member in sorted({row.member for row in world.rows if row.member is not None}):
            table.hold_without(member)
            block = _block_of(member, world, policy)
            for resolution, with_member, neighbour in zip(
                resolutions, everything, table.met(whole_answers), strict=True
            ):
                found += _change_faults(resolution, with_member, neighbour, totals)
                found += _block_faults(resolution, block, with_member, neighbour, totals)
    return found


def _second_looks(resolutions: list[Resolution], found: list[TypedHistogram]) -> Iterator[Resolution]:
    """Return the second look of each question that takes two, at names that the first one could find."""
    for resolution, first in zip(resolutions, found, strict=True):
        looks = kind_of(resolution.parameters).first_look
        if looks is not None and first.elements:
            yield second_look(resolution, tuple(sorted(first.elements[: looks.most_names])))


def uncut(resolution: Resolution) -> Resolution:
    """Return the question whose answer has all rows, also those below the smallest count that is considered."""
    parameters = resolution.parameters
    if parameters.contributions is not None and parameters.contributions.min_count is not None:
        contributions = replace(parameters.contributions, min_count=1)
        parameters = replace(parameters, contributions=contributions)
    return replace(resolution, row_limit=ALL_ROWS, parameters=parameters)


def _resolutions(world: World, policy: Policy) -> Iterator[Resolution]:
    """Return what the questions resolve to, each by way of SQL; those that no row can meet are left out."""
    random = Random(len(world.rows))
    for question in world.questions:
        if _has_no_tau(question, policy):
            continue
        with suppress(QuestionError):
            text = spelled(question, policy.table("t"), random)
            yield resolve_question(parse_sql(text, policy), policy, now=NOW)


def _has_no_tau(question: HistogramQuery, policy: Policy) -> bool:
    """Return whether a policy promises nothing of a total, or of a function alone, which is refused then."""
    is_assumed = policy.table("t").measures.assumed_tau is not None
    return not question.plain_dimensions and is_assumed and question.measure is Measure.EVENTS


def _policy(world: World, folder: Path) -> Policy:
    for name, content in world.files.items():
        (folder / name).write_bytes(content)
    text = json.dumps(world.policy, ensure_ascii=False).encode()
    policy = read_policy(text, str(folder / "policy.yaml")).policy
    return seen_by(policy, AskedAs(AUDIENCE)) if policy.audiences else policy


@dataclass(frozen=True)
class Asked:
    """What a question is asked by, which is the same of a table and of its neighbours."""

    plan: Plan
    query: base.EngineQuery

    @classmethod
    def of(cls, resolution: Resolution) -> Asked:
        """Return how this question is asked."""
        plan = plan_for(resolution, "v", _KEY, IssueContext(NOW, bytes(32)))
        if plan.looks is not None and resolution.names is not None:
            second = second_plan(plan, Named(resolution.names, ""), now=NOW)
            plan = replace(second, row_limit=resolution.row_limit)
        return cls(plan, engine_query(resolution, "duckdb"))


class AskedTable:
    """A file and a DuckDB that answers from it; each neighbour's rows take the place of those before.

    A query is asked once of the same rows: questions, the same ones uncut, and looks more have many in common.
    """

    def __init__(self, path: Path, rows: list[Row]) -> None:
        self._path = path
        self._members = [row.member for row in rows]
        columns = list(zip(*((*row, *_at(row)) for row in rows), strict=True)) or [()] * len(_SCHEMA)
        arrays = [pa.array(each, kind.type) for each, kind in zip(columns, _SCHEMA, strict=True)]
        self._rows = pa.table(arrays, _SCHEMA)
        self._hold(self._rows)
        self._engine = DuckDBEngine({"t": path})
        # Of so few rows, threads that share the work take longer to wake than to answer.
        with self._engine.reading("t") as connection:
            connection.execute("SET threads = 1")

    def hold_without(self, member: str) -> None:
        """Replace the file by one of all rows but a member's."""
        self.hold(place for place, each in enumerate(self._members) if each != member)

    def hold(self, places: Iterable[int]) -> None:
        """Replace the file by one of the rows at some places."""
        self._hold(self._rows.take(pa.array(list(places), pa.int64())))

    def _hold(self, rows: pa.Table) -> None:
        new = self._path.with_suffix(".new")
        pq.write_table(rows, new)
        new.replace(self._path)
        self._answers: dict[base.EngineQuery, base.EngineAnswer] = {}

    def met(self, asked: list[Asked]) -> list[TypedHistogram]:
        """Return what the mechanism of each question meets on the rows that the file has."""
        version = self._engine.data_version("t")
        return [self._met(each, version) for each in asked]

    def _met(self, asked: Asked, version: str) -> TypedHistogram:
        if asked.query not in self._answers:
            self._answers[asked.query] = self._engine.run(asked.query, version)
        return counted(asked.plan, _histogram(asked.plan, self._answers[asked.query]))

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _at(row: Row) -> tuple[datetime.datetime | None, int | None]:
    """Return a timestamp on the row's day, and the same in milliseconds since 1970."""
    if row.day is None:
        return None, None
    at = datetime.datetime.combine(row.day, datetime.time((row.number or 0) % 24, 30))
    return at, (at - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)


def _histogram(plan: Plan, answer: base.EngineAnswer) -> TypedHistogram:
    types = tuple(kind for _, kind in plan.columns)
    stated = plan.parameters.contributions
    first_counts = answer.first_counts if stated is not None and stated.shifted else None
    return checked_histogram(
        types, answer.elements, answer.counts, row_limit=plan.row_limit, first_counts=first_counts
    )


def _cut_faults(resolution: Resolution, cut: TypedHistogram, uncut: TypedHistogram) -> Iterator[str]:
    """Compare the answer with the largest counts of all, ties in the order of elements."""
    contributions = resolution.parameters.contributions
    is_second = resolution.names is not None
    least = 0 if contributions is None or is_second else (contributions.min_count or 0) * contributions.grid
    all_ = [each for each in counts(uncut).items() if each[1] >= least]
    ordered = sorted(all_, key=lambda each: (-each[1], each[0]))
    if counts(cut) != dict(ordered[: resolution.row_limit]):
        yield "the answer is not the largest counts of all"


def _change_faults(
    resolution: Resolution, with_member: TypedHistogram, without: TypedHistogram, totals: Totals
) -> Iterator[str]:
    """Compare what one member changes with Delta and tau as resolved, and with what is charged for it."""
    before, after = counts(without), counts(with_member)
    changes = {
        element: after.get(element, 0) - before.get(element, 0) for element in before.keys() | after.keys()
    }
    moved = [change for change in changes.values() if change]
    totals.neighbours += 1
    mechanism = kind_of(resolution.parameters).mechanism
    shift = mechanism if isinstance(mechanism, Shift) else None
    if shift is not None and (lost := _loss_of_shift(shift, moved, with_member, without)) > shift.rho:
        yield f"a member's change relative to the total is worth {lost}, and {shift.rho} is charged"
    if not moved:
        return
    totals.changed += 1
    if resolution.parameters.contributions is not None and resolution.parameters.contributions.grid > 1:
        yield from _weighted_faults(resolution, before, after, totals)
        return
    reach = _reach(resolution)
    totals.at_delta += len(moved) == reach
    totals.at_tau += max(moved) == resolution.parameters.tau
    is_of_values = isinstance(resolution.query.measure, QueryDistinct)
    totals.values_at_tau += is_of_values and max(moved) == resolution.parameters.tau > 1
    if min(moved) < 0:
        yield "a member who comes lowers a count"
    if reach is not None and len(moved) > reach:
        yield f"a member changes {len(moved)} elements, and Delta is {reach}"
    if max(map(abs, moved)) > resolution.parameters.tau:
        yield f"a member changes a count by {max(map(abs, moved))}, and tau is {resolution.parameters.tau}"
    if shift is None and _loss(resolution, moved) > _paid(resolution):
        yield f"a member's change is worth {_loss(resolution, moved)}, and {_paid(resolution)} is charged"


def _weighted_faults(
    resolution: Resolution, before: dict[Element, int], after: dict[Element, int], totals: Totals
) -> Iterator[str]:
    """Compare what one weighted member changes, on the grid, with the charge and with what a threshold hides."""
    look = _look_or_mechanism(resolution)
    assert isinstance(look, BoundGauss)
    is_unknown = look.min_count is not None
    common = before.keys() & after.keys() if is_unknown else before.keys() | after.keys()
    moved = [after.get(element, 0) - before.get(element, 0) for element in common]
    loss, paid = _loss(resolution, moved), _paid(resolution)
    totals.at_weight += loss > paid * Fraction(9, 10)
    if min(moved, default=0) < 0 or (before.keys() - after.keys() and is_unknown):
        yield "a member who comes lowers a count"
    if loss > paid:
        yield f"a member's change is worth {loss}, and {paid} is charged"
    if look.min_count is not None:
        hidden = look.min_count * look.bound.grid - 1 + look.bound.contributions[-1]
        brought = max((after[element] for element in after.keys() - common), default=0)
        if brought > hidden:
            yield f"a member brings an element with a count of {brought}, and {hidden} is hidden"


def _block_of(member: str, world: World, policy: Policy) -> str:
    """Return the id of the block that all rows of a member are of; empty: the policy has none."""
    blocks, column = policy.currency.blocks, policy.table("t").block
    if blocks is None or column is None:
        return ""
    (found,) = {
        blocks.ids.get(getattr(row, column), blocks.rest) for row in world.rows if row.member == member
    }
    return found


def _block_faults(
    resolution: Resolution, block: str, with_member: TypedHistogram, without: TypedHistogram, totals: Totals
) -> Iterator[str]:
    """See that a member changes nothing of what its block does not pay for, not even of what is only added up."""
    paying = resolution.paid_by.blocks
    differs = bool(counts(with_member) != counts(without) or with_member.total != without.total)
    totals.paying_alone += bool(paying) and differs
    totals.spared += bool(paying) and block not in paying
    if paying and block not in paying and differs:
        yield "a member of a block that does not pay changes a count"


def _loss_of_shift(
    shift: Shift, moved: list[int], with_member: TypedHistogram, without: TypedHistogram
) -> Fraction:
    """Return the rho of what is drawn around: b x - a n for every element, and n."""
    a, b = shift.factors
    members = (with_member.total or 0) - (without.total or 0)
    changes = [*moved, *[0] * (shift.domain_size - len(moved))]
    of_counts = sum((b * change - a * members) ** 2 for change in changes)
    return of_counts / (2 * (shift.count_variance - DISCRETENESS)) + members**2 / (
        2 * (shift.total_variance - DISCRETENESS)
    )


def _loss(resolution: Resolution, moved: list[int]) -> Fraction:
    """Return the epsilon of the counts: of all where they are the mechanism, else of each, for they are paid singly.

    Of bounded contributions it is the rho, which is half of the squared distance over the variance.
    """
    mechanism = _look_or_mechanism(resolution)
    if isinstance(mechanism, BoundGauss):
        return Fraction(sum(change**2 for change in moved)) / (2 * (mechanism.variance - DISCRETENESS))
    assert not isinstance(mechanism, Shift)
    scale = 1 / mechanism.count_inverse_scale
    is_one_release = resolution.parameters.mechanism in (MechanismName.KNOWN_LAP, MechanismName.UNK_LAP)
    return (sum if is_one_release else max)(map(abs, moved)) / scale


def _paid(resolution: Resolution) -> Fraction:
    """Return the epsilon that is charged for what `_loss` tells: half of epsilon_per for each information unit.

    Of bounded contributions it is the rho that the units stand for.
    """
    mechanism = _look_or_mechanism(resolution)
    if isinstance(mechanism, BoundGauss):
        return mechanism.units * resolution.parameters.epsilon_per**2 / 8
    half = resolution.parameters.epsilon_per / 2
    is_known_lap = resolution.parameters.mechanism is MechanismName.KNOWN_LAP
    return half * (mechanism.worst_case_cost().information if is_known_lap else 1)


def _reach(resolution: Resolution) -> int | None:
    """Return how many elements a member may change in this question or look; None: any number."""
    looks = kind_of(resolution.parameters).first_look
    if looks is None or resolution.names is not None:
        return resolution.parameters.delta_l0
    return looks.names_bound.typical


def _look_or_mechanism(
    resolution: Resolution,
) -> KnownLap | KnownGumb | UnkLap | UnkGumb | BoundGauss | Shift:
    """Return what draws the answer to this question or look; none of these questions sums or asks for quantiles."""
    mechanism = kind_of(plan_for(resolution, "v", _KEY, IssueContext(NOW, bytes(32))).parameters).mechanism
    if isinstance(mechanism, TwoLooks):
        return mechanism.names_look if resolution.names is None else mechanism.counts_look
    assert isinstance(mechanism, KnownLap | KnownGumb | UnkLap | UnkGumb | BoundGauss | Shift)
    return mechanism


def counts(histogram: TypedHistogram) -> dict[Element, int]:
    """Return the count of each element."""
    return dict(zip(histogram.elements, histogram.counts.tolist(), strict=True))


def _count(totals: Totals, resolution: Resolution, whole: TypedHistogram) -> None:
    totals.questions += 1
    totals.mechanisms[resolution.parameters.mechanism] += 1
    totals.second_looks += (
        resolution.names is not None and kind_of(resolution.parameters).first_look is not None
    )
    totals.shifts += isinstance(kind_of(resolution.parameters).mechanism, Shift)
    parameters = resolution.parameters
    totals.partly_known += bool(parameters.within)
    totals.totals += not resolution.query.dimensions
    totals.compound += bool(resolution.query.conditions)
    totals.distinct += isinstance(resolution.query.measure, QueryDistinct)
    totals.in_time += any(each.column.type is ColumnType.TIMESTAMP for each in resolution.query.restrictions)
    totals.cut += parameters.domain is None and len(whole.elements) == resolution.row_limit
