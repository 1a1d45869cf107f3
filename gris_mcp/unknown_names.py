"""Names of a question that its table does not have, and values that a listed domain has in other letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gris_mcp.arguments import Question
from gris_mcp.naming import is_plain, no_such
from pinot_connector.catalog import TableEntry, TimeEntry
from pinot_connector.shown_values import ShownScalar

_PLAIN_PARTS = ("hour", "day", "week", "month", "quarter")
_PARTS = {"weekday": "ISODOW", "dow": "ISODOW", "day_of_week": "ISODOW", "isodow": "ISODOW"}


@dataclass(frozen=True)
class Unknown:
    """What is not known of a question.

    Attributes:
        place: The field in which it stands.
        problem: What is said of it.
        example: Arguments instead; empty: those of the field.
    """

    place: str
    problem: str
    example: dict[str, Any] = field(default_factory=dict)


def unknown_of(asked: Question, table: TableEntry) -> Unknown | None:
    """Return the first that a table does not know of a structured question; None: it knows all."""
    return next(_unknown(asked, table), None)


def _unknown(asked: Question, table: TableEntry) -> Iterator[Unknown]:
    columns, sums, quantiles = (
        [each.name for each in named] for named in (table.columns, table.values, table.quantiles)
    )
    time = [] if table.time is None else [table.time.column]
    named = {*columns, *sums, *quantiles, *time}
    words = [_word(each, [*time, *sums]) for each in asked.by]
    for place, each in enumerate(asked.by):
        if each not in named and words[place] in _time_words(table.time):
            yield _of_time(place, words, asked.by, table.time)
        elif each not in named and is_plain(each):
            yield _no_column(f"by[{place}]", each, columns, table)
    counted = (asked.measure or "").partition("distinct:")[2]
    distinct = [each.distinct_of for each in table.measures if each.distinct_of]
    for where, name, known, others in (
        *((f"where[{place}].column", each.column, columns, named) for place, each in enumerate(asked.where)),
        *((f"sums[{place}]", each, sums, ()) for place, each in enumerate(asked.sums)),
        *((f"averages[{place}]", each, sums, ()) for place, each in enumerate(asked.averages)),
        *(
            (f"quantiles[{place}].column", each.column, quantiles, ())
            for place, each in enumerate(asked.quantiles)
        ),
        ("totals_by", asked.totals_by, columns, named),
        ("measure", counted, distinct, ()),
    ):
        if name and name not in (*known, *others):
            yield _no_column(where, name, known, table)
    yield from _in_other_letters(asked, table)


def _no_column(where: str, name: str, known: Sequence[str], table: TableEntry) -> Unknown:
    if name == table.member and where != "measure":
        problem = (
            f"{name}: the member column is only counted, neither grouped by nor summed, and in no condition"
        )
        return Unknown(where, problem)
    return Unknown(
        where, no_such("column", name, known, here="of this kind" if name in _names(table) else "")
    )


def _names(table: TableEntry) -> set[str]:
    return {each.name for named in (table.columns, table.values, table.quantiles) for each in named}


def _word(written: str, columns: Sequence[str]) -> str:
    """Return the word of time in what is to be grouped by; empty: there is none."""
    word, _, of = written.partition(":")
    return word.lower() if of in ("", *columns) else ""


def _time_words(time: TimeEntry | None) -> set[str]:
    if time is None:
        return set()
    return {*time.buckets, *(each for each in (*_PARTS, *_PLAIN_PARTS) if _part(each, time))}


def _of_time(place: int, words: Sequence[str], by: Sequence[str], time: TimeEntry | None) -> Unknown:
    """Return how to group by a bucket, or by a part, of the time column, of which the table offers one."""
    if time is None:
        raise AssertionError("only a table with a time column has words of time")
    word, parts = words[place], [_part(each, time) for each in words]
    bucket = f"{word}:{time.column}"
    ways = [
        *([f'bucket "{bucket}" for each {word} of each year'] if word in time.buckets else []),
        *([f'by ["{parts[place]}"] for what comes again'] if parts[place] else []),
    ]
    example = {"by": [part or each for part, each in zip(parts, by, strict=True)]}
    if not parts[place]:
        example = {"by": [each for each in by if each != by[place]], "bucket": bucket}  # type: ignore[dict-item]
    return Unknown(f"by[{place}]", f"there is no column {word}; expected {' or '.join(ways)}", example)


def _part(word: str, time: TimeEntry) -> str:
    part = f"EXTRACT({_PARTS.get(word, word.upper())} FROM {time.column})"
    return part if part in time.parts else ""


def _in_other_letters(asked: Question, table: TableEntry) -> Iterator[Unknown]:
    """Yield values of which the listed domain has one in other letters."""
    domains = {each.name: each.domain for each in table.columns if each.domain}
    for place, condition in enumerate(asked.where):
        domain = domains.get(condition.column, ())
        for name, value in condition.values():
            meant = _alike(value, domain)
            if name.startswith(("one_of", "none_of")) and value not in domain and meant:
                problem = f"expected a value of the column's domain (did you mean {meant}?)"
                example = {"where": [{"column": condition.column, name.partition("[")[0]: [meant]}]}
                yield Unknown(f"where[{place}].{name}", problem, example)


def _alike(value: object, domain: tuple[ShownScalar, ...]) -> str:
    folded = str(value).casefold()
    return next((each for each in domain if isinstance(each, str) and each.casefold() == folded), "")
