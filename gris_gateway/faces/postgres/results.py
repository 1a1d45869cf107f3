"""Columns and rows as clients of PostgreSQL get them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pygwire.messages import DataRow, FieldDescription, RowDescription

from gris_gateway.faces.postgres.types import OID_OF, SIZES, Oid, forms_of, written
from pinot_connector import formats
from pinot_connector.dbapi.tables import kinds, tabulated
from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.results import PrivateResult

Columns: TypeAlias = Sequence[tuple[str, Oid]]

OF_EXPLANATION: Columns = (("property", Oid.TEXT), ("value", Oid.TEXT))


@dataclass
class Answer:
    """What a statement answers.

    Attributes:
        described: Its columns; None: it has no rows.
        rows: Those that have not been sent.
        command: What it is called when it is complete; rows are counted behind SELECT.
        notices: What there is to know of it.
        reported: Settings that it has changed, of those that clients are sent.
        sent: How many rows have been sent.
    """

    described: RowDescription | None = None
    rows: Iterator[DataRow] = field(default_factory=lambda: iter(()))
    command: str = "SELECT"
    notices: tuple[str, ...] = ()
    reported: Mapping[str, str] = field(default_factory=dict)
    sent: int = 0


def answer_of(release: PrivateResult, result_formats: Sequence[int], *, intervals: bool) -> Answer:
    """Return the answer to a question, or to EXPLAIN.

    Args:
        release: The result.
        result_formats: The forms of columns that are asked for: of each, of all, or none for text; 1 is binary.
        intervals: Whether columns for the ends of intervals are wanted.

    Raises:
        PostgresError: There are as many forms as there are no columns.
    """
    if release.explanation is not None:
        return table(OF_EXPLANATION, explanation_rows(release.explanation), result_formats, "EXPLAIN")
    columns = columns_of(release, intervals=intervals)
    answer = table(columns, tabulated(release, intervals=intervals), result_formats)
    left = (f"left: {formats.level(level)}" for level in release.remaining)
    # What it has cost, and what its numbers mean: programs show each notice on its own.
    answer.notices = (
        "; ".join((f"charged: {formats.cost(release.charged)}", *left)),
        "\n".join(each.text for each in release.statements if not each.says_how),
    )
    return answer


def columns_of(release: PrivateResult, *, intervals: bool) -> Columns:
    """Return the columns of a question, from its answer or from that of LIMIT 0."""
    return tuple((name, OID_OF[kind]) for name, kind in kinds(release, intervals=intervals))


def table(
    columns: Columns, rows: Iterable[Sequence[Any]], result_formats: Sequence[int], command: str = "SELECT"
) -> Answer:
    """Return an answer of these rows.

    Raises:
        PostgresError: There are as many forms as there are no columns.
    """
    forms = forms_of(result_formats, len(columns))
    plan = [(oid, form == 1) for (_, oid), form in zip(columns, forms, strict=True)]
    messages = (
        DataRow([written(value, oid, binary=binary) for value, (oid, binary) in zip(row, plan, strict=True)])
        for row in rows
    )
    return Answer(described(columns, forms), messages, command)


def described(columns: Columns, forms: Sequence[int] = ()) -> RowDescription:
    """Return the description of columns whose values are sent in these forms, by default as texts."""
    return RowDescription(
        [
            FieldDescription(name, 0, 0, oid, SIZES.get(oid, -1), -1, form)
            for (name, oid), form in zip(columns, forms or [0] * len(columns), strict=True)
        ]
    )
