"""Two versions of a policy for those who review it: which keys differ, and what that does to questions.

Questions of every kind that either policy offers are asked of both, by what the service itself translates, prices and
names them with: so nothing of a price, a refusal or an id is stated here again. No engine is asked.
"""

# ruff: noqa: S608  (the SQL is for the service's own reader, of the policies' own names)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.audience_terms import AskedAs, Named
from dp_service.queries.audiences import seen_by
from dp_service.queries.columns import Column, Operator
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import Value
from dp_service.queries.sql import parse_sql
from dp_service.queries.tables import Policy, Table
from dp_service.releases.choosing import chosen
from dp_service.releases.keys import KEY_BYTES, NoiseKey
from dp_service.releases.kinds import UnusableParametersError, kind_of
from dp_service.releases.translation import FRESH_BYTES, IssueContext, plan_for
from dp_service.server.offered_functions import EXAMPLE_VALUES, literal, named, offered_functions
from dp_service.server.served_policy import PolicyContent
from dp_service.terms import Consistency
from gris_data.policy.changes import changes
from gris_data.policy.field_changes import Change, Effect

# Ids are compared with one another, and are equal under one key exactly if they are under any.
_ANY_KEY = NoiseKey(bytes(KEY_BYTES))
_COMPARED = {Operator.IN: "=", Operator.NOT_IN: "<>", Operator.RANGE: ">="}


@dataclass(frozen=True)
class Priced:
    """A question that a policy answers.

    Attributes:
        cost: The most that it costs.
        noise: The scale of the noise in its counts; 0: it shows none.
        query_id: Its public name.
        is_kept: Whether what it releases is given again.
    """

    cost: Cost
    noise: Fraction
    query_id: str
    is_kept: bool


@dataclass(frozen=True)
class Refused:
    """A question that a policy does not answer, and why."""

    reason: str


@dataclass(frozen=True)
class AskedOfBoth:
    """A question of two policies.

    Attributes:
        audience: Whose question it is; empty: neither policy states audiences.
        table: What it is about.
        sql: The question.
        old: What the old policy makes of it.
        new: What the new one makes of it.
    """

    audience: str
    table: str
    sql: str
    old: Priced | Refused
    new: Priced | Refused

    @property
    def effects(self) -> frozenset[Effect]:
        """What differs; empty: nothing does."""
        if isinstance(self.old, Refused) or isinstance(self.new, Refused):
            if type(self.old) is type(self.new):
                return frozenset()
            return frozenset({Effect.REFUSED if isinstance(self.new, Refused) else Effect.ANSWERABLE})
        old, new = ((each.cost.information, each.cost.calls) for each in (self.old, self.new))
        pairs = list(zip(old, new, strict=True))
        found = {
            Effect.DEARER: any(after > before for before, after in pairs),
            Effect.CHEAPER: any(after < before for before, after in pairs),
            Effect.PAID_AGAIN: self.old.is_kept and self.old.query_id != self.new.query_id,
        }
        return frozenset(effect for effect, is_so in found.items() if is_so)


@dataclass(frozen=True)
class PolicyDiff:
    """What differs between two policies.

    Attributes:
        old: The old policy.
        new: The new policy.
        changes: The keys that differ.
        questions: All questions that were asked of both.
    """

    old: Policy
    new: Policy
    changes: tuple[Change, ...]
    questions: tuple[AskedOfBoth, ...]

    @property
    def keeps_currency(self) -> bool:
        """Whether budgets go on."""
        return self.old.currency.unit_id == self.new.currency.unit_id

    @cached_property
    def changed_questions(self) -> tuple[AskedOfBoth, ...]:
        """The questions that are answered otherwise, or no longer, or now."""
        return tuple(each for each in self.questions if each.effects)

    @property
    def kept(self) -> tuple[AskedOfBoth, ...]:
        """The questions whose answers are kept under the old policy."""
        return tuple(each for each in self.questions if isinstance(each.old, Priced) and each.old.is_kept)

    @property
    def still_given(self) -> int:
        """How many of these the new policy gives as well."""
        return sum(each.effects.isdisjoint({Effect.PAID_AGAIN, Effect.REFUSED}) for each in self.kept)

    @cached_property
    def effects(self) -> frozenset[Effect]:
        """All that the differences mean; empty: the policies mean the same."""
        found = {each.effect for each in self.changes}
        found.update(*(each.effects for each in self.changed_questions))
        return frozenset(found if self.keeps_currency else {*found, Effect.CURRENCY})


def diff(old: Policy, new: Policy, *, now: int) -> PolicyDiff:
    """Return what differs between two policies.

    Args:
        old: The policy that is served.
        new: The one that is to be served instead.
        now: Seconds since 1970 (UTC); decides which periods are closed.
    """
    return PolicyDiff(old, new, changes(old, new), tuple(_asked_of_both(old, new, now)))


def _asked_of_both(old: Policy, new: Policy, now: int) -> Iterator[AskedOfBoth]:
    for audience in sorted({*old.audiences, *new.audiences}) or [""]:
        values = _values_given(audience, (old, new))
        views = [_view(each, audience, values) for each in (old, new)]
        for table, sql in dict.fromkeys(_questions(views, now)):
            before, after = (_asked(sql, view, now) for view in views)
            yield AskedOfBoth(audience, table, sql, before, after)


