"""Groups of flags: a dataclass with a field for each flag, which several commands may have, whole or in part.

typer reads one parameter for each flag; `with_flags` makes them of the groups, and hands the groups to the command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin

import typer

from gris_cli.declaring import declared, parameter, parameters_of
from gris_cli.flags import OF_EMBEDDED, ConnectionFlags, EngineName


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a command on groups of flags into one that typer can read: one parameter for each flag.

    Args:
        command: A parameter whose type is a dataclass is a group: `Annotated[ConnectionFlags, ("dp", "gateway")]` are
            these two of its flags, and without names all. Every other parameter is a flag itself, whose default may be
            declared as a field of a group is.
    """
    groups: dict[str, tuple[Any, list[str]]] = {}
    flags = [parameter("context", typer.Context)]
    for each in inspect.signature(command, eval_str=True).parameters.values():
        kind, names = _group(each.annotation)
        if not is_dataclass(kind):
            flags.append(declared(each))
            continue
        found = list(parameters_of(kind, names))
        groups[each.name] = kind, [flag.name for flag in found]
        flags += found

    def called(context: typer.Context, **values: Any) -> None:
        for name, (kind, names) in groups.items():
            values[name] = kind(**{each: values.pop(each) for each in names})
            if kind is ConnectionFlags:
                _require_used(context, values[name], names)
        command(**values)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in flags}
    return called


def _group(annotation: Any) -> tuple[Any, Collection[str]]:
    """Return the class of a group, and which of its flags a command has; empty: all."""
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    kind, names = get_args(annotation)[:2]
    return kind, names


_OF_SERVICES = ("dp", "budget", "releases", "releases_key_file")
_OF_FILES = ("data",)
_OF_SPARK = ("spark",)
_OF_PINOT = tuple(each.name for each in fields(ConnectionFlags) if each.name.startswith("pinot_"))


def _require_used(context: typer.Context, flags: ConnectionFlags, names: Collection[str]) -> None:
    """Refuse flags of the command line that the others leave without a meaning: none is ignored in silence.

    Args:
        context: The command's; it knows which flags were typed. What the environment says is not refused, for it is
            there for other commands too.
        flags: Their values.
        names: Those of them that the command has.

    Raises:
        typer.BadParameter: It names the flag, and the one that it does not go with.
    """
    for unused, without in _unused(flags, names):
        for name in (each for each in unused if each in names):
            # By its name: typer brings a click of its own, or takes the one that is installed.
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no meaning {without}")


def _unused(flags: ConnectionFlags, names: Collection[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield flags that have no meaning, and the reason."""
    if flags.gateway:
        services = (*_OF_SERVICES, *OF_EMBEDDED, "engine", *_OF_FILES, *_OF_SPARK, *_OF_PINOT)
        yield services, "with --gateway or GRIS_GATEWAY: a gateway has its own services and data"
        return
    if flags.embedded:
        yield _OF_SERVICES, "with --embedded, which runs services of its own"
    elif "embedded" in names:
        yield OF_EMBEDDED, "without --embedded: services that run already have their own"
    if "engine" not in names:
        return
    if flags.engine is not EngineName.PINOT:
        yield _OF_PINOT, f"with --engine {flags.engine.value}; it is of --engine pinot"
    if flags.engine is not EngineName.SPARK:
        yield _OF_SPARK, f"with --engine {flags.engine.value}; it is of --engine spark"
    if flags.engine is EngineName.PINOT:
        yield _OF_FILES, "with --engine pinot, which has the tables itself"
