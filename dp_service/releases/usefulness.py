"""Whether an answer can say anything: its noise beside the largest numbers that public sizes allow.

Nothing here reads data. If it did, a refusal, which is free, would tell how large a number is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.numbers import THE_COUNT, Average, Plain
from dp_service.queries.canonical_query import CanonicalQuery, QueryDistinct
from dp_service.queries.errors import QuestionError
from dp_service.queries.max_error import ANYWAY, MAX_ERROR
from dp_service.queries.suggestions import asking
from dp_service.queries.table_contributions import Sums
from dp_service.queries.tables import Table
from dp_service.releases.kinds import AnyKind
from dp_service.releases.statements import Statement
from dp_service.terms import CountNoise

COARSER = "Ask for coarser groups or more units"


@dataclass(frozen=True)
class PublicSizes:
    """What is public of how large the numbers of a question can be.

    Attributes:
        table: What the policy states of the table's size; None: nothing.
        values: How many distinct values the question's conditions on their column allow; None: it counts no values, or
            any number of them. Values that the policy does not list are counted too.
        instead: What to ask instead of counts that noise leaves nothing of.
    """

    table: Sums | None
    values: int | None
    instead: str


def public_sizes(query: CanonicalQuery, table: Table) -> PublicSizes:
    """Return what is public of how large the numbers of a question can be."""
    stated = None if table.contributions is None else table.contributions.sums
    if not isinstance(query.measure, QueryDistinct):
        return PublicSizes(stated, None, COARSER)
    column = table.column(query.measure.column.name)
    sizes = [each.size for each in query.restrictions if each.column.name == column.name]
    is_listable = column.group_by and column.of_member_within is not None and table.measures.distinct_members
    listing = asking(f"COUNT(DISTINCT {table.member})", table.name, [column.name])
    return PublicSizes(
        stated,
        min((each for each in sizes if each is not None), default=None),
        f"Ask which values there are instead: {listing}" if is_listable else COARSER,
    )


@dataclass(frozen=True)
class TypicalError:
    """The standard deviation of a number's noise, and the largest value that public sizes allow; None: none are stated.

    That of an average is of one `over` all members or rows that the policy allows for: over fewer it is larger. Where
    the error is too large, `instead` says what to ask.
    """

    number: str
    error: float
    most: float | None
    instead: str
    over: int = 1

    @property
    def is_too_large(self) -> bool:
        """Whether it exceeds half of the largest value."""
        return self.most is not None and 2 * self.error > self.most

    def __str__(self) -> str:
        of = "" if self.most is None else f" of at most {_short(self.most)}"
        if self.over == 1 or self.is_too_large:
            return f"{_short(self.error)} on {self.number}{of}"
        return f"{_short(self.error * self.over)} divided by how many it is of, on {self.number}{of}"


def require_useful(errors: list[TypicalError], max_error: str) -> None:
    """Refuse a question of whose numbers one is lost in noise, before anything is charged.

    Raises:
        QuestionError: One is, and the question does not say that it is asked anyway.
    """
    worst = next((each for each in errors if each.is_too_large), None)
    if worst is not None and max_error != ANYWAY:
        raise QuestionError(
            MAX_ERROR,
            f"too noisy to be of use: typical error {worst}; with OPTION({MAX_ERROR}={ANYWAY}) it is asked. "
            f"{worst.instead}",
        )


def verdict(errors: list[TypicalError]) -> Iterator[Statement]:
    """Yield in one sentence what to expect of an answer."""
    if not errors:
        return
    lost = [each for each in errors if each.is_too_large]
    said = "; ".join(map(str, lost or errors))
    text = f"Too noisy to be of use: typical error {said}." if lost else f"Typical error: {said}."
    yield Statement("accuracy.verdict", text, values=tuple(_short(each.error) for each in lost or errors))


def typical_errors(kind: AnyKind, public: PublicSizes) -> Iterator[TypicalError]:
    """Yield how far noise moves each number of an answer.

    Args:
        kind: The kind of the answer.
        public: How large numbers can be.
    """
    asked, sizes = kind.parameters, public.table
    if (scale := kind.noise_scale) is not None:
        bounded = asked.contributions
        rows = asked.tau if bounded is not None and bounded.of_events else None
        # The variance of Laplace noise is twice its scale in square.
        error = float(scale) * (sqrt(2) if asked.count_noise is CountNoise.LAPLACE else 1)
        bounds = [public.values, None if sizes is None else _counted(rows, sizes)]
        most = min((each for each in bounds if each is not None), default=None)
        yield TypicalError("counts", error, most, public.instead)
    if asked.sums is None:
        return
    for number in asked.sums.asked:
        match number.form:
            case Plain(place) if place != THE_COUNT:
                column = asked.sums.columns[place]
                total = None if sizes is None else _largest(column) * _counted(column.rows, sizes)
                yield TypicalError(number.name, kind.sum_deviations[place], total, public.instead)
            case Average(place) if sizes is not None:
                column = asked.sums.columns[place]
                over = _counted(column.rows, sizes)
                error = kind.sum_deviations[place] / over
                yield TypicalError(number.name, error, _largest(column), public.instead, over)


def _largest(column: SummedValue) -> float:
    """Return the largest value of a member or a row, whatever its sign."""
    return float(max(abs(column.low), abs(column.high)) * column.quantum)


def _counted(rows: int | None, sizes: Sums) -> int:
    """Return how many members can count at most, or how many rows, of each at most so many."""
    return sizes.max_members if rows is None else min(sizes.max_rows, rows * sizes.max_members)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