def _view(policy: Policy, audience: str, values: Mapping[str, str]) -> Policy | None:
    """Return what an audience sees of a policy; None: nothing."""
    if not policy.audiences:
        return policy
    if audience not in policy.audiences:
        return None
    given = tuple((name, values[name]) for name in sorted(policy.audiences[audience].names))
    return seen_by(policy, AskedAs(audience, given))


def _values_given(audience: str, policies: Sequence[Policy]) -> dict[str, str]:
    """Return an example of each value that is given with an audience, one that all columns have, if there is."""
    found: dict[str, list[Column]] = {}
    for policy in policies:
        offered = policy.audiences[audience].tables if audience in policy.audiences else {}
        for table, each in (offered or {}).items():
            for column, values in each.rows:
                for value in values:
                    if isinstance(value, Named):
                        found.setdefault(value.name, []).append(policy.table(table).column(column))
    return {name: str(_example(columns)) for name, columns in found.items()}


def _example(columns: Sequence[Column]) -> Value:
    """Return a value that all of these columns list, or else one that stands for any."""
    listed = [each.domain for each in columns if each.domain]
    common = [value for value in listed[0] if all(value in each for each in listed)] if listed else []
    return next(iter([*common, *(listed[0] if listed else ()), *EXAMPLE_VALUES[columns[0].type]]))


def _asked(sql: str, policy: Policy | None, now: int) -> Priced | Refused:
    if policy is None:
        return Refused("the policy knows no such audience")
    try:
        resolution = chosen(parse_sql(sql, policy), policy, now=now).resolution
        kind = kind_of(resolution.parameters)
        plan = plan_for(resolution, "", _ANY_KEY, IssueContext(now, bytes(FRESH_BYTES)))
    except (QuestionError, RefusedByPolicyError, UnusableParametersError) as error:
        return Refused(str(error).splitlines()[0])
    is_kept = resolution.parameters.consistency is Consistency.KEYED
    # Of sums and quantiles the noise is another one, for which keys are compared.
    noise = kind.noise_scale if "COUNT(" in sql else None
    return Priced(kind.mechanism.worst_case_cost(), noise or Fraction(0), plan.query_id, is_kept)


def _questions(views: Sequence[Policy | None], now: int) -> Iterator[tuple[str, str]]:
    """Yield tables and questions about them in SQL, of each kind that some view of a policy offers."""
    policies = [each for each in views if each is not None]
    year = datetime.fromtimestamp(now, UTC).year
    for name in sorted({table.name for each in policies for table in each.tables}):
        found = [(policy, table) for policy in policies for table in policy.tables if table.name == name]
        yield from ((name, sql) for sql in _of_table([table for _, table in found]))
        for policy, _ in found:
            functions = offered_functions(PolicyContent(policy, "", ""), name, year)
            yield from ((name, each.sql) for each in functions)


def _of_table(tables: Sequence[Table]) -> Iterator[str]:
    table = named(tables[0].name)
    counts = dict.fromkeys(each for one in tables for each in _counts(one))
    quantiles = dict.fromkeys(f"MEDIAN({named(each.name)})" for one in tables for each in one.quantiles)
    sums = dict.fromkeys(
        f"{function}({named(each.name)})"
        for one in tables
        for each in one.values
        for function in ("SUM", "AVG")
    )
    keys = list(
        dict.fromkeys(named(each.name) for one in tables for each in one.usable_columns if each.group_by)
    )
    first = next(iter(counts))
    for number in (*counts, *sums, *quantiles):
        yield f"SELECT {number} FROM {table}"
        ranked = "" if number in quantiles else " ORDER BY 2 DESC LIMIT 10"
        yield from (f"SELECT {key}, {number} FROM {table} GROUP BY {key}{ranked}" for key in keys)
    for key in keys:
        yield f"SELECT {key}, {first} FROM {table} GROUP BY {key} ORDER BY 2 DESC LIMIT 1000"
    for one, other in pairwise(keys):
        both = f"SELECT {one}, {other}, {first} FROM {table} GROUP BY"
        yield f"{both} {one}, {other} ORDER BY 3 DESC LIMIT 10"
        yield f"{both} GROUPING SETS (({one}, {other}), ({one}))"
    for condition in _conditions(tables):
        yield f"SELECT {first} FROM {table} WHERE {condition}"


def _counts(table: Table) -> Iterator[str]:
    """Yield what may be counted."""
    if table.measures.distinct_members:
        yield f"COUNT(DISTINCT {named(table.member)})"
    if table.measures.events is not None:
        yield "COUNT(*)"
    yield from (f"COUNT(DISTINCT {named(each)})" for each in table.measures.distinct)


def _conditions(tables: Sequence[Table]) -> Iterator[str]:
    """Yield a condition of each kind that some table permits on a column."""
    for name in sorted({each.name for table in tables for each in table.usable_columns}):
        pairs = [(table, each) for table in tables for each in table.usable_columns if each.name == name]
        value = literal(_example([column for _, column in pairs]))
        operators = {each for table, column in pairs for each in table.operators(column)}
        yield from (f"{named(name)} {_COMPARED[each]} {value}" for each in Operator if each in operators)
