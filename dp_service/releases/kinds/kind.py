"""What every kind of answer says of itself, and what is the same for all of them.

A kind is made from the parameters of a release (`kinds.kind_of`). All that is true of it alone stands in a module of
its own: its mechanism, what its histogram is, how it is drawn, what a question shows of it and how exact that will be.
Nobody outside this package asks which kind a release is of.

Why a release is private is the argument of its mechanism. Everything that is shown is a function of what was drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from dp_service.mechanisms.bounded import TwoLooks
from dp_service.mechanisms.parameters import Cost
from dp_service.noise.source import KeyedNoise
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.histogram import TypedHistogram, over_domain, within
from dp_service.releases.kinds.coverage import AtLeast, Coverage, of_counts, of_number
from dp_service.releases.kinds.parts import IncompleteParametersError, clamp_of, clipped, counts_of, covering
from dp_service.releases.kinds.views import ExpectedAccuracy, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement, elements
from dp_service.terms import Element
from dp_service.values.bounds import Clamp


class Priced(Protocol):
    """What is the same for the mechanisms of all kinds."""

    version: ClassVar[int]

    def worst_case_cost(self) -> Cost:
        """Return the most that a run can cost."""
        ...

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return what a run cost; ValueError if it cannot have this outcome."""
        ...


_Mechanism = TypeVar("_Mechanism", bound=Priced)
Fields: TypeAlias = Mapping[str, Any]
"""What a message holds, by the names of its fields; those of a message in it in the same form. None: it is unset."""
Value: TypeAlias = Callable[[int], Fraction | None]
"""A number of a row of a release; None: it is not shown."""


