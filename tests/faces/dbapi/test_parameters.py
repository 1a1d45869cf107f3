"""A parameter is a value and never more: what is bound is read back by dp_service's own parser."""

from __future__ import annotations

import datetime
import enum
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import Filter, In, NotIn, Range, Value
from dp_service.queries.policy import parse_policy
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from pinot_connector.dbapi.parameters import bound
from pinot_connector.errors import InvalidQuestion
from tests.support.examples import examples
from tests.support.world import POLICY as POLICY_TEXT

POLICY = parse_policy(POLICY_TEXT)
HEAD = "SELECT cohort, COUNT(DISTINCT member_id) FROM feedback WHERE"
TAIL = "GROUP BY cohort"
TEXTS = [
    "it's",
    "''",
    "'",
    "\\",
    "\\'",
    "%",
    "%%",
    "%s",
    "%(p)s",
    "%%(p)s",
    "*",
    "",
    " ",
    '"',
    "' OR member_id = 'x",
    "x'; SET numGroupsLimit=1; --",
    "/* */ -- //",
    "é€😀\u202e\u00a0",
    "\u02bc\uff07",  # look-alikes of the quote
    "\n\t\r",
    "{}{0}$1?:p",
    "NULL",
    "2019-01-01",
]
_Texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


class Colour(str, enum.Enum):  # noqa: UP042 - StrEnum prints what it holds
    """A text that calls itself something else."""

    RED = "red's"


class Level(enum.IntEnum):
    """An integer that calls itself something else."""

    HIGH = 3


def read(condition: str, **parameters: object) -> tuple[Filter, ...]:
    """Returns the filters that dp_service reads once the parameters are bound."""
    return parse_sql(bound(f"{HEAD} {condition} {TAIL}", parameters), POLICY).filters


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (datetime.datetime(2026, 3, 29), "DATE '2026-03-29'"),
        (datetime.datetime(2026, 3, 29, 6), "TIMESTAMP '2026-03-29 06:00:00'"),
        (datetime.datetime(2026, 3, 29, tzinfo=BERLIN), "TIMESTAMP '2026-03-28 23:00:00+00:00'"),
        (
            datetime.datetime(2026, 10, 25, 2, 30, 0, 1, tzinfo=BERLIN, fold=1),
            "TIMESTAMP '2026-10-25 01:30:00.000001+00:00'",
        ),
    ],
)
def test_a_timestamp_with_a_zone_is_written_in_utc(value: datetime.datetime, literal: str) -> None:
    """One without a zone is left as it is, for dp_service reads it in the zone of the column; midnight is its day."""
    assert f"at >=  {literal} " == bound("at >= %(p)s", {"p": value})


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_arrives_as_it_is(text: str) -> None:
    """Quotes, per cent signs, backslashes, stars and other alphabets are nothing special."""
    assert (In("cohort", (text,)),) == read("cohort = %(p)s", p=text)


@pytest.mark.slow
@given(_Texts, _Texts)
def test_any_two_texts_arrive_as_they_are(first: str, second: str) -> None:
    """One beside the other, neither changes where the other ends."""
    expected = (In("cohort", (first,)), NotIn("app", (second, first)))
    assert expected == read("cohort=%(a)s AND app NOT IN (%(b)s,%(a)s)", a=first, b=second)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("score", 0, 0),
        ("score", -1, -1),
        ("score", 2**63 - 1, 2**63 - 1),
        ("score", -(2**63), -(2**63)),
        ("score", np.int64(-(2**63)), -(2**63)),
        ("score", np.uint8(200), 200),
        ("score", Level.HIGH, 3),
        ("score", 3.0, 3),
        ("score", Decimal("3.00"), 3),
        ("score", np.float32(3), 3),
        ("day", pd.Timestamp("2019-01-31"), datetime.date(2019, 1, 31)),
        ("day", np.datetime64("2019-01-31", "ns"), datetime.date(2019, 1, 31)),
        ("day", datetime.date(2019, 1, 31), datetime.date(2019, 1, 31)),
        ("day", datetime.date(1, 1, 1), datetime.date(1, 1, 1)),
        ("cohort", Colour.RED, "red's"),
    ],
)
def test_other_values_arrive_as_they_are(column: str, value: object, expected: Value) -> None:
    """Integers to the last of 64 bits, days, and values of classes that print themselves in another way."""
    assert (In(column, (expected,)),) == read(f"{column} = %(p)s", p=value)


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_integer(value: bool) -> None:
    """It is written as TRUE or FALSE, which a column of integers refuses."""
    for each in (value, np.bool_(value)):
        assert f"x =  {str(value).upper()} " == bound("x = %(p)s", {"p": each})
    with pytest.raises(QuestionError, match="expected integers"):
        read("score = %(p)s", p=value)


