"""Histograms at the door of dp_service: what is taken, what is refused, and what the digest depends on."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from dp_service.queries.elements import elements_of_domain
from dp_service.releases.histogram import (
    HistogramError,
    TypedHistogram,
    checked_histogram,
    over_domain,
    within,
)
from dp_service.terms import ColumnType
from dp_service.values.bounds import Clamp

TEXT = (ColumnType.STRING,)


def histogram(rows: list[tuple[str, int]], row_limit: int = 100) -> TypedHistogram:
    """Return a checked histogram of text elements."""
    return checked_histogram(
        TEXT, [[name for name, _ in rows]], [count for _, count in rows], row_limit=row_limit
    )


def test_rows_are_kept_by_element_whatever_the_engine_did_with_ties() -> None:
    """Two engines that order a tie differently give one histogram and one digest."""
    left, right = histogram([("a", 3), ("b", 3), ("c", 1)]), histogram([("b", 3), ("a", 3), ("c", 1)])
    assert left.elements == right.elements == [("a",), ("b",), ("c",)]
    assert left.digest() == right.digest()


@pytest.mark.parametrize(
    ("columns", "counts", "complaint"),
    [
        ([["a", "b"]], [1, 2], "descending order"),
        ([["a", "a"]], [2, 1], "each element once"),
        ([["a"]], [-1], "0 to 2\\^53"),
        ([["a"]], [2**53 + 1], "0 to 2\\^53"),
        ([["a"]], [2**64], "0 to 2\\^53"),
        ([["a"]], [1.5], "whole numbers"),
        ([["a"]], [float("nan")], "whole numbers"),
        ([["a"]], [True], "whole numbers"),
        ([["a", "b"]], [1], "as many values"),
        ([["a"], ["b"]], [1], "1 element columns"),
        ([], [1], "1 element columns"),
        ([[7]], [1], "type STRING"),
        ([[None]], [1], "type STRING"),
        ([["a", "b", "c", "d"]], [4, 3, 2, 1], "at most the plan's 3 rows"),
    ],
)
def test_what_cannot_be_the_answer_is_refused(columns: Any, counts: Any, complaint: str) -> None:
    """Every malformed histogram is named as such, without an element or a count in the text."""
    with pytest.raises(HistogramError, match=complaint):
        checked_histogram(TEXT, columns, counts, row_limit=3)


CLAMP = Clamp(2, 5)
"""A member adds -3, -1, 1 or 3 to a sum."""


@pytest.mark.parametrize(
    ("sums", "complaint"),
    [
        ([], "sums of 1 columns"),
        ([[1, 0], [1, 0]], "sums of 1 columns"),
        ([[1]], "as many sums"),
        ([[7, 1]], "so many members can have"),
        ([[-7, 1]], "so many members can have"),
        ([[0, 2]], "so many members can have"),
        ([[1, 1]], "so many members can have"),
        ([[0.0, 1]], "whole numbers"),
        ([[True, 1]], "whole numbers"),
        ([[2**60, 1]], "whole numbers within"),
    ],
)
def test_sums_that_the_counted_members_cannot_have_are_refused(sums: Any, complaint: str) -> None:
    """Of two members a sum is even and within 6; another one would move more than its noise was priced for."""
    with pytest.raises(HistogramError, match=complaint):
        checked_histogram(TEXT, [["a", "b"]], [2, 1], sums, row_limit=3, clamps=[CLAMP])


@pytest.mark.parametrize(("beyond", "is_refused"), [(0, False), (1, True)])
def test_sums_of_members_who_are_all_at_a_clamp_are_compared_exactly(
    beyond: int, *, is_refused: bool
) -> None:
    """A float would round the largest sum that so many weighted members can have down."""
    members, width = 12_080_715, 123_456_700
    sums = [[-members * width - beyond]]
    with pytest.raises(HistogramError) if is_refused else nullcontext():
        checked_histogram(
            TEXT, [["a"]], [100 * members], sums, row_limit=3, clamps=[Clamp(0, width)], scales=[100]
        )


def test_sums_stay_with_their_elements() -> None:
    """Through sorting, the smallest count, and a domain, whose absent elements have sums of 0; the digest has them."""
    found = checked_histogram(TEXT, [["c", "a", "b"]], [3, 2, 1], [[9, -2, 3]], row_limit=3, clamps=[CLAMP])
    assert [column.tolist() for column in found.sums] == [[-2, 3, 9]]
    assert [column.tolist() for column in found.with_count(2).sums] == [[-2, 9]]
    whole = over_domain(found, [("a",), ("c",), ("d",)], row_limit=4)
    assert (whole.counts.tolist(), whole.sums[0].tolist()) == ([2, 3, 0], [-2, 9, 0])
    other = checked_histogram(TEXT, [["c", "a", "b"]], [3, 2, 1], [[9, 0, 3]], row_limit=3, clamps=[CLAMP])
    assert other.digest() != found.digest()


def test_an_answer_may_have_as_many_rows_as_the_plan_asks_for() -> None:
    """A full answer is the usual one of a large domain: refusing it would tell how many elements there are."""
    rows = [("a", 3), ("b", 2), ("c", 1)]
    assert histogram(rows, row_limit=3).elements == [("a",), ("b",), ("c",)]


def test_a_bool_does_not_pass_for_an_integer() -> None:
    """True and 1 are different elements: they must not meet in one column."""
    with pytest.raises(HistogramError, match="type INT64"):
        checked_histogram((ColumnType.INT64,), [[True]], [1], row_limit=3)


def test_an_empty_histogram_is_a_histogram() -> None:
    """A question that matches nobody still has an answer."""
    assert histogram([]).elements == []


@pytest.mark.parametrize(
    "other",
    [
        [("a", 3), ("b", 1)],
        [("a", 2), ("c", 1)],
        [("a", 2)],
        [("ab", 2), ("", 1)],
        [("a", 2), ("b", 1), ("c", 0)],
    ],
)
def test_the_digest_tells_histograms_apart(other: list[tuple[str, int]]) -> None:
    """Any difference in elements or counts changes the digest, and so the noise."""
    assert histogram([("a", 2), ("b", 1)]).digest() != histogram(other).digest()


def test_the_digest_tells_how_a_tuple_is_cut() -> None:
    """("ab", "c") and ("a", "bc") are different elements."""
    types = (ColumnType.STRING, ColumnType.STRING)
    left = checked_histogram(types, [["ab"], ["c"]], [1], row_limit=3)
    right = checked_histogram(types, [["a"], ["bc"]], [1], row_limit=3)
    assert left.digest() != right.digest()


def test_absent_elements_of_a_known_domain_count_zero() -> None:
    """A known domain is released whole: whether an element is absent is part of what noise hides."""
    domain = elements_of_domain([("a",), ("b",), ("c",)])
    whole = over_domain(histogram([("b", 4)]), domain, row_limit=3)
    assert whole.counts.tolist() == [0, 4, 0]


def test_an_element_outside_the_domain_is_left_out() -> None:
    """One member's row must not decide whether there is an answer, and its name alone would be a release."""
    domain = elements_of_domain([("a",), ("b",), ("c",)])
    whole = over_domain(histogram([("secret", 4), ("b", 2)]), domain, row_limit=3)
    assert (whole.elements, whole.counts.tolist()) == (list(domain), [0, 2, 0])


