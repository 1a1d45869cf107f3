"""What a question groups by: columns by their names, and functions (`functions`)."""

from __future__ import annotations

from collections.abc import Iterable

from dp_service.queries.functions.function import Function

Dimension = str | Function
"""A column by its name, or a function."""


def functions_of(dimensions: Iterable[Dimension]) -> tuple[Function, ...]:
    """Return the functions among dimensions."""
    return tuple(each for each in dimensions if not isinstance(each, str))


def require_together(dimensions: Iterable[Dimension]) -> None:
    """Refuse functions that have no meaning beside each other.

    Raises:
        QuestionError: `field` is `dimensions`.
    """
    functions = functions_of(dimensions)
    for place, each in enumerate(functions):
        each.require_beside((*functions[:place], *functions[place + 1 :]))


def columns_of(dimension: Dimension) -> frozenset[str]:
    """Return the columns of the policy that a dimension is of."""
    return frozenset({dimension}) if isinstance(dimension, str) else dimension.columns


def answer_columns(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Return what queries call each dimension: a column by its name; a function by a name that no policy lists."""
    found: list[str] = []
    for each in dimensions:
        names = (each,) if isinstance(each, str) else each.names
        found.append(next((name for name in names if name not in found), names[-1]))
    return tuple(found)


def labels_of(dimensions: Iterable[Dimension]) -> tuple[str | None, ...]:
    """Return the names that an answer gives functions where the question gives none; None: a column has its own."""
    given = tuple(dimensions)
    names = zip(given, answer_columns(given), strict=True)
    return tuple(
        None if isinstance(each, str) else each.label or name.removeprefix("gris_") for each, name in names
    )


def is_series(dimension: Dimension) -> bool:
    """Return whether a list by a dimension is in the order of its values where nothing else is said: times, steps."""
    return not isinstance(dimension, str) and dimension.is_series
