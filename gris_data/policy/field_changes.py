"""What differs between two values, field by field and by reflection, and what each difference means.

Rules say what a change of a field means (`Field`). A field without a rule is compared as well, and counts as a weaker
promise. What is compared is what a field means, where that is not what it holds.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, StrEnum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel

STATED = "stated"
"""What is shown of a block of keys."""
_MOST_SHOWN = 8


class Effect(StrEnum):
    """What a change means.

    WEAKER and STRONGER: less or more is promised to members, or to those whose rows an audience is not offered. REFUSED
    and ANSWERABLE: less or more may be asked. DEARER, CHEAPER and PAID_AGAIN: the same question has another price, or
    is another question, for which nothing that was kept is given. CURRENCY: budgets count other units. OTHER: none of
    these by itself; if prices or answers change, questions show it.
    """

    WEAKER = "weaker"
    STRONGER = "stronger"
    REFUSED = "refused"
    ANSWERABLE = "answerable"
    DEARER = "dearer"
    CHEAPER = "cheaper"
    PAID_AGAIN = "paid_again"
    CURRENCY = "currency"
    OTHER = "other"


@dataclasses.dataclass(frozen=True)
class Change:
    """What differs at one key.

    Attributes:
        key: The path of the key.
        effect: What that means.
        old: What the old value says; of a set what is gone, empty: nothing is.
        new: What the new value says; of a set what is new, empty: nothing is.
        why: What the key is about, where its name does not say it; empty: it does.
    """

    key: str
    effect: Effect
    old: str
    new: str
    why: str


class Place(NamedTuple):
    """Where a rule is applied.

    Attributes:
        rules: Those of every class, by the names of its fields.
        path: The keys that lead there.
        why: What the key is about.
        within: The two values that fields below are of, for what they mean.
    """

    rules: Mapping[type, Mapping[str, Field]]
    path: tuple[str, ...] = ()
    why: str = ""
    within: tuple[Any, Any] = (None, None)

    def change(self, effect: Effect, old: object, new: object) -> Change:
        """Return a change of this key."""
        return Change(".".join(self.path), effect, shown(old), shown(new), self.why)


Rule: TypeAlias = Callable[[Any, Any, Place], Iterator[Change]]
"""Yields what differs between two values; None: there is none."""
Meaning: TypeAlias = Callable[[Any, Any], Any]
"""Returns what a field means, of its owner and the value that this is within."""


class Field(NamedTuple):
    """How a field is compared.

    Attributes:
        rule: Says what a change means.
        why: What the field is about, where its name does not say it.
        meaning: What is compared; None: what the field holds.
        keys: The keys of the field; None: the one that has its name, or its alias.
    """

    rule: Rule
    why: str = ""
    meaning: Meaning | None = None
    keys: tuple[str, ...] | None = None


def below(old: Any, new: Any, place: Place) -> Iterator[Change]:
    """Compare all fields of two values of one class, or of a class whose fields one of them has alone."""
    kind = type(new if old is None else old)
    rules = place.rules.get(kind, {})
    for name, key in _keys(kind):
        field = rules.get(name, _UNKNOWN)
        before, after = (
            None
            if owner is None
            else getattr(owner, name)
            if field.meaning is None
            else field.meaning(owner, within)
            for owner, within in zip((old, new), place.within, strict=True)
        )
        path = (*place.path, *((key,) if field.keys is None else field.keys))
        yield from field.rule(before, after, place._replace(path=path, why=field.why))


def _keys(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class, each with its key in a policy."""
    if issubclass(kind, BaseModel):
        yield from ((name, each.alias or name) for name, each in kind.model_fields.items())
    elif dataclasses.is_dataclass(kind):
        yield from ((each.name, each.name) for each in dataclasses.fields(kind))


def optional(added: Effect, removed: Effect, rule: Rule = below) -> Rule:
    """Return the rule of a value that may be missing.

    Of one that is added, only what is promised with it is said besides; of one that is gone, which promises are.
    """

    def compare(old: Any, new: Any, place: Place) -> Iterator[Change]:
        found = () if old is new is None else rule(old, new, place)
        if (old is None) is (new is None):
            yield from found
            return
        effect, besides = (added, Effect.WEAKER) if old is None else (removed, Effect.STRONGER)
        one = place.change(effect, *(None if each is None else STATED for each in (old, new)))
        yield one
        yield from (each for each in found if each.effect is besides and each.key != one.key)

    return compare