def test_lists_and_tuples_are_for_in() -> None:
    """Their values arrive one by one, in the parentheses that the question has."""
    expected = (In("score", (-1, 1)), NotIn("cohort", ("a'b", "%")))
    for scores in ([-1, 1], np.array([-1.0, 1.0]), pd.Series([-1, 1]), pd.Index([-1, 1])):
        actual = read("score IN (%(s)s) AND cohort NOT IN ( %(c)s )", s=scores, c=("a'b", "%"))
        assert expected == actual
    assert (In("score", (3,)),) == read("score IN (%(s)s)", s={3})


def test_parameters_can_stand_in_between_and_in_limit() -> None:
    """Wherever a literal may stand."""
    first, last = datetime.date(2019, 1, 1), datetime.date(2019, 1, 31)
    (between,) = read("day BETWEEN %(first)s AND %(last)s", first=first, last=last)
    assert isinstance(between, Range)
    sql = bound(f"{HEAD} score > %(least)s {TAIL} LIMIT %(k)s", {"least": -5, "k": 7})
    assert 7 == parse_sql(sql, POLICY).k


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "a text, a 64-bit integer"),
        (1.5, "a text, a 64-bit integer.*got float"),
        (float("nan"), "a text, a 64-bit integer"),
        (Decimal("1.5"), "a text, a 64-bit integer.*got Decimal"),
        (b"secret", "a text, a 64-bit integer"),
        (datetime.datetime(1, 1, 1, tzinfo=BERLIN), "a timestamp between the years 1 and 9999"),
        (datetime.time(1), "a text, a 64-bit integer"),
        ({"secret": 1}, "a text, a 64-bit integer"),
        (2**63, "a 64-bit integer.*got a larger integer"),
        (np.uint64(2**63), "a 64-bit integer.*got a larger integer"),
        (np.float64(1.5), "a text, a 64-bit integer"),
        (2.0**60, "as int: a float changes them"),
        (-(2**63) - 1, "a 64-bit integer.*got a larger integer"),
        ("\ud800secret", "without lone surrogates"),
        (["secret", None], "one value, or one value or more for IN"),
        ([], "one value, or one value or more for IN"),
    ],
)
def test_what_is_no_value_is_refused_by_name(value: object, expected: str) -> None:
    """The message names the parameter and what was expected, and does not repeat the value."""
    with pytest.raises(InvalidQuestion, match=expected) as raised:
        bound(f"{HEAD} cohort = %(p)s {TAIL}", {"p": value})
    assert "parameters.p" == raised.value.field
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("value", [None, 1.5, [1], "\ud800"])
def test_what_is_no_value_is_refused_in_a_list(value: object) -> None:
    """Also after values that are accepted."""
    with pytest.raises(InvalidQuestion):
        bound("x IN (%(p)s)", {"p": [1, value]})


@pytest.mark.parametrize("operation", ["LIMIT %(p)s", "x = %(p)s)", "(%(p)s", "x IN (1, %(p)s)"])
def test_a_list_stands_alone_in_parentheses(operation: str) -> None:
    """Elsewhere two values where one is expected could mean something else, as in LIMIT 5, 10."""
    with pytest.raises(InvalidQuestion, match=r"IN \(%\(p\)s\)"):
        bound(operation, {"p": [5, 10]})


@pytest.mark.parametrize("operation", ["x = '%(p)s'", "x = 'a%(p)sb'", 'x = "%(p)s"', "'%%%(p)s'"])
def test_a_placeholder_in_quotes_is_refused(operation: str) -> None:
    """There a value could end the quotes."""
    with pytest.raises(InvalidQuestion, match="outside of quotes"):
        bound(operation, {"p": "' OR '' = '"})


@pytest.mark.parametrize("operation", ["x = 'a %(p)s", 'x = "a %(p)s', "x = 'a'' AND y = %(p)s", "it's"])
def test_a_quote_that_does_not_end_is_refused(operation: str) -> None:
    """It would end where a value begins."""
    with pytest.raises(InvalidQuestion, match="end of every quoted word"):
        bound(operation, {"p": "' OR '' = '"})


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("a '50%' b", "a '50%' b"),
        ("a '50%%' b", "a '50%' b"),
        ("a '%%(p)s' b", "a '%(p)s' b"),
        ("a %%(p)s b", "a %(p)s b"),
        ("a % b", "a % b"),
        ("a '' b", "a '' b"),
    ],
)
def test_per_cent_signs_are_read_as_pinotdb_reads_them(operation: str, expected: str) -> None:
    """Two are one, one stays, with parameters and without."""
    assert expected == bound(operation, None) == bound(operation, {"p": "x"})


