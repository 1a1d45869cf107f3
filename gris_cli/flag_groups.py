"""Commands and their flags: flags that belong together are a dataclass, of which a command takes one value.

A flag is a field of such a group, or a parameter of a command, whose default `flag` or `required` declares. typer reads
one parameter for each flag; `with_flags` makes them, and hands the groups to the command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints, runtime_checkable

import typer

from gris_cli.data.errors import InputError

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _Option:
    """What typer has to know of a flag."""

    names: tuple[str, ...]
    more: dict[str, Any]


def flag(default: _Value, text: str, *names: str, **more: Any) -> _Value:
    """Return the field of a flag, whose option has the field's name unless `names` has others.

    Args:
        default: Its value where it is not given.
        text: What its help says.
        names: Its options.
        more: Further arguments of `typer.Option`.
    """
    if variable := more.get("envvar"):
        # In the sentence: typer would give the variable a line of its own.
        text, more = f"{text.removesuffix('.')} (${variable}).", {**more, "show_envvar": False}
    metadata = {_Option: _Option(names, {"help": text, **more})}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)  # type: ignore[return-value]
    return field(default=default, metadata=metadata)


def required(text: str, *names: str, **more: Any) -> Any:
    """Return the field of a flag that has to be given."""
    return field(metadata={_Option: _Option(names, {"help": text, **more})})


@runtime_checkable
class CheckedFlags(Protocol):
    """A group that knows which of its flags have no meaning beside others."""

    def require_used(self, context: typer.Context, names: Collection[str]) -> None:
        """Refuse flags that were typed and have no meaning; `names` are those that the command has."""


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a command on groups of flags into one that typer can read: one parameter for each flag.

    Args:
        command: A parameter whose type is a dataclass is a group: `Annotated[ConnectionFlags, ("dp", "gateway")]` are
            these two of its flags, and without names all. `as_json` is the flag --json, which every command has. Every
            other parameter is a flag itself.
    """
    groups: dict[str, tuple[Any, list[str]]] = {}
    flags = [_parameter("context", typer.Context)]
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if each.name == "as_json":
            flags.append(_made(each.name, bool, _JSON))
            continue
        kind, names = _group(each.annotation)
        if not is_dataclass(kind):
            flags.append(_declared(each))
            continue
        found = list(_parameters_of(kind, names))
        groups[each.name] = kind, [flag.name for flag in found]
        flags += found

    places = _places(flags)

    def called(context: typer.Context, **values: Any) -> None:
        for name, (kind, names) in groups.items():
            values[name] = kind(**{each: values.pop(each) for each in names})
            if isinstance(values[name], CheckedFlags):
                values[name].require_used(context, names)
        try:
            command(**values)
        except InputError as error:
            raise InputError(str(error), *(places.get(n, n) for n in error.of), remedy=error.remedy) from None

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in flags}
    return called


def _places(parameters: Collection[inspect.Parameter]) -> dict[str, str]:
    """Return what help calls the arguments of a command that have no option, by their names."""
    return {
        parameter.name: each.metavar
        for parameter in parameters
        for each in getattr(parameter.annotation, "__metadata__", ())
        if isinstance(each, typer.models.ArgumentInfo) and isinstance(each.metavar, str)
    }


def _group(annotation: Any) -> tuple[Any, Collection[str]]:
    """Return the class of a group, and which of its flags a command has; empty: all."""
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    kind, names = get_args(annotation)[:2]
    return kind, names


def _parameters_of(kind: Any, names: Collection[str]) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each flag of a group, or for those of them that are named."""
    for each in fields(kind):
        if not names or each.name in names:
            yield _made(each.name, _hints(kind)[each.name], each)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _declared(given: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter of a flag that stands by itself."""
    if isinstance(given.default, Field):
        return _made(given.name, given.annotation, given.default)
    return _parameter(given.name, given.annotation, given.default)


def _made(name: str, annotation: Any, of: Field[Any]) -> inspect.Parameter:
    if option := of.metadata.get(_Option):
        # Without a name a flag that is true or false would have a second option, to say no.
        names = _names(name, of) if annotation is bool else option.names
        annotation = Annotated[annotation, typer.Option(*names, **option.more)]
    return _parameter(name, annotation, _default(of))


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter that is given by its name."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _names(name: str, of: Field[Any]) -> tuple[str, ...]:
    names: tuple[str, ...] = of.metadata[_Option].names
    return names or (f"--{name.replace('_', '-')}",)


def _default(of: Field[Any]) -> Any:
    if of.default_factory is not MISSING:
        return of.default_factory()
    return inspect.Parameter.empty if of.default is MISSING else of.default


_JSON: Any = field(
    default=False,
    metadata={_Option: _Option(("--json",), {"help": "Print only JSON, errors too."})},
)
