"""What differs between two policies: what each change means, and that what means the same differs in nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import grpc
import pytest
import yaml
from gris_api.dp.v1 import dp_pb2, question_pb2
from pydantic import BaseModel, RootModel

from dp_service.queries.lookups import hash_of
from dp_service.queries.policy import parse_policy, read_policy
from dp_service.queries.tables import Policy
from gris_data.policy.changes import RULES, changes
from gris_data.policy.diff import AskedOfBoth, PolicyDiff, Priced, Refused, diff
from gris_data.policy.field_changes import Effect, Field, Place, below, nothing
from gris_serving.yaml_texts import read_text
from tests.support.dp_server import servicer_of, serving
from tests.support.publishing import domain_file, policy_of
from tests.support.queries.lookups import content

EXAMPLES = Path(__file__).parents[2] / "examples"
POLICY = """\
epsilon_per: 0.15
delta: 1e-11
count_noise: gaussian
blocks: {name: country, values: [DE, FR]}
tables:
  visits:
    member: m
    block: country
    data_version: first
    time: {column: day, type: date, refresh: day, delay_minutes: 60, buckets: [week, month], parts: [weekday]}
    measures: {distinct_members: true, events: {tau: 3, tau_is: clipped}, distinct: {page: 5}}
    contributions:
      bound: in_query
      delta_0: 8
      units: 20
      min_count: 2
      names: {delta_1: 4, share: 0.35, max_names: 75}
      sharpening: 40
      sums: {max_members: 1000000, max_rows: 10000000}
      totals: {one_value: [country]}
    columns:
      m: {type: string}
      page: {type: string, group_by: true, filter: [in, not_in]}
      country: {type: string, group_by: true, filter: [in], domain: [DE, FR, IT], attribute: true}
    values:
      amount: {type: int64, lower: 0, upper: 100}
    quantiles:
      age: {type: int64, member_value: largest, grid: {scale: linear, from: 0, to: 120, cells: 12}}
  people:
    member: m
    measures: {distinct_members: true, events: {tau: 10, tau_is: assumed}}
    columns:
      m: {type: string}
      cohort: {type: string, group_by: true, filter: [in], delta: 2}
      app: {type: string, group_by: true, domain: [a, b, c], delta: 3}
audiences:
  staff: {}
  germany: {tables: {visits: {columns: [page, country], where: {country: DE}}}}
  tenant: {tables: {people: {where: {cohort: $cohort}}}}
"""
# The same, with all that it leaves to defaults, in another order.
IN_OTHER_WORDS = """\
# A comment.
audiences:
  tenant: {tables: {people: {where: {cohort: [$cohort]}}}}
  staff: {}
  germany: {tables: {visits: {where: {country: [DE]}, columns: [country, page]}}}
max_k: 100
tables:
  people:
    columns:
      app: {delta: 3, type: string, group_by: true, domain: [c, b, a], nulls: drop, filter: []}
      cohort: {group_by: true, delta: 2, type: string, filter: [in], nulls: drop, null_value: 'null', attribute: false}
      m: {type: string, group_by: false}
    consistency: keyed
    reserve_first: false
    d_bar: 1000
    max_k: 100
    measures: {events: {tau_is: assumed, tau: 10}, distinct_members: true, distinct: {}}
    member: m
  visits:
    quantiles:
      age:
        type: int64
        quantum: 1
        member_value: largest
        row_lower: 0
        row_upper: 120
        nulls: drop
        grid: {scale: linear, from: 0.0, to: 120, cells: 12}
    values:
      amount: {type: int64, quantum: 1, lower: 0, upper: 1e2, row_lower: 0, row_upper: 100, weight: 1, nulls: drop}
    columns:
      country: {type: string, group_by: true, filter: [in], domain: [IT, DE, FR], attribute: true}
      page: {type: string, group_by: true, filter: [not_in, in]}
      day: {type: date, filter: [range]}
      m: {type: string}
    contributions:
      totals: {one_value: [country], share: 0.25}
      sums: {max_members: 1000000, max_rows: 10000000, share: 1/2}
      sharpening: 40
      least_units: 20
      most_units: 20
      shift: false
      names: {delta_1: 4, share: 7/20, max_names: 75}
      min_count: 2
      units: 20
      delta_0: 8
      bound: in_query
    measures: {distinct: {page: 5}, distinct_members: true, events: {tau: 3, tau_is: clipped}}
    time:
      {column: day, type: date, zone: UTC, refresh: day, delay_minutes: 60, buckets: [month, week], parts: [weekday]}
    data_version: first
    block: country
    member: m
