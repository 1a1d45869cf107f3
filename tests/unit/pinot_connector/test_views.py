"""Views have every field of their messages, refuse what this version does not know, and are written back as they were.

Classes and messages are compared by reflection, so a field that is new in a message is missed here until the class has
it, or it is listed with a reason.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_connector.budgets import Level, Share, level_of
from pinot_connector.catalog import Catalog
from pinot_connector.coverage import AtLeast
from pinot_connector.engines import base
from pinot_connector.errors import IntegrityError, Shortfall
from pinot_connector.guarantees import AccountGuarantee, Guarantee
from pinot_connector.parameters import Bounded, Gumbel, Laplace, OneLook, Parameters, Quantiles
from pinot_connector.results import Accuracy, RenderedQuery
from pinot_connector.value_parameters import QuantileColumn
from pinot_connector.views import meanings, message_of, view
from tests.support.examples import examples
from tests.support.filled_messages import filled

# A class, and the descriptor of its message.
Pair: TypeAlias = tuple[type[Any], Any]

ROOTS: list[Pair] = [
    (Parameters, dp_pb2.MechanismParameters.DESCRIPTOR),
    (Catalog, dp_pb2.GetCatalogResponse.DESCRIPTOR),
    (Level, budget_pb2.Level.DESCRIPTOR),
    (Share, app_pb2.BudgetShare.DESCRIPTOR),
    (Shortfall, budget_pb2.Shortfall.DESCRIPTOR),
    (AccountGuarantee, app_pb2.GetGuaranteeResponse.DESCRIPTOR),
    (Guarantee, dp_pb2.BudgetWorth.DESCRIPTOR),
    (base.BoundedCopy, dp_pb2.BoundedCopy.DESCRIPTOR),
    (base.ClosedStream, dp_pb2.ClosedStream.DESCRIPTOR),
    (base.ReadColumn, dp_pb2.ReadColumn.DESCRIPTOR),
    (base.ReadValue, dp_pb2.ReadValue.DESCRIPTOR),
    (base.ExpectedColumn, histogram_pb2.Column.DESCRIPTOR),
    (Accuracy, dp_pb2.ExpectedAccuracy.DESCRIPTOR),
    (RenderedQuery, dp_pb2.EngineQuery.DESCRIPTOR),
]
_IN_GUARANTEE = "goes into a guarantee, and is read where that is made"
_IN_NUMBERS = "is in `numbers`"
NOT_SHOWN = {
    "CatalogColumn.domain_size": "says when a domain is whole",
    "GetCatalogResponse.audience": "is what was asked as",
    "GetCatalogResponse.next_page_token": "for the next page",
    "Level.worst_case": _IN_GUARANTEE,
    "Level.policy_statements": _IN_GUARANTEE,
    "Level.previous_currency": _IN_GUARANTEE,
    "Level.largest_limit": _IN_GUARANTEE,
    "EngineQuery.requires": "what it needs of an engine; it is only to be read",
    "ReadColumn.smallest": _IN_NUMBERS,
    "ReadColumn.largest": _IN_NUMBERS,
}
NOT_SENT = {
    "ShownQuantile.column": "the name of the column of the quantiles",
    "ShownQuantile.of": "of which values of a member the quantiles are",
    "ReadColumn.numbers": "the smallest and the largest",
}
# What is read in a way of its own, and what has such a part: nothing of this package sends these.
ONLY_READ = {
    "Catalog",
    "ColumnEntry",
    "Bounded",
    "Parameters",
    "QuantileColumn",
    "Quantiles",
    "ReadColumn",
    "ShownNumber",
    "ShownQuantile",
    "Sums",
    "TableEntry",
}


def kinds_in(hint: Any) -> tuple[Any, ...]:
    """Returns the types of which a field's values can be, of a tuple those of its items."""
    return tuple(kind for each in get_args(hint) for kind in kinds_in(each)) if get_args(hint) else (hint,)


def held(kind: type[Any], message: Any) -> dict[str, tuple[Any, Any]]:
    """Returns the types of a class's fields, and those of the message, by the names that the message has for them."""
    hints = get_type_hints(kind)
    named = {each.metadata.get("called", each.name): hints[each.name] for each in fields(kind) if each.init}
    found = {}
    for name, hint in named.items():
        if name not in message.oneofs_by_name:
            found[name] = hint, message.fields_by_name.get(name)
            continue
        # A choice: the view of each is called as its message.
        called = {each.__name__: each for each in kinds_in(hint)}
        for field in message.oneofs_by_name[name].fields:
            found[field.name] = called[field.message_type.name], field
    return found