def test_a_missing_parameter_is_named() -> None:
    """With other parameters, or with none at all."""
    for parameters in ({"other": 1}, None):
        with pytest.raises(InvalidQuestion, match="a value for this placeholder") as raised:
            bound("x = %(p)s", parameters)
        assert "parameters.p" == raised.value.field


@pytest.mark.parametrize("parameters", [["x"], ("x",), "x", 1])
def test_parameters_come_by_name(parameters: object) -> None:
    """A sequence of values for %s is not what this module takes."""
    with pytest.raises(InvalidQuestion, match=r"for %\(name\)s"):
        bound("x = %s", parameters)  # type: ignore[arg-type]  # the mistake that is tested


FRAGMENTS = [
    *(
        "%(p)s",
        " %(p)s ",
        "%(p)s%(p)s",
        "'",
        "''",
        '"',
        "%",
        "%%",
        "%(",
        ")s",
        "(",
        ")",
        "-",
        "--",
        "/*",
        "*/",
    ),
    *(
        "'a'",
        '"cohort"',
        " cohort ",
        "=",
        "<>",
        " IN ",
        " NOT IN ",
        " AND ",
        ",",
        "-1",
        "DATE ",
        "N",
        "E",
        "U&",
    ),
    *(" app ", " score ", " LIMIT ", " OR ", "\\", "\n", "{", "`", "$$"),
]


def outcome(operation: str, text: str) -> HistogramQuery | None:
    """Returns the question that dp_service reads, or None if it reads none."""
    try:
        return parse_sql(bound(operation, {"p": text}), POLICY)
    except (InvalidQuestion, QuestionError, RefusedByPolicyError):
        return None


def shape(query: HistogramQuery | None, text: str) -> object:
    """Returns a question with the parameter's value taken out, wherever it stands whole."""
    if query is None:
        return None
    filters = [
        (type(each), each.column, [value == text or value for value in each.values])
        for each in query.filters
        if isinstance(each, In | NotIn)
    ]
    return (query.table, query.dimensions, query.measure, query.k, len(query.filters), filters)


_Fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=3).map("".join)


@pytest.mark.slow
@settings(max_examples=examples(800), deadline=None)
@given(_Fragments, _Fragments, _Texts, st.sampled_from(TEXTS))
def test_no_text_changes_the_structure_of_any_question(
    before: str, after: str, first: str, second: str
) -> None:
    """However odd the SQL around it: two texts give two questions that differ in that value alone, or none."""
    assume("a" not in (first, second))  # it stands in the fragments
    operation = f"{HEAD} cohort = {before}%(p)s{after} {TAIL}"
    shapes = [shape(outcome(operation, text), text) for text in (first, second)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    "operation",
    [
        "SELECT 1 -- %(p)s",
        "SELECT 1 /* %(p)s */",
        "SELECT 1 /*\n%(p)s\n*/",
        "SELECT `%(p)s`",
        "SELECT 1 -- ' %(p)s '",
        "SELECT 1 /* %(p)s",
        "SELECT `%(p)s",
    ],
)
def test_a_placeholder_in_a_comment_or_in_backquotes_is_refused(operation: str) -> None:
    """There a value could end them: a new line ends one comment, and */ the other."""
    with pytest.raises(InvalidQuestion, match="quote"):
        bound(operation, {"p": "x"})


@pytest.mark.parametrize("comment", ["-- don't\n", "/* don't */", '-- 5" %%\n', "-- `\r", "/* -- ' */"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_quote_in_a_comment_quotes_nothing(comment: str, text: str) -> None:
    """What stands behind it is bound as without it."""
    plain = f"{HEAD} cohort = %(p)s {TAIL}"
    commented = bound(f"{HEAD} {comment} cohort = %(p)s {TAIL}", {"p": text})
    assert parse_sql(commented, POLICY) == parse_sql(bound(plain, {"p": text}), POLICY)
    with pytest.raises(InvalidQuestion):
        bound(f"{HEAD} {comment} cohort = '%(p)s' {TAIL}", {"p": text})
