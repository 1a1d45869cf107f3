"""The short form of the campaign `fuzz`, texts that are as long as they may be, and proof that the checks can fail."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import pytest

from dp_service.queries.errors import QuestionError
from dp_service.queries.filters import Range
from dp_service.queries.sql import conditions
from dp_service.queries.sql.places import MAXIMUM_LENGTH
from tests.campaigns.fuzz.__main__ import fuzz
from tests.campaigns.fuzz.checking import checked, work_allowed, work_of
from tests.campaigns.fuzz.mutating import CANARY_TEXT, UNSOUND


@pytest.mark.slow
def test_of_two_thousand_mutated_texts_none_slips_through() -> None:
    """Accepted as one structured form or refused with a reason; the seed is fixed, so this is one set of texts."""
    reasons = fuzz(2000, seed=7)
    assert reasons[None] > 50
    assert len(reasons) > 40


def test_every_text_that_is_known_to_be_refused_is_refused() -> None:
    """The seeds of the unsound part are all unsound."""
    assert all(checked(text) is not None for text in UNSOUND)


HEAD, TAIL = "SELECT article_id, COUNT(*) FROM engagement WHERE", "GROUP BY article_id LIMIT 1"
LONGEST = {
    "values": f"{HEAD} score IN ({','.join(str(i) for i in range(1000))}) {TAIL}",
    "texts": f"{HEAD} article_id IN ({','.join(repr('x' * 6) for _ in range(1000))}) {TAIL}",
    "array": f"{HEAD} score = ANY(ARRAY[{','.join(str(i) for i in range(1000))}]::int[]) {TAIL}",
    "array as a text": f"{HEAD} article_id = ANY('{{{',' * 9000}}}') {TAIL}",
    "casts of an array": f"{HEAD} score = ANY(ARRAY[{'1,' * 2000}1]{'::int[]' * 1000}) {TAIL}",
    "joined texts": f"{HEAD} article_id = 'x'{(chr(124) * 2 + chr(39) * 2) * 300} {TAIL}",
    "conditions": f"{HEAD} {' AND '.join(['score<>1'] * 750)} {TAIL}",
    "parentheses": f"{HEAD} {'((((score<>1)))) AND ' * 400} score<>1 {TAIL}",
    "open parentheses": f"{HEAD} {'(' * 9000}",
    "dimensions": f"SELECT {','.join(['article_id'] * 700)}, COUNT(*) FROM engagement {TAIL}",
    "order": f"SELECT article_id, COUNT(*) FROM engagement {TAIL[:19]} ORDER BY 2 DESC{', 1' * 2500}",
    "quotes": f"{HEAD} article_id = '{chr(39) * 9000}' {TAIL}",
    "odd quotes": f"{HEAD} article_id = {chr(39) * 9001}",
    "spaces": f"{HEAD} score{' ' * 9800}= 1 {TAIL}",
    "digits": f"{HEAD} score = {'9' * 9800} {TAIL}",
    "minus signs": f"{HEAD} score = {'- ' * 4800}1 {TAIL}",
    "NOTs": f"{HEAD} {'NOT ' * 2400} score IN (1) {TAIL}",
    "a long name": f"{HEAD} {'a' * 9800} = 1 {TAIL}",
    "betweens": f"{HEAD} {'score BETWEEN 1 AND 2 AND ' * 370} score = 1 {TAIL}",
    "one word": "SELECT " + "a " * 4900,
    "commas": "SELECT " + "," * 9900,
    "stars": "SELECT " + "*" * 9900,
    "comparisons": f"{HEAD} score {'= 1 ' * 2400} {TAIL}",
    "statements": "SELECT 1;" * 1100,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LONGEST.values(), ids=LONGEST.keys())
def test_the_longest_texts_are_work_in_proportion_to_their_length(text: str) -> None:
    """Nobody keeps the service busy with a text; counted in calls of functions, which no machine changes."""
    assert len(text) <= MAXIMUM_LENGTH
    assert work_of(text) <= work_allowed(text)
    checked(text)


@pytest.mark.slow
def test_a_condition_that_changes_its_meaning_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: here every `<` is read as `<=`."""
    read_as_written = conditions._Filters._comparison

    def careless(*arguments: object) -> object:
        found = read_as_written(*arguments)  # type: ignore[arg-type]
        if isinstance(found, Range) and found.upper is not None:
            return Range(found.column, None, type(found.upper)(found.upper.value))
        return found

    monkeypatch.setattr(conditions._Filters, "_comparison", careless)
    with pytest.raises(AssertionError, match=r"an engine reads the text otherwise|another question"):
        fuzz(2000, seed=6)


def test_a_refusal_that_repeats_a_literal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: here the error repeats the canary of a text."""

    def talkative(text: str) -> str:
        raise QuestionError("sql", f"cannot read {text}")

    monkeypatch.setattr("dp_service.queries.sql.tokens_of", talkative)
    with pytest.raises(AssertionError, match="repeats a literal"):
        checked(f"SELECT '{CANARY_TEXT}'")


def test_a_crash_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: an error of another kind is no refusal."""
    monkeypatch.setattr("dp_service.queries.sql.tokens_of", lambda _: str(1 // 0))
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        fuzz(1, seed=7)
