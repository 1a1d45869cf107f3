"""Releases that a client keeps and has shown again."""

from __future__ import annotations

from typing import Any

from gris_api.dp.v1 import dp_pb2, question_pb2

from tests.support.dp_questions import (
    answer_of,
    header,
    translated,
)


async def whole(dp: Any, asked: question_pb2.Question, by: str) -> dp_pb2.Release:
    """Return the whole release of a question."""
    head = header(await translated(dp, asked))
    head.keep = True
    request = dp_pb2.AddNoiseUnaryRequest(header=head, histogram=answer_of(by))
    response: dp_pb2.AddNoiseUnaryResponse = await dp.AddNoiseUnary(request)
    return response.release


def with_names_and_counts(shown: dp_pb2.Release, kept: dp_pb2.Kept) -> dp_pb2.Release:
    """Return a kept release as it is shown, with the names and the counts of the first elements that are kept."""
    count = shown.shown.element_count
    shown.elements.columns.extend(kept.elements.columns)
    for column in shown.elements.columns:
        del getattr(column, column.WhichOneof("values") or "").values[count:]
    if shown.shown.interval_kind != dp_pb2.INTERVAL_KIND_NONE:
        shown.elements.noisy_counts.extend(kept.elements.noisy_counts[:count])
        shown.elements.noisy_numerators.extend(kept.elements.noisy_numerators[:count])
        shown.elements.noisy_denominator = kept.elements.noisy_denominator
    return shown
