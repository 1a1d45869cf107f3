"""A policy says in full how a table takes in a stream, or is refused."""

import pytest

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import ClosedStream, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds.views import ExpectedAccuracy
from dp_service.releases.saying import of_question
from tests.support.statements import texts

DAY = 86_400


def policy(time: str, *names: str) -> str:
    """Return the text of a policy with these tables, of which the first has this time column."""
    tables = "".join(
        f"""  {name}:
    member: m
    measures: {{distinct_members: true}}
    {time if name == names[0] else "time: {column: day, type: date, refresh: day, delay_minutes: 9}"}
    columns: {{c: {{type: string, group_by: true, domain: [a, b]}}}}
"""
        for name in names
    )
    return f"epsilon_per: 1\ndelta: 1e-6\ntables:\n{tables}"


def time(stated: str) -> str:
    """Return the time column of a table."""
    return f"time: {{column: day, type: date{stated}}}"


@pytest.mark.parametrize(
    "stated",
    [
        "",
        ", complete_by: offsets",
        ", complete_by: delay, replaced_rows: until_closed",
        ", complete_by: offsets, replaced_rows: until_closed_by_same_member",
    ],
)
def test_a_question_says_what_must_be_in(stated: str) -> None:
    """It is about the days before the first one that is not closed; a table without a stream asks for nothing."""
    text = policy(time(f", refresh: day, delay_minutes: 60{stated}"), "t")
    question = HistogramQuery("t", ("c",), Measure.DISTINCT_MEMBERS, k=1)
    for now, end in ((100 * DAY + 3599, 99), (100 * DAY + 3600, 100)):
        resolution = resolve(question, parse_policy(text), now=now)
        assert resolution.fixed_data_version == f"closed:{end}:"
        if not stated:
            assert resolution.stream is None
        else:
            found, of_table = resolution.stream, parse_policy(text).table("t").time
            assert found is not None
            assert of_table is not None
            assert found == ClosedStream(of_table, found.start, end, "m")
            assert found.start < 0


@pytest.mark.parametrize(
    ("stated", "promised"),
    [
        ("offsets", ["up to where the stream ended"]),
        (
            "delay, replaced_rows: until_closed",
            ["by the time a period is closed is a promise", "of which the member is a part"],
        ),
        (
            "delay, replaced_rows: until_closed_by_same_member",
            [
                "by the time a period is closed is a promise",
                "each only by one of the same member, is a promise",
            ],
        ),
    ],
)
def test_a_promise_is_said_in_the_explanation(stated: str, promised: list[str]) -> None:
    """An account sees what is only promised."""
    text = policy(time(f", refresh: day, delay_minutes: 60, complete_by: {stated}"), "t")
    question = HistogramQuery("t", ("c",), Measure.DISTINCT_MEMBERS, k=1)
    lines = texts(
        of_question(resolve(question, parse_policy(text), now=100 * DAY), Cost(1, 0), ExpectedAccuracy())
    )
    assert all(any(each in line for line in lines) for each in promised)
    assert len(promised) == sum("stream" in line or "replace" in line for line in lines)


@pytest.mark.parametrize(
    ("stated", "names", "problem"),
    [
        (", refresh: day, complete_by: offsets", ["t"], r"tables\.t\.time\.delay_minutes: expected how many"),
        (", complete_by: offsets", ["t"], r"tables\.t\.time\.complete_by: expected a refresh period as well"),
        (
            ", refresh: day, delay_minutes: 9, complete_by: now",
            ["t"],
            r"tables\.t\.time\.complete_by: expected",
        ),
        (
            ", refresh: day, delay_minutes: 9, replaced_rows: until_closed",
            ["t"],
            r"tables\.t\.time\.replaced_rows: expected complete_by",
        ),
        (
            ", refresh: day, delay_minutes: 9, complete_by: delay, replaced_rows: never",
            ["t"],
            r"tables\.t\.time\.replaced_rows: expected",
        ),
        *(
            (f", refresh: day, delay_minutes: 9, complete_by: {by}", names, problem)
            for by in ("offsets", "delay")
            for names, problem in (
                (["t", "t_OFFLINE"], r"tables\.t_OFFLINE: expected one of t and t_OFFLINE"),
                (["t", "t_REALTIME"], r"tables\.t_REALTIME: expected one of"),
                (
                    ["t_OFFLINE"],
                    r"tables\.t_OFFLINE\.time\.complete_by: expected the name of the whole table, t:",
                ),
                (
                    ["t_REALTIME"],
                    r"tables\.t_REALTIME\.time\.complete_by: expected the name of the whole table, t:",
                ),
            )
        ),
    ],
)
def test_a_stream_that_is_not_fully_stated_is_refused(stated: str, names: list[str], problem: str) -> None:
    """The error names line and key, and what was expected."""
    with pytest.raises(PolicyError, match=problem):
        parse_policy(policy(time(stated), *names))


def test_both_parts_may_be_named_where_neither_is_a_stream() -> None:
    """On other engines a name with a type is a name like any other."""
    parsed = parse_policy(policy(time(", refresh: day, delay_minutes: 9"), "t", "t_OFFLINE"))
    assert [table.name for table in parsed.tables] == ["t", "t_OFFLINE"]
