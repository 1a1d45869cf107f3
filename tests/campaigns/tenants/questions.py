"""Random questions of tenants: about what they are offered, what others are, what nobody is, and what is none."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from gris_api.dp.v1 import question_pb2
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import AllOf, AnyOf, Filter, In, NotIn
from dp_service.queries.policy import parse_policy
from dp_service.queries.structured import HistogramQuery
from pinot_connector import questions as asked
from pinot_connector.questions import column_filter, structured_question
from tests.support.queries.mutating import mutated
from tests.support.queries.sql_writer import spelled
from tests.support.queries.strategies import alternatives, conditions, questions_and_totals

from .stage import NAMES, policy

_WHOLE = parse_policy(policy(dict.fromkeys(("t", "payroll"), ("text", "number", "flag", "day"))))
_NAME = re.compile(r"\b(?:text|number|flag|day|payroll|t)\b")
_MEASURES = {
    Measure.DISTINCT_MEMBERS: asked.Measure.DISTINCT_MEMBERS,
    Measure.EVENTS: asked.Measure.EVENTS,
}


@dataclass(frozen=True)
class Asked:
    """A question, and by its number how it is written: as a message, or in SQL, two in fourteen of it changed."""

    query: HistogramQuery
    number: int

    @property
    def is_sound(self) -> bool:
        """Whether it means the query, and is not changed."""
        return self.number % 14 > 1

    def question(self, forced: tuple[In, ...] = ()) -> question_pb2.Question:
        """Return the question with conditions that it states beside its own."""
        query = replace(self.query, filters=(*self.query.filters, *forced))
        if self.number % 3 == 0 and self.is_sound and (structured := _structured(query)) is not None:
            return structured
        random = Random(self.number)
        text = spelled(query, _WHOLE.table(query.table), random)
        if self.number % 14 == 0:
            text = mutated(text, random)
        elif self.number % 14 == 1:
            name = random.choice([*_NAME.finditer(text)])
            text = text[: name.start()] + _slip(name[0], random) + text[name.end() :]
        return question_pb2.Question(sql=text)


def _slip(name: str, random: Random) -> str:
    """Return a name with a letter doubled, left out or exchanged, or as it is."""
    at = random.randrange(len(name))
    return random.choice(
        [
            *(name, name + name[-1], name[:at] + name[at] + name[at:], name[:at] + "x" + name[at + 1 :]),
            *([name[:at] + name[at + 1 :]] if len(name) > 1 else []),
        ]
    )


def _structured(query: HistogramQuery) -> question_pb2.Question | None:
    """Return a question as a message, if its conditions are lists of values of columns; None: it is none."""
    if query.time_range is not None or not all(isinstance(each, str) for each in query.dimensions):
        return None
    if not all(isinstance(each, In | NotIn) for each in query.filters):
        return None
    measure = query.measure
    if not isinstance(measure, Measure):
        return None
    question = structured_question(
        query.table, [str(each) for each in query.dimensions], k=query.k, measure=_MEASURES[measure]
    )
    for each in query.filters:
        if isinstance(each, In | NotIn):
            kind = asked.In if isinstance(each, In) else asked.NotIn
            question.structured.filters.append(column_filter(each.column, kind(each.values)))
    return question


_NAMED = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)
_OF_TENANTS = st.builds(In, st.just("text"), _NAMED) | st.builds(NotIn, st.just("text"), _NAMED)
_PARTS = st.one_of(conditions(), alternatives(), _OF_TENANTS)


@st.composite
def _filters(draw: st.DrawFn) -> tuple[Filter, ...]:
    """Draw no condition, one, or one of tenants within others."""
    match draw(st.integers(0, 5)):
        case 0 | 1:
            return ()
        case 2:
            return (draw(_PARTS),)
        case 3:
            return (draw(_OF_TENANTS),)
        case 4:
            return (AnyOf((draw(_PARTS), draw(_OF_TENANTS), draw(_PARTS))),)
        case _:
            return (AnyOf((AllOf((draw(_OF_TENANTS), draw(_PARTS))), draw(_PARTS))),)


QUERIES = st.builds(
    lambda query, filters, table, k, in_time: replace(
        query,
        table=table,
        filters=filters,
        k=k if query.dimensions else None,
        time_range=query.time_range if in_time else None,
    ),
    questions_and_totals(),
    _filters(),
    st.sampled_from([*["t"] * 6, "payroll"]),
    st.integers(1, 8),
    st.integers(0, 5).map(lambda each: each == 0),
)
