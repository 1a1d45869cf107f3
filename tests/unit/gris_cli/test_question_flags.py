"""The flags of a question beside the fields of the message that it becomes."""

from __future__ import annotations

import pytest
import typer

from gris_cli.clients import audience_of
from gris_cli.flags import QuestionFlags
from gris_cli.question_arguments import question_of
from pinot_connector.audiences import Audience
from pinot_connector.errors import InvalidQuestion
from pinot_connector.questions import MEASURES, Measure, measure_text


@pytest.mark.parametrize("measure", Measure)
def test_everything_that_is_counted_has_a_name_in_the_flag(measure: Measure) -> None:
    """They are no type of the flags, for the message takes too long to load for `gris --help`."""
    named = measure_text(measure, "page")
    asked = question_of(QuestionFlags(table="t", count=named)).structured
    assert (asked.measure, asked.distinct_of) == (MEASURES[measure], "page" if ":" in named else "")


def test_a_measure_that_there_is_not_is_named() -> None:
    """Nor are distinct values counted without their column."""
    for wrong in ("distinct:", "members", "events:page"):
        with pytest.raises(InvalidQuestion, match="distinct:COLUMN"):
            question_of(QuestionFlags(table="t", count=wrong))


def test_a_flag_sets_the_field_that_it_stands_for() -> None:
    """Of a question with as many flags as one can have together."""
    flags = QuestionFlags(table="t", by=["a"], k=3, where=["b=1"], since="2019-01-01", count="events")
    stated = {field.name for field, _ in question_of(flags).structured.ListFields()}
    assert stated == {"table", "dimensions", "k", "condition", "time_range", "measure"}


def test_a_function_of_a_row_is_one_flag_whatever_commas_it_has() -> None:
    """Several names in one flag are refused, and a function is no list of them."""
    functions = ["WIDTH_BUCKET(n, 0, 9, 3)", "CASE WHEN n IN (1, 2) THEN 'a, b' END", "DATE_TRUNC('day', at)"]
    assert list(question_of(QuestionFlags(table="t", by=functions)).structured.dimensions) == functions


def test_an_audience_is_a_name_and_values() -> None:
    """Nothing is none; a value may be empty or have a sign of its own, and a key may not be missing."""
    assert audience_of("") is None
    assert audience_of("staff") == Audience("staff")
    assert audience_of("tenant,who=a=b,area=") == Audience("tenant", {"who": "a=b", "area": ""})
    for text in (",who=a", "tenant,who", "tenant,=a"):
        with pytest.raises(typer.BadParameter, match="expected NAME"):
            audience_of(text)