blocks: {values: [FR, DE], name: country, moves: 0}
count_noise: gaussian
delta: 0.00000000001
epsilon_per: 0.150
"""
BASE = parse_policy(POLICY)
NOW = 1_600_000_000
WEAKER, STRONGER, REFUSED, ANSWERABLE = Effect.WEAKER, Effect.STRONGER, Effect.REFUSED, Effect.ANSWERABLE
OTHER, CURRENCY = Effect.OTHER, Effect.CURRENCY
BOUNDS = "tables.visits.contributions"
VISITS, PEOPLE = "tables.visits", "tables.people"
OF_QUESTIONS = frozenset({Effect.DEARER, Effect.CHEAPER, Effect.PAID_AGAIN})

# What is written in the old policy and in the new one, and each key that differs, with what that means to a reviewer
# of this change and to one of its opposite.
EDITS: list[tuple[str, str, dict[str, tuple[Effect, Effect]]]] = [
    ("epsilon_per: 0.15", "epsilon_per: 0.3", {"epsilon_per": (WEAKER, STRONGER)}),
    ("delta: 1e-11", "delta: 1e-10", {"delta": (WEAKER, STRONGER)}),
    ("values: [DE, FR]}", "values: [DE, FR], moves: 1}", {"blocks.moves": (WEAKER, WEAKER)}),
    ("values: [DE, FR]", "values: [DE, FR, IT]", {"blocks.values": (OTHER, OTHER)}),
    ("    member: m\n    block", "    member: device\n    block", {f"{VISITS}.member": (WEAKER, WEAKER)}),
    ("first", "second", {f"{VISITS}.data_version": (OTHER, OTHER)}),
    ("    block: country", "    block: country\n    purpose: hr", {f"{VISITS}.purpose": (STRONGER, WEAKER)}),
    ("delay_minutes: 60", "delay_minutes: 5", {f"{VISITS}.time.delay_minutes": (WEAKER, STRONGER)}),
    ("refresh: day", "refresh: week", {f"{VISITS}.time.refresh": (OTHER, OTHER)}),
    ("[week, month]", "[month]", {f"{VISITS}.time.buckets": (REFUSED, ANSWERABLE)}),
    (", parts: [weekday]", "", {f"{VISITS}.time.parts": (REFUSED, ANSWERABLE)}),
    ("tau: 3,", "tau: 30,", {f"{VISITS}.measures.events.tau": (OTHER, OTHER)}),
    ("tau: 10,", "tau: 5,", {f"{PEOPLE}.measures.events.tau": (WEAKER, STRONGER)}),
    (
        "tau: 10, tau_is: assumed",
        "tau: 10, tau_is: clipped",
        {
            f"{PEOPLE}.measures.events.tau": (STRONGER, WEAKER),
            f"{PEOPLE}.measures.events.tau_is": (STRONGER, WEAKER),
        },
    ),
    (", distinct: {page: 5}", "", {f"{VISITS}.measures.distinct.page": (REFUSED, ANSWERABLE)}),
    ("{page: 5}", "{page: 6}", {f"{VISITS}.measures.distinct.page": (OTHER, OTHER)}),
    ("delta_0: 8", "delta_0: 16", {f"{BOUNDS}.delta_0": (OTHER, OTHER)}),
    ("units: 20", "units: 30", {f"{BOUNDS}.units": (WEAKER, STRONGER)}),
    ("units: 20", "units: 20\n      most_units: 60", {f"{BOUNDS}.most_units": (WEAKER, STRONGER)}),
    ("min_count: 2", "min_count: 1", {f"{BOUNDS}.min_count": (WEAKER, STRONGER)}),
    ("max_names: 75", "max_names: 50", {f"{BOUNDS}.names.max_names": (OTHER, OTHER)}),
    ("      sharpening: 40\n", "", {f"{BOUNDS}.sharpening": (REFUSED, ANSWERABLE)}),
    ("sharpening: 40", "sharpening: 50", {f"{BOUNDS}.sharpening": (ANSWERABLE, REFUSED)}),
    ("max_rows: 10000000", "max_rows: 1000000", {f"{BOUNDS}.sums.max_rows": (WEAKER, STRONGER)}),
    ("{one_value: [country]}", "{}", {f"{BOUNDS}.totals.one_value": (STRONGER, WEAKER)}),
    (", filter: [in, not_in]}", ", filter: [in]}", {f"{VISITS}.columns.page.filter": (REFUSED, ANSWERABLE)}),
    (
        "page: {type: string, group_by: true,",
        "page: {type: string,",
        {f"{VISITS}.columns.page.group_by": (REFUSED, ANSWERABLE)},
    ),
    ("[DE, FR, IT]", "[DE, FR, IT, AT]", {f"{VISITS}.columns.country.domain": (ANSWERABLE, REFUSED)}),
    (", attribute: true", "", {f"{VISITS}.columns.country.attribute": (STRONGER, WEAKER)}),
    (
        "upper: 100",
        "upper: 200",
        {f"{VISITS}.values.amount.{key}": (OTHER, OTHER) for key in ("upper", "row_upper")},
    ),
    ("cells: 12", "cells: 24", {f"{VISITS}.quantiles.age.grid": (OTHER, OTHER)}),
    ("delta: 2", "delta: 1", {f"{PEOPLE}.columns.cohort.delta": (WEAKER, STRONGER)}),
    (", delta: 2", "", {f"{PEOPLE}.columns.cohort.delta": (STRONGER, WEAKER)}),
    # As many as the domain has: nothing is promised.
    (", delta: 3", "", {f"{PEOPLE}.columns.app.delta": (OTHER, OTHER)}),
    (
        "  people:\n    member: m",
        "  people:\n    member: m\n    consistency: fresh",
        {f"{PEOPLE}.consistency": (WEAKER, STRONGER)},
    ),
    (
        "  people:\n    member: m",
        "  people:\n    member: m\n    max_k: 50",
        {f"{PEOPLE}.max_k": (OTHER, OTHER)},
    ),
    (
        "  people:\n    member: m",
        "  people:\n    member: m\n    d_bar: 50",
        {f"{PEOPLE}.d_bar": (OTHER, OTHER)},
    ),
    (
        "      cohort: {type",
        "      year: {type: int64, group_by: true, delta: 1}\n      cohort: {type",
        {f"{PEOPLE}.columns.year": (ANSWERABLE, REFUSED), f"{PEOPLE}.columns.year.delta": (WEAKER, STRONGER)},
    ),
    ("staff: {}\n", "staff: {}\n  guests: {}\n", {"audiences.guests": (ANSWERABLE, REFUSED)}),
    (
        "columns: [page, country]",
        "columns: [country]",
        {"audiences.germany.tables.visits.columns": (STRONGER, WEAKER)},
    ),
    ("columns: [page, country], ", "", {"audiences.germany.tables.visits.columns": (WEAKER, STRONGER)}),
    (
        "{country: DE}",
        "{country: [DE, FR]}",
        {"audiences.germany.tables.visits.where.country": (WEAKER, STRONGER)},
    ),
    (", where: {country: DE}", "", {"audiences.germany.tables.visits.where.country": (WEAKER, STRONGER)}),
    (
        "{cohort: $cohort}",
        "{cohort: $other}",
        {"audiences.tenant.tables.people.where.cohort": (WEAKER, WEAKER)},
    ),
    ("staff: {}", "staff: {tables: {people: {}}}", {"audiences.staff.tables": (STRONGER, WEAKER)}),
    (
        "tenant: {tables: {people:",
        "tenant: {tables: {visits: {}, people:",
        {"audiences.tenant.tables.visits": (WEAKER, STRONGER)},
    ),
]


def edited(old: str, new: str) -> Policy:
    """Return the policy with a text of it replaced, which is there once."""
    assert POLICY.count(old) >= 1
    return parse_policy(POLICY.replace(old, new, 1))


def keys(old: Policy, new: Policy) -> list[tuple[str, Effect]]:
    """Return each key that differs, with what that means."""
    return [(each.key, each.effect) for each in changes(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"), EDITS, ids=[f"{old[:24]} / {new[:24]}" for old, new, _ in EDITS]
)
def test_a_change_means_less_or_more(old: str, new: str, expected: dict[str, tuple[Effect, Effect]]) -> None:
    """Each key with what it means, and its opposite the other way round."""
    other = edited(old, new)
    one_way = set(keys(BASE, other))
    back = set(keys(other, BASE))
    ways = {(key, effect, other_effect) for key, (effect, other_effect) in expected.items()}
    if "where" not in "".join(expected):
        assert {(key, effect) for key, effect, _ in ways} == one_way
        assert {(key, effect) for key, _, effect in ways} == back
    else:
        # Of values, some are gone and others there instead.
        assert {(key, effect) for key, effect, _ in ways} <= one_way
        assert {(key, effect) for key, _, effect in ways} <= back


def test_what_means_the_same_differs_in_nothing() -> None:
    """Another order, defaults that are written out, comments, other spellings of numbers."""
    found = diff(BASE, parse_policy(IN_OTHER_WORDS), now=NOW)
    assert found.changes == ()
    assert found.changed_questions == ()
    assert found.effects == frozenset()
    assert len(found.questions) > 50
    assert found.still_given == len(found.kept) > 50


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("policy.yaml")), ids=lambda each: each.parent.name)
def test_another_order_of_all_keys_of_an_example_differs_in_nothing(file: Path) -> None:
    """Of every example."""
    tree = read_text(file.read_text(), decimals=str, most_key_characters=128).content
    turned = yaml.safe_dump(_turned(tree), sort_keys=False)
    found = diff(
        read_policy(file.read_bytes(), str(file)).policy,
        read_policy(turned.encode(), str(file)).policy,
        now=NOW,
    )
    assert found.effects == frozenset()
    assert any(isinstance(each.old, Priced) for each in found.questions)


def _turned(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _turned(tree[key]) for key in reversed(tree)}
    return [_turned(each) for each in tree] if isinstance(tree, list) else tree


def test_every_field_of_a_policy_has_a_rule() -> None:
    """A new key of a policy needs one that says what less or more of it means; until then it counts as weaker."""
    found = dict(_reached(Policy))
    assert found.keys() == RULES.keys()
    for kind, names in found.items():
        assert names == set(RULES[kind]), kind


def _reached(kind: type) -> Iterator[tuple[type, set[str]]]:
    """Yield each class whose fields are compared, with their names, from one class on."""
    waiting, seen = [kind], set()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        names = _fields(each)
        yield each, set(names)
        rules = RULES.get(each, {})
        compared = [hint for name, hint in names.items() if name not in rules or _goes_below(rules[name])]
        waiting += [one for hint in compared for one in _classes(hint)]


def _goes_below(field: Any) -> bool:
    return field.rule is not nothing and field.meaning is None


def _fields(kind: type) -> dict[str, Any]:
    if issubclass(kind, BaseModel):
        return {name: each.annotation for name, each in kind.model_fields.items()}
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}  # type: ignore[arg-type]


def _classes(hint: Any) -> Iterator[type]:
    """Yield the classes with fields that a type is made of."""
    if get_origin(hint) is not None or get_args(hint):
        yield from (one for each in get_args(hint) for one in _classes(each))
        return
    # A list with a name of its own is compared as its rule says.
    if not isinstance(hint, type) or issubclass(hint, RootModel):
        return
    if dataclasses.is_dataclass(hint) or issubclass(hint, BaseModel):
        yield hint


def test_a_field_without_a_rule_counts_as_weaker() -> None:
    """A key that this version of the comparison does not know must not pass a review unseen."""

    @dataclasses.dataclass(frozen=True)
    class Block:
        known: int
        unheard_of: int

    rules: dict[type, dict[str, Field]] = {Block: {"known": Field(nothing)}}
    (found,) = below(Block(1, 1), Block(2, 2), Place(rules, ("block",)))
    assert ("block.unheard_of", WEAKER, "1", "2") == (found.key, found.effect, found.old, found.new)


def test_audiences_that_begin_or_end() -> None:
    """Where there were none everybody was offered everything; where there are none, everybody is."""
    without = parse_policy(POLICY.partition("audiences:")[0])
    assert {("audiences", STRONGER), ("audiences", REFUSED)} == {
        (each.key, each.effect) for each in changes(without, BASE)
    }
    assert [("audiences", WEAKER)] == keys(BASE, without)


def test_a_new_table_is_told_with_its_promises_alone() -> None:
    """What it offers is one change; what it promises of the data, and nothing checks, is one each."""
    without = parse_policy(POLICY.partition("  people:")[0])
    found = {
        (each.key, each.effect) for each in changes(without, parse_policy(POLICY.partition("audiences:")[0]))
    }
    assert found == {
        ("tables.people", ANSWERABLE),
        ("tables.people.measures.events.tau", WEAKER),
        ("tables.people.measures.events.tau_is", WEAKER),
        ("tables.people.columns.cohort.delta", WEAKER),
    }


def test_a_published_domain_is_paid_for_by_everybody(tmp_path: Path) -> None:
    """One that begins, and one that takes the place of another, promise less."""
    policies = [
        read_policy(
            policy_of(tmp_path, domain_file("page", rho, "1e-9", refresh=refresh)).read_bytes(),
            str(tmp_path / "policy.yaml"),
        ).policy
        for rho, refresh in (("0.1", 1), ("0.1", 2))
    ]
    key = "tables.t.columns.page.publication"
    assert [(key, WEAKER)] == keys(*policies)
    assert "rho 0.1, delta 1e-09" in changes(*policies)[0].old


def test_another_file_of_a_lookup_is_another_promise(tmp_path: Path) -> None:
    """The file has to be public: its texts are in answers."""
    policies = []
    for topics_of in (("sport", "news"), ("news", "sport")):
        file = content("page", list(zip(("p1", "p2"), topics_of, strict=True)))
        (tmp_path / "topics.csv").write_bytes(file)
        topics = (
            f"topic: {{type: string, lookup: {{column: page, file: topics.csv, hash: '{hash_of(file)}'}}}}"
        )
        text = POLICY.replace("    values:\n", f"      {topics}\n    values:\n")
        policies.append(read_policy(text.encode(), str(tmp_path / "policy.yaml")).policy)
    assert [("tables.visits.columns.topic.lookup", WEAKER)] == keys(*policies)


def test_a_bound_that_is_assumed_is_a_promise() -> None:
    """No query sees to it: fewer elements promise members less, and a bound by the query promises more."""
    text = (
        "epsilon_per: 1\ndelta: 1e-9\ncount_noise: gaussian\ntables:\n"
        "  people:\n    member: m\n    measures: {distinct_members: true}\n    columns:\n"
        "      app: {type: string, group_by: true}\n"
    )
    bound = "    contributions: {{bound: {}, delta_0: {}, units: 5}}\n"
    unbounded, by_query, assumed, narrower = (
        parse_policy(text + each)
        for each in ("", bound.format("in_query", 8), bound.format("assumed", 8), bound.format("assumed", 4))
    )
    key = "tables.people.contributions"
    assert [(f"{key}.bound", WEAKER), (f"{key}.delta_0", WEAKER)] == keys(by_query, assumed)
    assert [(f"{key}.bound", STRONGER), (f"{key}.delta_0", STRONGER)] == keys(assumed, by_query)
    assert [(f"{key}.delta_0", WEAKER)] == keys(assumed, narrower)
    assert [(key, OTHER)] == keys(unbounded, by_query)
    assert [(key, OTHER), (f"{key}.bound", WEAKER), (f"{key}.delta_0", WEAKER)] == keys(unbounded, assumed)
    assert [(key, WEAKER)] == keys(by_query, unbounded)


def asked(found: PolicyDiff, sql: str, audience: str = "staff") -> AskedOfBoth:
    """Return one of the questions."""
    return next(each for each in found.questions if (each.audience, each.sql) == (audience, sql))


TOP = "SELECT {0}, COUNT(DISTINCT m) FROM {1} GROUP BY {0} ORDER BY 2 DESC LIMIT 10"


def test_questions_have_both_prices() -> None:
    """And noise; a kept answer of another price is not given."""
    found = diff(BASE, edited("units: 20", "units: 30"), now=NOW)
    question = asked(found, TOP.format("page", "visits"))
    assert isinstance(question.old, Priced)
    assert isinstance(question.new, Priced)
    assert (20, 30) == (question.old.cost.information, question.new.cost.information)
    assert question.old.noise > question.new.noise > 0
    assert {Effect.DEARER, Effect.PAID_AGAIN} == question.effects
    assert asked(found, TOP.format("cohort", "people")).effects == frozenset()


def test_questions_that_become_refused_say_why() -> None:
    """In the words in which they will be."""
    found = diff(BASE, edited("page: {type: string, group_by: true,", "page: {type: string,"), now=NOW)
    question = asked(found, TOP.format("page", "visits"))
    assert isinstance(question.new, Refused)
    assert "does not allow grouping by this column" in question.new.reason
    assert {REFUSED} == question.effects
    back = diff(edited("page: {type: string, group_by: true,", "page: {type: string,"), BASE, now=NOW)
    assert {ANSWERABLE} == asked(back, TOP.format("page", "visits")).effects


def test_questions_are_those_of_each_audience() -> None:
    """Of another row its answers are others; of the others' nothing changes."""
    found = diff(BASE, edited("{country: DE}", "{country: [DE, FR]}"), now=NOW)
    assert {"germany"} == {each.audience for each in found.changed_questions}
    assert Effect.PAID_AGAIN in asked(found, TOP.format("page", "visits"), "germany").effects


