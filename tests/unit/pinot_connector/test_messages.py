"""Questions, histograms and results as messages and back."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from google.protobuf.json_format import MessageToDict

from pinot_connector import Between, In, NotIn, sql_question, structured_question
from pinot_connector.engines.base import ColumnType, Element, EngineAnswer, ExpectedColumn
from pinot_connector.errors import IncompleteAnswer, InvalidQuestion
from pinot_connector.histograms import MAX_CHUNK_BYTES, MAX_ROW_BYTES, chunks, histogram
from pinot_connector.json_values import to_json
from pinot_connector.questions import Condition, TimeBound

TEXT = (ExpectedColumn("text", ColumnType.STRING),)
UTC = datetime.UTC


def test_a_question_is_written_down_as_it_was_meant() -> None:
    """Truth values are not integers, days not texts, and a list means any of its values."""
    question = structured_question(
        "table",
        ["a", "b"],
        k=7,
        measure="events",
        where={
            "flag": True,
            "number": In([1, 2]),
            "text": NotIn(["x"]),
            "day": Between(datetime.date(1970, 1, 2), None),
            "list": ["y", "z"],
        },
        time_range=(datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 1, 3, tzinfo=UTC)),
    ).structured
    flag, number, text, day, values = question.filters
    assert getattr(flag, "in").values[0].WhichOneof("kind") == "bool"
    assert [value.int64 for value in getattr(number, "in").values] == [1, 2]
    assert text.not_in.values[0].string == "x"
    assert (day.range.lower.value.date, day.range.HasField("upper")) == (1, False)
    assert [value.string for value in getattr(values, "in").values] == ["y", "z"]
    assert (question.time_range.from_day, question.time_range.to.seconds) == (1, 10800)
    assert question.k == 7


@pytest.mark.parametrize("value", [1.5, None, 2**63, datetime.time(1), b"x"])
def test_a_value_that_no_question_can_hold_names_its_column(value: Condition) -> None:
    """Floats, NULL, large integers, times of day and bytes are refused before anything is sent."""
    with pytest.raises(InvalidQuestion) as raised:
        structured_question("table", "a", k=1, where={"column": value})
    assert raised.value.field == "filters.column"


def test_a_timestamp_is_a_bound_in_utc_and_needs_a_zone() -> None:
    """It says which point in time it is; a time of day of an unknown zone does not."""
    paris = datetime.timezone(datetime.timedelta(hours=1))
    bound = datetime.datetime(1970, 1, 1, 1, 0, 0, 7, tzinfo=paris)
    question = structured_question("table", "a", k=1, where={"at": Between(bound, None)}).structured
    assert 7 == question.filters[0].range.lower.value.timestamp.ToMicroseconds()
    with pytest.raises(InvalidQuestion, match="a datetime with a time zone") as raised:
        structured_question("table", "a", k=1, where={"at": Between(None, bound.replace(tzinfo=None))})
    assert raised.value.field == "filters.at"


@pytest.mark.parametrize("k", [0, -1, 2**63, 2.5, 3.0, "3", True])
def test_a_k_that_cannot_be_is_refused(k: Any) -> None:
    """Only a missing k means all, and only a whole number is one."""
    with pytest.raises(InvalidQuestion) as raised:
        structured_question("table", "a", k=k)
    assert "k" == raised.value.field


@pytest.mark.parametrize("text", ["half \ud83d", b"bytes", 7])
@pytest.mark.parametrize(
    ("field", "build"),
    [
        ("sql", sql_question),
        ("table", lambda text: structured_question(text, "a", k=1)),
        ("dimensions", lambda text: structured_question("table", ["a", text], k=1)),
        ("filters.column", lambda text: structured_question("table", "a", k=1, where={text: 1})),
    ],
)
def test_a_text_that_no_message_can_hold_names_its_field(
    field: str, build: Callable[[Any], object], text: object
) -> None:
    """Half a surrogate pair, and what is no text; neither is repeated, for no terminal could print it."""
    with pytest.raises(InvalidQuestion) as raised:
        build(text)
    assert field == raised.value.field
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "condition", ["\ud83d", In(["\ud83d"]), NotIn(["x", "\ud83d"]), Between("\ud83d", None)]
)
def test_half_a_surrogate_pair_in_a_filter_names_its_column(condition: Condition) -> None:
    """Wherever in the condition it stands."""
    with pytest.raises(InvalidQuestion) as raised:
        structured_question("table", "a", k=1, where={"text": condition})
    assert "filters.text" == raised.value.field


def test_a_moment_without_a_zone_is_refused() -> None:
    """Nobody can know which moment it is."""
    naive: TimeBound = datetime.datetime(2020, 1, 1, 6)
    with pytest.raises(InvalidQuestion):
        structured_question("table", "a", k=1, time_range=(naive, None))


VALUES: list[tuple[object, dict[str, object]]] = [
    (np.bool_(True), {"bool": True}),
    (np.int16(3), {"int64": "3"}),
    (3.0, {"int64": "3"}),
    (np.float32(3), {"int64": "3"}),
    (Decimal("3.00"), {"int64": "3"}),
    (np.str_("x"), {"string": "x"}),
    (pd.Timestamp("2019-01-31"), {"date": 17927}),
    (pd.Timestamp("2019-01-31T06:00", tz="UTC"), {"timestamp": "2019-01-31T06:00:00Z"}),
    (np.datetime64("2019-01-31"), {"date": 17927}),
    (np.datetime64("2019-01-31", "ns"), {"date": 17927}),
    (datetime.datetime(2019, 1, 31), {"date": 17927}),
]


@pytest.mark.parametrize(("value", "held"), VALUES)
def test_values_of_numpy_and_pandas_are_values(value: Any, held: dict[str, object]) -> None:
    """Alone, in a list, a set, an array or a series."""
    forms: list[Any] = [value, [value], {value}, pd.Series([value]), np.array([value])]
    for condition in forms:
        question = structured_question("t", "a", k=1, where={"c": condition})
        (built,) = MessageToDict(question)["structured"]["filters"]
        assert built["in"]["values"] == [held]


@pytest.mark.parametrize(
    "value",
    [
        *(1.5, float("nan"), 2.0**53, 2**63, Decimal("1e99"), Decimal("sNaN"), np.float64("inf")),
        *(np.timedelta64(1, "D"), np.datetime64("NaT"), np.datetime64("2019-01-31T00:00:00.000000001")),
        *(pd.NaT, pd.NA, pd.Timestamp("2019-01-31T00:00:00.000000001"), None, b"x", {"a": 1}),
    ],
)
def test_what_is_no_value_names_its_column(value: Any) -> None:
    """And its type, but never what it is."""
    with pytest.raises(InvalidQuestion, match="expected") as raised:
        structured_question("t", "a", k=1, where={"c": value})
    assert "filters.c" == raised.value.field


def test_chunks_hold_every_row_once_in_order_and_stay_small() -> None:
    """Also where a few rows are much larger than the others."""
    values: list[Element] = [f"{number}" * (20_000 if number % 997 == 0 else 3) for number in range(20_000)]
    answer = EngineAnswer((values,), list(range(20_000, 0, -1)), "v")
    parts = list(chunks(TEXT, answer, histogram(TEXT, answer).ByteSize()))
    assert all(part.ByteSize() <= MAX_CHUNK_BYTES for part in parts)
    assert values == [value for part in parts for value in part.columns[0].strings.values]
    assert answer.counts == [count for part in parts for count in part.counts]


def test_a_single_huge_row_is_sent_alone() -> None:
    """It cannot be cut; dp_service decides about it."""
    answer = EngineAnswer((["x" * (2 * MAX_CHUNK_BYTES), "y"],), [2, 1], "v")
    parts = list(chunks(TEXT, answer, histogram(TEXT, answer).ByteSize()))
    assert [list(part.counts) for part in parts] == [[2], [1]]


def test_a_row_that_no_message_can_hold_is_incomplete() -> None:
    """gRPC would refuse it in words that blame the service."""
    answer = EngineAnswer((["x" * MAX_ROW_BYTES, "y"],), [2, 1], "v")
    with pytest.raises(IncompleteAnswer, match="too long"):
        list(chunks(TEXT, answer, histogram(TEXT, answer).ByteSize()))


@pytest.mark.parametrize(
    ("kind", "value"),
    [(ColumnType.INT64, "x"), (ColumnType.STRING, 1), (ColumnType.DATE, "x"), (ColumnType.INT64, 2**63)],
)
def test_a_value_of_another_type_is_incomplete_and_not_repeated(kind: ColumnType, value: Element) -> None:
    """protobuf's message would repeat the value."""
    with pytest.raises(IncompleteAnswer) as raised:
        histogram((ExpectedColumn("column", kind),), EngineAnswer(([value],), [1], "v"))
    assert raised.value.__suppress_context__