def pairs() -> Iterator[Pair]:
    """Yields every class of views with its message, also those within others."""
    found: list[Pair] = list(ROOTS)
    for kind, message in found:
        for hint, field in held(kind, message).values():
            part = None if field is None else field.message_type
            nested = [each for each in kinds_in(hint) if is_dataclass(each)]
            if part is not None and nested and (nested[0], part) not in found:
                found.append((nested[0], part))  # type: ignore[arg-type]  # a class, by its hint
    yield from found


def named(found: Iterable[Pair]) -> list[Any]:
    """Returns classes and their messages as parameters of tests."""
    return [pytest.param(*pair, id=f"{pair[0].__name__}-{pair[1].name}") for pair in found]


PAIRS = named(pairs())
WRITTEN = named(pair for pair in pairs() if pair[0].__name__ not in ONLY_READ)
UNWRITTEN = named(pair for pair in pairs() if pair[0].__name__ in ONLY_READ)


@pytest.mark.parametrize(("kind", "message"), PAIRS)
def test_a_view_has_every_field_of_its_message(kind: type[Any], message: Any) -> None:
    """Under the same name, as a field or a property; what is not there is listed with a reason, and nothing else is."""
    sent = {each.name for each in message.fields}
    shown = set(held(kind, message))
    shown |= {name for name, value in vars(kind).items() if isinstance(value, property)}
    listed = {name.partition(".")[2] for name in NOT_SHOWN if name.startswith(f"{message.name}.")}
    assert sent - shown == listed


@pytest.mark.parametrize(("kind", "message"), PAIRS)
def test_a_message_has_every_field_of_its_view(kind: type[Any], message: Any) -> None:
    """A field that is left in a class when its message has it no more is found."""
    listed = {name.partition(".")[2] for name in NOT_SENT if name.startswith(f"{kind.__name__}.")}
    assert set(held(kind, message)) - {each.name for each in message.fields} == listed


def enums() -> dict[str, tuple[type[Enum], Any]]:
    """Returns every enum that a view has, with that of the messages."""
    return {
        kind.__name__: (kind, field.enum_type)
        for view_kind, message in pairs()
        for hint, field in held(view_kind, message).values()
        for kind in kinds_in(hint)
        if isinstance(kind, type) and issubclass(kind, Enum)
        if field is not None and field.enum_type is not None
    }


@pytest.mark.parametrize("name", enums())
def test_every_value_of_an_enum_has_a_meaning(name: str) -> None:
    """A value that is new in a message has a member, so that no answer is refused for it."""
    kind, described = enums()[name]
    assert set(meanings(kind, described)) == {each.number for each in described.values} - {0}


def of_another_kind(value: object, hint: Any) -> Iterator[object]:
    """Yields what is not of the type that is stated, of a value and each value in it."""
    if isinstance(value, tuple):
        for each in value:
            yield from of_another_kind(each, hint)
        return
    if type(value) not in kinds_in(hint):
        yield value
    if is_dataclass(value):
        hints = get_type_hints(type(value))
        for field in fields(value):
            if get_origin(hints[field.name]) is not Mapping:
                yield from of_another_kind(getattr(value, field.name), hints[field.name])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Parameters, dp_pb2.MechanismParameters()),
        (Catalog, dp_pb2.GetCatalogResponse()),
        (Level, budget_pb2.Level()),
        (Guarantee, dp_pb2.BudgetWorth()),
    ],
    ids=["parameters", "catalogue", "level", "guarantee"],
)
def test_every_value_of_a_view_is_of_its_type(kind: type[Any], message: Message) -> None:
    """All the way down, so no message is handed out, and no list that could be changed."""
    filled(message)
    assert list(of_another_kind(view(kind, message), kind)) == []


def stated(**changes: Any) -> dp_pb2.MechanismParameters:
    """Returns parameters with all that they need."""
    message = dp_pb2.MechanismParameters(
        mechanism=dp_pb2.MECHANISM_BOUND_GAUSS,
        epsilon_per="1/10",
        consistency=dp_pb2.CONSISTENCY_KEYED,
        bounded=dp_pb2.Bounded(
            contributions=dp_pb2.Contributions(bounded_by=dp_pb2.BOUNDED_BY_IN_QUERY),
            noise_variance="3/2",
            one_look=dp_pb2.OneLook(),
        ),
        two_sided=dp_pb2.TwoSided(),
    )
    message.MergeFrom(dp_pb2.MechanismParameters(**changes))
    return message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"mechanism": 99}, "mechanism"),
        ({"bounded": {"contributions": {"bounded_by": 99}}}, "kind: contributions: bounded_by"),
        ({"epsilon_per": "1/0"}, "epsilon_per"),
        ({"bounded": {"noise_variance": "much"}}, "kind: noise_variance"),
        (
            {"bounded": {"sums": {"share": "1", "aggregates": [{"title": "a"}]}}},
            "kind: sums: aggregates: quantum",
        ),
    ],
)
def test_what_this_version_does_not_know_is_refused(changes: dict[str, Any], field: str) -> None:
    """A value of an enum that is new or left out, and a text that is no number; the error names the field."""
    assert view(Parameters, stated()).epsilon_per == Fraction(1, 10)
    with pytest.raises(IntegrityError, match=f"^(.*: )?{field}: "):
        view(Parameters, stated(**changes))


