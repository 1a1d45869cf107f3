"""What a question for a sharpening brings along: the looks before it, from what is kept.

A chain of looks begins with the release of the question itself, and has one release more for each sharpening. All of
them have the same elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector.engines.base import Element, ExpectedColumn
from pinot_connector.errors import IntegrityError
from pinot_connector.release_store.interface import KeptRelease
from pinot_connector.releases import merged

MAX_KNOWN = 256


class KnownLooks:
    """By which query_id the looks of a chain were kept, so that a chain is not translated again for each look more.

    What is known may be out of date: the policy or the data may be others by now. dp_service finds that out when it is
    shown the looks, and then they are to be translated again.
    """

    def __init__(self) -> None:
        self._query_ids: dict[tuple[bytes, tuple[str, ...]], str] = {}

    def query_id(self, question: question_pb2.Question, before: Sequence[KeptRelease]) -> str | None:
        """Returns the query_id of a look after those before it, None if it was not translated lately."""
        return self._query_ids.get(_key(question, before))

    def learn(self, question: question_pb2.Question, before: Sequence[KeptRelease], query_id: str) -> None:
        """Notes the query_id of a look."""
        if len(self._query_ids) >= MAX_KNOWN:
            del self._query_ids[next(iter(self._query_ids))]
        self._query_ids[_key(question, before)] = query_id


def _key(question: question_pb2.Question, before: Sequence[KeptRelease]) -> tuple[bytes, tuple[str, ...]]:
    return question.SerializeToString(deterministic=True), tuple(each.release_id for each in before)


def questions_before(question: question_pb2.Question) -> Iterator[question_pb2.Question]:
    """Yields the questions whose releases a question sharpens, in order; none if it asks for no sharpening."""
    for number in range(len(question.sharpening.units)):
        before = question_pb2.Question()
        before.CopyFrom(question)
        if number:
            del before.sharpening.units[number:]
        else:
            before.ClearField("sharpening")
        yield before


def looks_before(before: Sequence[KeptRelease]) -> dp_pb2.LooksBefore:
    """Returns what dp_service needs of the looks before a sharpening: the names only where the question has none."""
    first = before[0].content
    return dp_pb2.LooksBefore(
        releases=[each.content.release for each in before],
        names=first.elements.columns if first.release.names_tag else (),
    )


def counts_before(
    columns: tuple[ExpectedColumn, ...],
    before: Sequence[KeptRelease],
    ascending: Sequence[tuple[Element, ...]],
) -> list[dp_pb2.LookCounts]:
    """Returns the counts of the looks before a sharpening, for its elements in ascending order.

    Raises:
        IntegrityError: a look has other elements, or no counts.
    """
    return [
        dp_pb2.LookCounts(release_id=each.release_id, noisy_counts=_counts(columns, each, ascending))
        for each in before
    ]


def _counts(
    columns: tuple[ExpectedColumn, ...], look: KeptRelease, ascending: Sequence[tuple[Element, ...]]
) -> list[int]:
    whole = merged(columns, [look.content.elements], look.content.release)
    if len(whole.noisy_counts) != len(whole.elements):
        raise IntegrityError("a look that is sharpened is kept without its counts")
    counts = dict(zip(whole.elements, whole.noisy_counts, strict=True))
    if counts.keys() != set(ascending):
        raise IntegrityError("a look that is sharpened has other elements")
    return [counts[element] for element in ascending]