def test_plain_values_are_json() -> None:
    """Exact numbers stay exact, days are ISO 8601, and what has no plain form is an error."""
    assert to_json((Fraction(3, 20), datetime.date(2020, 1, 2), ColumnType.STRING)) == [
        "3/20",
        "2020-01-02",
        "string",
    ]
    with pytest.raises(TypeError):
        to_json(object())


def test_a_day_of_a_time_range_travels_as_a_day() -> None:
    """In whose zone it begins, only the policy knows; a time has a zone of its own."""
    noon = datetime.datetime(2025, 1, 1, 12, tzinfo=datetime.UTC)
    days = structured_question(
        "t", "a", k=1, time_range=(datetime.date(2025, 1, 1), datetime.date(1969, 12, 31))
    )
    found = days.structured.time_range
    assert (found.WhichOneof("start"), found.from_day) == ("from_day", 20_089)
    assert (found.WhichOneof("end"), found.to_day) == ("to_day", -1)
    half = structured_question("t", "a", k=1, time_range=(noon, None)).structured.time_range
    assert (half.WhichOneof("start"), half.WhichOneof("end")) == ("from", None)
    assert getattr(half, "from").ToDatetime(tzinfo=datetime.UTC) == noon


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"time_range": ("2025-01-01", None)}, "time_range"),
        ({"time_range": (datetime.date(2025, 1, 1),)}, "time_range"),
        ({"time_range": datetime.date(2025, 1, 1)}, "time_range"),
        ({"time_range": (datetime.datetime(2025, 1, 1, 6), None)}, "time_range"),
        ({"where": ["rating"]}, "where"),
    ],
)
def test_what_no_question_can_be_built_of_is_refused_by_its_name(changes: dict[str, Any], field: str) -> None:
    """And not by Python's own errors."""
    with pytest.raises(InvalidQuestion) as refusal:
        structured_question("t", "a", k=1, **changes)
    assert refusal.value.field == field