def test_a_value_outside_the_domain_of_one_column_is_left_out() -> None:
    """What Delta rests on holds whatever the engine answers."""
    two = checked_histogram((*TEXT, *TEXT), [["a", "x", "a"], ["p", "q", "r"]], [9, 8, 7], row_limit=4)
    assert within(two, (("a", "b"), None), row_limit=4).elements == [("a", "p"), ("a", "r")]


@pytest.mark.parametrize(
    "held",
    [
        lambda answer: over_domain(answer, elements_of_domain([("a",), ("b",)]), row_limit=2),
        lambda answer: within(answer, (("a", "b"),), row_limit=2),
    ],
)
def test_an_answer_that_may_be_cut_is_refused_if_it_has_elements_outside(
    held: Callable[[TypedHistogram], TypedHistogram],
) -> None:
    """Those outside may have taken the places of others, whose counts would be too low. The error names nothing."""
    with pytest.raises(HistogramError, match="the domain that the query asks for") as caught:
        held(histogram([("secret", 4), ("b", 2)]))
    assert "secret" not in str(caught.value)


def test_days_of_a_domain_are_counted_from_1970() -> None:
    """Engines answer days as numbers; a policy writes them as dates."""
    days = elements_of_domain([(datetime.date(1970, 1, 2),), (datetime.date(1969, 12, 31),)])
    assert days == ((-1,), (1,))


def test_a_histogram_does_not_show_its_counts() -> None:
    """Printing a histogram by accident shows how many rows it has and nothing else."""
    shown = repr(TypedHistogram(TEXT, [("a",)], np.array([123456], dtype=np.int64)))
    assert "123456" not in shown
