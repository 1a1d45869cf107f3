"""Flags as fields of dataclasses: a group of flags that belong together, of which `with_flags` makes parameters."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Option:
    """What typer is told of a flag, and the field of a question that the flag stands for; empty: that of its name."""

    names: tuple[str, ...]
    more: dict[str, Any]
    asks: str = ""


def flag(default: _Value, text: str, *names: str, asks: str = "", **more: Any) -> _Value:
    """Return the field of a flag, whose option has the field's name unless `names` has others.

    Args:
        default: Its value where it is not given.
        text: What its help says.
        names: Its options.
        asks: The field of a question that it stands for, where that has another name.
        more: Further arguments of `typer.Option`.
    """
    metadata = {_Option: _Option(names, {"help": text, **more}, asks)}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)  # type: ignore[return-value]
    return field(default=default, metadata=metadata)


def required(text: str, *names: str, **more: Any) -> Any:
    """Return the field of a flag that has to be given."""
    return field(metadata={_Option: _Option(names, {"help": text, **more})})


@dataclass(frozen=True)
class DeclaredFlag:
    """A flag of a group: its field, its option, its default, and the field of a question that it stands for."""

    name: str
    option: str
    default: Any
    asks: str


def flags_of(kind: Any) -> Iterator[DeclaredFlag]:
    """Yield the flags of a group that its fields declare, in their order."""
    for each in fields(kind):
        asks = each.metadata[_Option].asks or each.name
        yield DeclaredFlag(each.name, _names(each.name, each)[0], _default(each), asks)


def parameters_of(kind: Any, names: Collection[str]) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each flag of a group, or for those of them that are named."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        if not names or each.name in names:
            yield _made(each.name, hints[each.name], each)


def declared(given: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter of a flag that stands by itself."""
    if isinstance(given.default, Field):
        return _made(given.name, given.annotation, given.default)
    return parameter(given.name, given.annotation, given.default)


def _made(name: str, annotation: Any, of: Field[Any]) -> inspect.Parameter:
    if option := of.metadata.get(_Option):
        # Without a name a flag that is true or false would have a second option, to say no.
        names = _names(name, of) if annotation is bool else option.names
        annotation = Annotated[annotation, typer.Option(*names, **option.more)]
    return parameter(name, annotation, _default(of))


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter that is given by its name."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _names(name: str, of: Field[Any]) -> tuple[str, ...]:
    names: tuple[str, ...] = of.metadata[_Option].names
    return names or (f"--{name.replace('_', '-')}",)


def _default(of: Field[Any]) -> Any:
    if of.default_factory is not MISSING:
        return of.default_factory()
    return inspect.Parameter.empty if of.default is MISSING else of.default