def test_a_level_with_a_field_of_a_later_version_is_read() -> None:
    """It is read after a charge, and says of a budget no less than before."""
    level = budget_pb2.Level(path=["a"], mode=budget_pb2.MODE_TRACK)
    before = level_of(level)
    level.MergeFromString(b"\xf8\x7f\x01")
    assert level_of(level) == before


def test_what_is_unset_is_none_and_what_is_0_is_not() -> None:
    """Where a field has presence; where it has none, 0 and an empty text say that there is nothing."""
    message = dp_pb2.OneLook()
    unset = view(OneLook, message)
    assert (unset.min_count, unset.threshold) == (None, None)
    message.threshold, message.min_count = "0", 0
    zero = view(OneLook, message)
    assert (zero.threshold, zero.min_count) == (Fraction(0), None)


def test_of_a_choice_exactly_one_is_read() -> None:
    """Its view is called as its message. None at all, or one of a later version, is refused."""
    message = stated()
    kinds = [("laplace", Laplace), ("gumbel", Gumbel), ("bounded", Bounded), ("quantiles", Quantiles)]
    for name, kind in kinds:
        # The first of a choice is set, and every list has one entry.
        message.ClearField("kind" if message.WhichOneof("kind") is None else message.WhichOneof("kind"))
        filled(getattr(message, name))
        assert type(view(Parameters, message).kind) is kind
    message.ClearField("quantiles")
    with pytest.raises(IntegrityError, match=r"^kind: "):
        view(Parameters, message)


def test_the_ends_of_a_grid_are_days_where_its_scale_says_so() -> None:
    """A day is no number on another grid, nor a number a day on one of dates."""
    message = stated()
    filled(message.quantiles)  # Which takes the place of what was given.
    column = message.quantiles.column
    column.scale, column.lower, column.upper = dp_pb2.GRID_SCALE_DATES, "2020-02-29", "2020-03-01"
    read = view(QuantileColumn, column)
    assert (read.lower, read.upper) == (datetime.date(2020, 2, 29), datetime.date(2020, 3, 1))
    column.scale = dp_pb2.GRID_SCALE_LINEAR
    with pytest.raises(IntegrityError, match="kind: column: lower: "):
        view(Parameters, message)


_WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
}
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    float: st.floats(0, 1e300),
    str: st.text(),
    Fraction: st.fractions(),
    datetime.datetime: st.datetimes(timezones=st.just(datetime.UTC)),
}


def values_of(hint: Any, field: Any) -> st.SearchStrategy[Any]:
    """Returns values of a field's type; none that a message without presence holds as it holds None."""
    kinds = kinds_in(hint)
    if get_origin(hint) is tuple:
        return st.lists(values_of(kinds[0], field), max_size=3).map(tuple)
    if is_dataclass(kinds[0]):
        one = views_of(kinds[0], field.message_type)  # type: ignore[arg-type]  # a class, by its hint
    elif issubclass(kinds[0], Enum):
        one = st.sampled_from(kinds[0])
    else:
        one = _WHOLE[field.cpp_type] if kinds[0] is int else _SIMPLE[kinds[0]]
    if type(None) not in kinds:
        return one
    return st.none() | (one if field.has_presence else one.filter(bool))


def views_of(kind: type[Any], message: Any) -> st.SearchStrategy[Any]:
    """Returns views of a message."""
    if kind is AtLeast:
        return st.builds(kind, st.none() | st.sampled_from([Fraction(1, 2), Fraction(1, 16)]))
    names = {each.metadata.get("called", each.name): each.name for each in fields(kind)}
    return st.builds(kind, **{names[name]: values_of(*each) for name, each in held(kind, message).items()})


@pytest.mark.parametrize(("kind", "message"), WRITTEN)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_what_is_written_is_read_as_it_was(kind: type[Any], message: Any, data: st.DataObject) -> None:
    """Of every class, unless something of it is only read."""
    shown = data.draw(views_of(kind, message))
    assert view(kind, message_of(GetMessageClass(message), shown)) == shown


@pytest.mark.parametrize(("kind", "message"), UNWRITTEN)
def test_what_is_only_read_is_never_written(kind: type[Any], message: Any) -> None:
    """It is refused whatever it holds, and before anything of it is written."""
    with pytest.raises(TypeError, match="nothing says how a message holds it"):
        message_of(GetMessageClass(message), object.__new__(kind))