def by_name(added: Effect, removed: Effect, rule: Rule = below) -> Rule:
    """Return the rule of values that have names; None: there are none."""

    def compare(old: Any, new: Any, place: Place) -> Iterator[Change]:
        before, after = (
            each if isinstance(each, Mapping) else {one.name: one for one in each or ()}
            for each in (old, new)
        )
        for name in sorted({*before, *after}):
            at = place._replace(path=(*place.path, name))
            yield from optional(added, removed, rule)(before.get(name), after.get(name), at)

    return compare


def whole(judge: Callable[[Any, Any], Effect]) -> Rule:
    """Return the rule of a value that is compared as a whole."""

    def compare(old: Any, new: Any, place: Place) -> Iterator[Change]:
        if old != new:
            yield place.change(judge(old, new), old, new)

    return compare


def members(added: Effect, removed: Effect, *, to_all: Effect, to_some: Effect) -> Rule:
    """Return the rule of a set of values; None: all that there are."""

    def compare(old: Any, new: Any, place: Place) -> Iterator[Change]:
        if old is None or new is None:
            if old is not new:
                ends = ("all" if each is None else sorted(each, key=str) for each in (old, new))
                yield place.change(to_all if new is None else to_some, *ends)
            return
        if gone := sorted({*old} - {*new}, key=str):
            yield place.change(removed, gone, "")
        if more := sorted({*new} - {*old}, key=str):
            yield place.change(added, "", more)

    return compare


def nothing(old: Any, new: Any, place: Place) -> Iterator[Change]:
    """Compare nothing: the field follows from others, or is the name by which two values are found."""
    yield from ()


def promise(old: Any, new: Any, place: Place) -> Iterator[Change]:
    """Compare what is promised of the data and checked by nothing; nothing is: None, or what is empty."""
    yield from whole(promised)(old or None, new or None, place)


def promised(old: Any, new: Any) -> Effect:
    """Return what a change of a promise means.

    The smaller the number that a member may have, the less members are promised: beyond it the guarantee fails.
    """
    if new is None:
        return Effect.STRONGER
    is_wider = isinstance(old, int) and isinstance(new, int) and old < new
    return Effect.STRONGER if is_wider else Effect.WEAKER


@dataclasses.dataclass(frozen=True)
class Said:
    """A value, and what is shown of it."""

    value: object
    text: str = dataclasses.field(compare=False)

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Most:
    """The most of something that a member has, which is a promise alone or is seen to."""

    number: object
    is_promise: bool

    def __str__(self) -> str:
        return f"{shown(self.number)} (promised)" if self.is_promise else shown(self.number)


def bounded(old: Most | None, new: Most | None) -> Effect:
    """Return what another bound means: what is seen to changes noise, and not what is promised."""
    before, after = (each.number if each is not None and each.is_promise else None for each in (old, new))
    return Effect.OTHER if before == after else promised(before, after)


def ordered(*safest_first: object) -> Rule:
    """Return the rule of a choice between some values; none is as safe as the first."""

    def judge(old: object, new: object) -> Effect:
        before, after = (0 if each is None else safest_first.index(each) for each in (old, new))
        return Effect.OTHER if before == after else Effect.WEAKER if before < after else Effect.STRONGER

    return whole(judge)


def weaker_if(is_weaker: Callable[[Any, Any], bool]) -> Rule:
    """Return the rule of a value of which another one promises less, or else more."""

    def judge(old: Any, new: Any) -> Effect:
        if old is None or new is None:
            return Effect.OTHER
        return Effect.WEAKER if is_weaker(old, new) else Effect.STRONGER

    return whole(judge)


def offered(old: Any, new: Any) -> Effect:
    """Return what another offer means, of a number or of something that is offered or not."""
    return Effect.ANSWERABLE if (new or 0) > (old or 0) else Effect.REFUSED


_UNKNOWN = Field(whole(lambda old, new: Effect.WEAKER), "nothing is known of what this key promises")


def shown(value: object) -> str:
    """Return a value as text, as a policy would say it; of many values the first ones."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case Fraction():
            return f"{float(value):.12g}"
        case tuple() | list():
            texts = [shown(each) for each in value[:_MOST_SHOWN]]
            more = len(value) - _MOST_SHOWN
            return ", ".join(texts) + (f" and {more:,} more" if more > 0 else "")
    # What another value holds may be no part of the policy's text.
    is_text = isinstance(value, str | int | datetime.date | Said | Most)
    return str(value.value if isinstance(value, Enum) else value) if is_text else STATED
