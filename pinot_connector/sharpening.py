"""What a sharpening brings along of the looks before it, as messages for dp_service.

A chain of looks begins with the release of the question itself, and has one release more for each sharpening. All of
them have the same elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from gris_api.dp.v1 import dp_pb2

from pinot_connector.element_messages import without
from pinot_connector.engines.base import Element, ExpectedColumn
from pinot_connector.errors import IntegrityError
from pinot_connector.release_store.interface import KeptRelease
from pinot_connector.releases import counts_of, element_tuples


def looks_before(before: Sequence[KeptRelease]) -> dp_pb2.LooksBefore:
    """Returns what dp_service needs of the looks before a sharpening: the names only where the question has none."""
    first = before[0].content
    return dp_pb2.LooksBefore(
        releases=[without(each.content, "elements") for each in before],
        names=first.elements.columns if first.names_tag else (),
    )


def counts_before(
    columns: tuple[ExpectedColumn, ...],
    before: Sequence[KeptRelease],
    elements: Sequence[tuple[Element, ...]],
) -> list[dp_pb2.LookCounts]:
    """Returns the counts of the looks before a sharpening, for its elements in their order.

    Raises:
        IntegrityError: a look has other elements, or no counts.
    """
    return [dp_pb2.LookCounts(noisy_counts=_counts(columns, each, elements)) for each in before]


def _counts(
    columns: tuple[ExpectedColumn, ...], look: KeptRelease, elements: Sequence[tuple[Element, ...]]
) -> list[int]:
    found, noisy = element_tuples(columns, look.content), counts_of(look.content.elements)
    if len(noisy) != len(found):
        raise IntegrityError("a look that is sharpened is kept without its counts")
    counts = dict(zip(found, noisy, strict=True))
    if counts.keys() != set(elements):
        raise IntegrityError("a look that is sharpened has other elements")
    return [counts[element] for element in elements]