def test_nothing_is_kept_of_a_table_that_is_answered_anew() -> None:
    """So nothing of it stops being given."""
    fresh = edited("  people:\n    member: m", "  people:\n    member: m\n    consistency: fresh")
    back = diff(fresh, BASE, now=NOW)
    assert not any(Effect.PAID_AGAIN in each.effects for each in back.questions)
    assert Effect.PAID_AGAIN in diff(BASE, fresh, now=NOW).effects


@pytest.mark.parametrize(
    ("old", "new"), [("epsilon_per: 0.15", "epsilon_per: 0.3"), ("[DE, FR]}", "[DE, FR, IT]}")]
)
def test_another_currency_is_an_effect(old: str, new: str) -> None:
    """As of another epsilon_per, or other blocks."""
    found = diff(BASE, edited(old, new), now=NOW)
    assert not found.keeps_currency
    assert CURRENCY in found.effects


async def test_prices_and_names_are_those_that_the_service_gives() -> None:
    """Of every question, under the old policy and the new one: price, refusal, and whether the id stays."""
    texts = [POLICY.partition("audiences:")[0]]
    texts.append(
        texts[0]
        .replace("delta: 2", "delta: 1")
        .replace("delta_0: 8", "delta_0: 4")
        .replace("[in, not_in]", "[in]")
    )
    found = diff(*map(parse_policy, texts), now=1_000_000)
    names: list[list[str | None]] = []
    for text, side in zip(texts, ("old", "new"), strict=True):
        async with serving(servicer_of(text)) as dp:
            names.append([await _name(dp, each.sql, getattr(each, side)) for each in found.questions])
    differing = {
        each.sql for each, old, new in zip(found.questions, *names, strict=True) if old and new and old != new
    }
    assert differing == {each.sql for each in found.questions if Effect.PAID_AGAIN in each.effects}
    assert 10 < len(differing) < len(found.questions) - 10


async def _name(dp: Any, sql: str, expected: Priced | Refused) -> str | None:
    """Return the id that a service gives a question, and check its price; None: it is refused, as is expected."""
    question = question_pb2.Question(sql=sql)
    request = dp_pb2.TranslateQueryRequest(question=question, data_version="v1")
    if isinstance(expected, Refused):
        with pytest.raises(grpc.RpcError):
            await dp.TranslateQuery(request)
        return None
    answer = await dp.TranslateQuery(request)
    cost = answer.worst_case_cost
    assert (expected.cost.information, expected.cost.calls) == (cost.information, cost.calls)
    return str(answer.query_id)