@dataclass(frozen=True, eq=False)
class Kind(ABC, Generic[_Mechanism]):
    """One kind of answer, with the parameters and the mechanism of one release of it.

    Attributes:
        parameters: What policy and question fixed.
        mechanism: What is drawn and paid for.
    """

    parameters: ReleaseParameters
    mechanism: _Mechanism

    @property
    @abstractmethod
    def said(self) -> Fields:
        """What a message says of it: the one field for kinds like it, with what is true of them alone."""

    @property
    def first_look(self) -> TwoLooks | None:
        """The two looks that it takes; None: it takes one."""
        return None

    counts_called: ClassVar[str] = "Counts"
    """What its noise is in, in words."""

    @property
    def grows_with(self) -> str:
        """The settings of the policy with which the threshold of an unknown domain grows."""
        return f"tau = {self.parameters.tau}"

    @property
    def most_found(self) -> int | None:
        """How many elements settings let a release have at most; None: as many as are asked for, or as there are."""
        return None

    # What the engine is asked for.

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """The ends of a member's total in each column that is summed."""
        sums = self.parameters.sums
        return () if sums is None else tuple(map(clamp_of, sums.columns))

    @property
    def scales(self) -> tuple[int, ...]:
        """How many steps of a count one of each column's sums is."""
        sums, bounded = self.parameters.sums, self.parameters.contributions
        if sums is None or bounded is None:
            return ()
        return tuple(bounded.grid // each.grid(bounded.grid) for each in sums.columns)

    @property
    def own_counts(self) -> tuple[int, ...]:
        """The places of the columns that have a count of their own."""
        return () if self.parameters.sums is None else self.parameters.sums.own_counts

    @property
    def chosen_cells(self) -> int:
        """How many cells a release has of each element."""
        return 0

    def histogram(
        self, answer: TypedHistogram, known: tuple[Element, ...] | None, *, row_limit: int
    ) -> TypedHistogram:
        """Return the histogram that the mechanism runs on: the answer, restricted to the domains that Delta rests on.

        Args:
            answer: The engine's answer.
            known: The elements that the query is about: the domain, or what a first look named; None: unknown ones.
            row_limit: The most rows that a whole answer has.

        Raises:
            HistogramError: The histogram cannot be the answer to the plan's query.
        """
        if known is not None:
            return over_domain(answer, known, row_limit=row_limit)
        # Whether an engine leaves out what is below the smallest count that is considered makes no difference.
        bounded = self.parameters.contributions
        least = 1 if bounded is None else (bounded.min_count or 1) * bounded.grid
        return within(answer, self.parameters.within, row_limit=row_limit).with_count(least)

    def elements(self, rows: TypedHistogram, known: tuple[Element, ...] | None) -> list[Element]:
        """Return the elements that a selection's places are of."""
        return rows.elements

    # Prices and drawing.

    @property
    def information_per_element(self) -> int:
        """What one element more adds to the information of the worst case; 0: its price does not depend on k."""
        return 0

    @abstractmethod
    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw a release.

        Args:
            rows: What `histogram` returned.
            known: As for `histogram`.
            noise: Where all randomness comes from.

        Raises:
            HistogramError: It is no histogram of this kind.
        """

    @property
    def denominator(self) -> int:
        """What divides its noisy counts."""
        return 1

    @property
    def count_noise(self) -> Fraction | None:
        """The variance of the noise in each count where it is Gaussian and its own, in steps of 1 / `denominator`.

        None: it is neither known so.
        """
        return None

    # What a question shows.

    @property
    def coverage(self) -> Coverage:
        """What the ends beside counts say of those in the table."""
        return of_counts(self.parameters)

    @property
    def coverages(self) -> list[Coverage]:
        """What the ends beside each number say that the question shows, of the counts first."""
        sums = self.parameters.sums
        columns, asked = ((), ()) if sums is None else (sums.columns, sums.asked)
        counts = [self.coverage] if self.parameters.with_counts else []
        return [*counts, *(of_number(each.form, columns, self.parameters) for each in asked)]

    def require(self, drawn: MechanismOutput) -> None:
        """Check that this is a release of this kind.

        Raises:
            ValueError: It is not.
        """
        rows, sums = drawn.selection.indices.shape, len(self.clamps) + len(self.own_counts)
        counts, bottom = drawn.selection.noisy_counts, drawn.selection.bottom
        if counts is not None and bottom is not None and (counts <= bottom).any():
            raise ValueError("expected counts above the threshold that the release states")
        if (drawn.total is not None) is not self.parameters.counts_first_elements:
            raise ValueError("a total must be there exactly where counts are released relative to it")
        if len(drawn.sums) != sums or any(each.shape != rows for each in drawn.sums):
            raise ValueError("expected the sums of every column for each element")
        if drawn.cells and not self.parameters.counts_cells:
            raise ValueError("expected cells of quantiles alone")

    @abstractmethod
    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return what a question shows of a list in the order of the release, or of a sum of it.

        Args:
            drawn: The release. Of the selection's `indices`, only the order counts: it is that of the elements.
            alpha: The probability with which an interval may miss.
        """

    def shown_rows(self, drawn: MechanismOutput, rows: tuple[int, ...], alpha: Fraction) -> ReleaseView:
        """Return what is shown of some rows, as if they were the whole list and in this order."""
        return self.shown(drawn.of_rows(rows), alpha)

    def as_it_is(self) -> Kind[_Mechanism]:
        """Return the same kind, of a question that shows the list whole and in the order of the release."""
        asked = self.parameters
        of_sums = None if asked.sums is None else replace(asked.sums, ordered_by=None)
        quantiles = None if asked.quantiles is None else replace(asked.quantiles, ordered_by=None)
        k = asked.k if asked.k_changes_the_release else None
        changed = replace(asked, k=k, sums=of_sums, quantiles=quantiles, listing=None)
        return replace(self, parameters=changed)

    def order(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[int, ...]:
        """Return all rows of a release in the order in which the question lists them."""
        return tuple(range(drawn.selection.indices.size))

    def ranked_by(self, drawn: MechanismOutput, alpha: Fraction) -> Value:
        """Return what gives the number of a row that the question lists them by; None: the row shows none."""
        counts = counts_of(drawn)
        return lambda row: Fraction(int(counts[row]))

    def values(self, drawn: MechanismOutput, alpha: Fraction) -> tuple[Value, ...]:
        """Return what gives each sum and average of a row that a question asks for, in the units of its column.

        It gives None where no average is shown at this alpha in a list that shows everything.
        """
        return ()

    def shown_count(self, drawn: MechanismOutput) -> int:
        """Return how many elements the question shows of a list from its beginning."""
        found, most = drawn.selection.indices.size, self.parameters.shown_at_most
        return found if most is None else min(most, found)

    # How exact it will be: from the parameters alone. Nothing here bounds privacy loss, and no data are read.

    @property
    def noise_scale(self) -> Fraction | None:
        """The scale of the Laplace noise, or the sigma of the Gaussian, in the counts; None: no counts are shown."""
        return self._count_scale() if self.parameters.with_counts else None

    @property
    def sum_deviations(self) -> Sequence[float]:
        """The standard deviation of the noise in each sum, in the units of its column."""
        return ()

    def _count_scale(self) -> Fraction:
        raise IncompleteParametersError

    @abstractmethod
    def accuracy(self) -> ExpectedAccuracy:
        """Return how exact an answer can be expected to be."""

    # What is said of it.

    def question(self, names: Sequence[str]) -> Statement:
        """Return what is asked.

        Args:
            names: What is counted by, in words.
        """
        if not names:
            text = f"Counts everything in one total; a member changes it by at most {self.parameters.tau}."
            return Statement("question", text)
        text = f"Counts by {', '.join(names)} over {self._domain}; a member changes {self._reach}."
        return Statement("question", text)

    def reach(self, columns: Sequence[str]) -> Statement:
        """Return what the noise hides: how much a member changes."""
        tau = self.parameters.tau
        of = f"{self._reach}, over {self._domain}" if columns else f"the total by at most {tau}"
        return Statement("method.reach", f"A member changes {of}.")

    @property
    def _reach(self) -> str:
        asked = self.parameters
        most = f"at most {elements(asked.delta_l0)}" if asked.delta_l0 else "any number of elements"
        return f"{most}, each by at most {asked.tau}"

    @property
    def _domain(self) -> str:
        size = len(self.parameters.domain or ())
        return f"a known domain of {elements(size)}" if size else "an unknown domain"

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what its numbers are of, and what their intervals cover besides what those of every kind do.

        Args:
            columns: The names of the question's columns.
            confidence: Of each interval.
        """
        yield from clipped(self.parameters)

    @property
    @abstractmethod
    def gloss(self) -> str:
        """What its mechanism does, in a few words."""

    def method(self) -> Iterator[Statement]:
        """Yield how its numbers are made, but for the mechanism and its noise."""
        if self.parameters.d_bar:
            yield Statement(
                "method.fetched",
                f"The {self.parameters.d_bar} largest counts and the one after them are fetched.",
                values=(str(self.parameters.d_bar),),
            )

    def of_intervals(self, view: ReleaseView, confidence: float) -> Iterator[Statement]:
        """Yield what the intervals of a list cover."""
        yield covering(view.interval_kind, confidence, bounds=isinstance(self.coverage, AtLeast))


AnyKind: TypeAlias = Kind[Any]
