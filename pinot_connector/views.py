"""Views: values of messages, made by what the fields of a class are called and of which types they are, and back.

A view is a frozen dataclass. Its fields have the names of the message's, and their types say how they are read, and
written by `message_of`:

- `int`, `bool`, `float` and `str` as they are, and `Fraction` from a text that is an exact number; of a union such as
  `Fraction | str` the first type is what a message holds;
- an `Enum` by the name of its member, which is that of the message's value without its prefix;
- a `datetime` from a timestamp, another view from the message in it, and `tuple[X, ...]` from a list;
- a union of views, by the name of a `oneof`, from the message in it: that view whose class is called as the message;
- `X | None` is None where a field that has presence is unset, and where another one is 0, empty or unspecified.

`called` and `read_by` beside a field say what it needs beyond that. What a message does not hold is given to `view`, or
follows from the other fields: `field(init=False)`.
What a view hands out is immutable: messages can be changed, and accounts share them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from pinot_connector.errors import IntegrityError

_View = TypeVar("_View")
_Message = TypeVar("_Message", bound=Message)
_Enum = TypeVar("_Enum", bound=Enum)
_Key = TypeVar("_Key", bound=int | str)
_Meaning = TypeVar("_Meaning")

_Reader = Callable[[Any], Any]
_Writer = Callable[[Any], Any]
_AS_IT_IS = (bool, int, float, str)
_CALLED, _READ_BY, _WRITTEN_BY = "called", "read_by", "written_by"
_ONLY_READ = "nothing says how a message holds it"


def view(kind: type[_View], message: Message, **given: object) -> _View:
    """Returns the view of a message.

    Args:
        kind: a frozen dataclass.
        message: the message.
        given: the fields of the view that the message does not hold.

    Raises:
        IntegrityError: the message says something that this version does not know, or holds a text that is no number.
    """
    # To mypy classes have no hash.
    made: _View = _plan(kind, type(message), *given)(message, **given)  # type: ignore[arg-type]
    return made


def message_of(kind: type[_Message], value: object) -> _Message:
    """Returns the message of a view: `view` makes an equal one of it. What the view does not hold is unset.

    Raises:
        TypeError: the message cannot hold a field of the view's class, or nothing says how.
    """
    made: _Message = _writing(kind, type(value))(value)  # type: ignore[arg-type]
    return made


def called(name: str) -> Mapping[str, str]:
    """Returns the metadata of a field that a message has by another name."""
    return {_CALLED: name}


def read_by(read: _Reader, written: _Writer | None = None) -> Mapping[str, _Reader]:
    """Returns the metadata of a field that is read from the whole message by a function.

    `written` makes of the field's value what the message has under its name; None: the field is only read.
    """
    return {_READ_BY: read} if written is None else {_READ_BY: read, _WRITTEN_BY: written}


def meanings(kind: type[_Enum], described: EnumDescriptor) -> dict[Any, _Enum]:
    """Returns the members of an enum by the numbers that messages have for them."""
    prefix = described.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {described.values_by_name[f"{prefix}{each.name}"].number: each for each in kind}


def numbers(kind: type[_Enum], described: EnumDescriptor) -> dict[_Enum, Any]:
    """Returns the numbers that messages have for the members of an enum."""
    return {each: number for number, each in meanings(kind, described).items()}


def known(said: Mapping[_Key, _Meaning], value: _Key) -> _Meaning:
    """Returns the meaning of a message's enum value.

    Raises:
        IntegrityError: this version knows none.
    """
    if value not in said:
        raise IntegrityError("a service says something that this version does not know")
    return said[value]


def exact(text: str) -> Fraction:
    """Returns the number that a text denotes.

    Raises:
        IntegrityError: it denotes none.
    """
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise IntegrityError("a service sent something else than an exact number") from None


def day(text: str) -> datetime.date:
    """Returns the day that a message has as YYYY-MM-DD.

    Raises:
        IntegrityError: the text is none.
    """
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise IntegrityError("a service sent a day that is none") from None


@cache
def _plan(kind: Any, message_kind: Any, *given: str) -> Callable[..., Any]:
    """Returns the function that makes views of messages of a kind."""
    hints, described = get_type_hints(kind), message_kind.DESCRIPTOR
    readers = tuple(
        (each.name, _reader(each, hints[each.name], described))
        for each in fields(kind)
        if each.init and each.name not in given
    )

    def made(message: Message, **values: object) -> Any:
        for name, read in readers:
            try:
                values[name] = read(message)
            except IntegrityError as error:
                raise IntegrityError(f"{name}: {error}") from None
        return kind(**values)

    return made


def _reader(stated: Field[Any], hint: Any, described: Descriptor) -> _Reader:
    """Returns the function that reads one field of a view from the message."""
    if _READ_BY in stated.metadata:
        by: _Reader = stated.metadata[_READ_BY]
        return by
    if stated.name in described.oneofs_by_name:
        return _one_of(described.oneofs_by_name[stated.name], get_args(hint))
    name, field, kinds = _held(stated, hint, described.fields_by_name)
    raw = attrgetter(name)
    value = _conversion(kinds[0], field)
    if field.is_repeated:
        return lambda message: tuple(map(value, raw(message)) if value else raw(message))
    read: _Reader = (lambda message: value(raw(message))) if value else raw
    return _or_none(name, field, read) if NoneType in kinds else read


def _or_none(name: str, field: FieldDescriptor, read: _Reader) -> _Reader:
    """Returns the function that reads a field, and None where a message says nothing of it."""
    if field.has_presence:
        return lambda message: read(message) if message.HasField(name) else None
    return lambda message: read(message) if getattr(message, name) else None


def _one_of(described: OneofDescriptor, kinds: tuple[Any, ...]) -> _Reader:
    """Returns the function that reads the one message that is given, as the view that is called as it is."""
    views = {kind.__name__: kind for kind in kinds}
    messages = ((field.name, GetMessageClass(field.message_type)) for field in described.fields)  # type: ignore[arg-type]
    readers = {
        name: _plan(views[kind.DESCRIPTOR.name], kind)  # type: ignore[arg-type]
        for name, kind in messages
        if kind.DESCRIPTOR.name in views
    }

    def read(message: Any) -> Any:
        # Exactly one is given: none at all is one that this version does not know.
        given = message.WhichOneof(described.name)
        return known(readers, given)(getattr(message, given))

    return read


def _held(
    stated: Field[Any], hint: Any, described: Mapping[str, FieldDescriptor]
) -> tuple[str, FieldDescriptor, tuple[Any, ...]]:
    """Returns what a message has of a field of a view, by its name, and the types of its values."""
    name = stated.metadata.get(_CALLED, stated.name)
    field = described[name]
    return name, field, get_args(hint) if field.is_repeated or isinstance(hint, UnionType) else (hint,)


def _conversion(kind: Any, field: Any) -> _Reader | None:
    """Returns the function that makes one value of a field; None: a message has it as it is."""
    if kind in _AS_IT_IS:
        return None
    if kind is Fraction:
        return _exact
    if kind is datetime.datetime:
        return _timestamp
    if issubclass(kind, Enum):
        return partial(known, meanings(kind, field.enum_type))
    return _plan(kind, GetMessageClass(field.message_type))  # type: ignore[arg-type]


# The texts of parameters are those of a policy: they come again with every question.
_exact = lru_cache(1024)(exact)


def _timestamp(message: Timestamp) -> datetime.datetime:
    try:
        return message.ToDatetime(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        raise IntegrityError("a service sent a timestamp outside the years 1 to 9999") from None


@cache
def _writing(message_kind: Any, kind: Any) -> _Writer:
    """Returns the function that makes messages of views of a class."""
    hints, described = get_type_hints(kind), message_kind.DESCRIPTOR.fields_by_name
    writers = tuple(
        (attrgetter(each.name), *_writer(each, hints[each.name], described))
        for each in fields(kind)
        if each.init
    )

    def made(value: object) -> Any:
        held = ((name, write, read(value)) for read, name, write in writers)
        return message_kind(
            **{name: write(found) if write else found for name, write, found in held if found is not None}
        )

    return made


def _writer(
    stated: Field[Any], hint: Any, described: Mapping[str, FieldDescriptor]
) -> tuple[str, _Writer | None]:
    """Returns what a message calls a field of a view, and the function that writes it; None: it is written as it is."""
    if _WRITTEN_BY in stated.metadata:
        return stated.name, stated.metadata[_WRITTEN_BY]
    if _READ_BY in stated.metadata or stated.metadata.get(_CALLED, stated.name) not in described:
        raise TypeError(f"{stated.name}: {_ONLY_READ}")
    name, field, kinds = _held(stated, hint, described)
    value = _written(kinds[0], field)
    return name, partial(map, value) if value and field.is_repeated else value


def _written(kind: Any, field: Any) -> _Writer | None:
    """Returns the function that makes of one value what a message holds; None: it is written as it is."""
    if kind in _AS_IT_IS:
        return None
    if kind is Fraction:
        return str
    if kind is datetime.datetime:
        return _stamp
    if issubclass(kind, Enum):
        return numbers(kind, field.enum_type).__getitem__
    if field.message_type is None:
        raise TypeError(f"{field.name}: {_ONLY_READ}")
    return _writing(GetMessageClass(field.message_type), kind)  # type: ignore[arg-type]


def _stamp(time: datetime.datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(time)
    return message
