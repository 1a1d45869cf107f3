"""The limits that a structured question keeps whatever the policy says."""

import datetime
from collections.abc import Callable

import pytest

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Bound, In, NotIn, Range, TimeRange
from dp_service.queries.structured import HistogramQuery

EAST = datetime.timezone(datetime.timedelta(hours=8))


def question(**changes: object) -> HistogramQuery:
    """Return a small question with some of its parts changed."""
    parts: dict[str, object] = {"dimensions": ("a",), "measure": Measure.EVENTS} | changes
    return HistogramQuery(table="t", **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: question(dimensions=(), omit_counts=True), "omit_counts"),
        (lambda: question(dimensions=tuple("abcde")), "dimensions"),
        (lambda: question(dimensions=("a", "a")), "dimensions"),
        (lambda: question(filters=(In("a", (1,)),) * 129), "filters"),
        (lambda: question(k=0), "k"),
        (lambda: question(k=-1), "k"),
        (lambda: question(k=2**31), "k"),
        (lambda: In("a", ()), "filters"),
        (lambda: NotIn("a", tuple(range(10_001))), "filters"),
        (lambda: In("a", ("x", 1)), "filters"),
        (lambda: In("a", (1, True)), "filters"),
        (lambda: In("a", ("x" * 1025,)), "filters"),
        (lambda: In("a", ("nul\0",)), "filters"),
        (lambda: In("a", ("\ud800",)), "filters"),
        (lambda: In("a", (2**63,)), "filters"),
        (lambda: In("a", (-(2**63) - 1,)), "filters"),
        (lambda: In("a", (1.5,)), "filters"),  # type: ignore[arg-type]
        (lambda: In("a", (datetime.datetime(2019, 1, 1, tzinfo=EAST),)), "filters"),
        (lambda: Range("a", None, None), "filters"),
        (lambda: Range("a", Bound(1), Bound("x")), "filters"),
        (lambda: TimeRange(datetime.datetime(2019, 1, 1), None), "time_range"),
        (lambda: TimeRange(None, datetime.datetime(2019, 1, 1, tzinfo=EAST)), "time_range"),
    ],
)
def test_a_question_beyond_a_limit_is_refused_by_field(build: Callable[[], object], field: str) -> None:
    """Everything that can grow has a limit, and the error names the part of the question."""
    with pytest.raises(QuestionError) as refusal:
        build()
    assert refusal.value.field == field


def test_texts_are_limited_all_together() -> None:
    """One character more than 200,000 in all filters is refused: the rendered queries must fit a message."""
    many = (In("a", tuple("x" * 1000 for _ in range(100))), NotIn("b", tuple("y" * 1000 for _ in range(100))))
    assert question(filters=many).filters == many
    with pytest.raises(QuestionError, match="in all"):
        question(filters=(*many, In("c", ("z",))))


def test_a_question_at_its_limits_is_accepted() -> None:
    """The limits themselves are allowed."""
    values = In("a", tuple(f"{i:03}" for i in range(1000)))
    assert question(dimensions=tuple("abcd"), filters=(values,) * 32, k=100_000).k == 100_000
    longest = In("a", tuple("x" * 1000 for _ in range(200)))
    assert question(filters=(longest,), k=1).k == 1
    assert question(filters=(In("a", (-(2**63), 2**63 - 1)),), k=1).k == 1
