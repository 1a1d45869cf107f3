"""What was resolved for a question: what kind of answer it is, and with which numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from pinot_connector.coverage import Coverage, InCells
from pinot_connector.formats import decimals
from pinot_connector.value_parameters import (
    GridScale,
    MemberValue,
    QuantileColumn,
    ShownNumber,
    ShownQuantile,
    Sums,
    shown_quantiles,
)
from pinot_connector.views import read_by


class Mechanism(Enum):
    """The mechanism that a release came from."""

    KNOWN_LAP = "KnownLap"
    KNOWN_GUMB = "KnownGumb"
    UNK_LAP = "UnkLap"
    UNK_GUMB = "UnkGumb"
    BOUND_GAUSS = "BoundGauss"
    BOUND_MOMENTS = "BoundMoments"
    QUANTILE_GUMB = "QuantileGumb"


class CountNoise(Enum):
    """The law of the noise that counts carry."""

    LAPLACE = "discrete_laplace"
    GAUSSIAN = "discrete_gaussian"


class IntervalKind(Enum):
    """What the confidence intervals are true for.

    `PLAIN`: the counts' noise is independent of what was chosen to be shown. `GIVEN_SHOWN`: an element is shown
    because of the noise in its count, and the interval takes that into account. `SIMULTANEOUS`: the list was cut in the
    order of a sum or an average, or filtered by what was released, so intervals are wider: those of all released counts
    cover together, and so do those of the sums and averages of each column. `NONE`: there are no counts.
    """

    NONE = "none"
    PLAIN = "plain"
    GIVEN_SHOWN = "given_shown"
    SIMULTANEOUS = "simultaneous"


class Consistency(Enum):
    """Whether the same question on the same data gets the same answer (`KEYED`) or new noise (`FRESH`)."""

    KEYED = "keyed"
    FRESH = "fresh"


class BoundedBy(Enum):
    """What bounds how much a member counts: the query, a prepared copy, or a promise of the policy."""

    IN_QUERY = "in_query"
    PREPARED = "prepared"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Contributions:
    """How contributions are bounded: a member of up to `typical` elements in each of `periods` counts in full.

    Where `grid` is above 1, a member with more elements counts with less than 1 in each, and in no more elements than
    that where it is 1. Counts are multiples of 1 / `grid`, shown rounded to whole numbers. Of two
    looks, `typical` is that of the second, within its elements.
    """

    bounded_by: BoundedBy
    typical: int
    periods: int
    grid: int = 1


@dataclass(frozen=True)
class NamesLook:
    """The first of two looks, which names the elements that the second one counts.

    A member counts in full in at most `typical` elements in it, in each period. It takes `units` of the information
    units, and names at most `max_names` elements: those above `threshold` in it, of which each counts at least
    `min_count`.
    """

    typical: int
    units: Fraction
    max_names: int
    min_count: int
    threshold: Fraction
    noise_variance: Fraction


@dataclass(frozen=True)
class Shift:
    """How counts of a small known domain are released relative to n, the number of members who count in any element.

    Released are `denominator` times each count less `factor` times n, with noise of variance `count_variance`, and n,
    with noise of `total_variance`. So counts are multiples of 1 / `denominator`.
    """

    factor: int
    denominator: int
    count_variance: Fraction
    total_variance: Fraction


@dataclass(frozen=True)
class OneLook:
    """One look: at all elements of a known domain, or at those of an unknown one above `threshold`.

    `min_count` is the smallest count that is considered; both are None over a known domain.
    """

    min_count: int | None = None
    threshold: Fraction | None = None


@dataclass(frozen=True)
class Quantiles:
    """Of what quantiles are released, and what a question shows of them; `member_value`: of which values of a member.

    About the smallest and the largest value are those at rank `spare_values` from the end; None: neither is asked for.
    `contributions` is how contributions are bounded; None: all is one group. `ordered_by` is the place
    in `shown` of what the list is in the order of; None: it is in that of its elements.
    """

    column: QuantileColumn
    shown: tuple[ShownQuantile, ...] = field(metadata=read_by(shown_quantiles))
    spare_values: int | None
    member_value: MemberValue
    contributions: Contributions | None = None
    ordered_by: int | None = None


@dataclass(frozen=True)
class Laplace:
    """Counts with Laplace noise, of members who change at most `delta_l0` elements.

    `d_bar` is how many elements are fetched, in addition to the next one; None: all of a known domain. `noise_scale`
    is in counts; None: no counts are shown.
    """

    delta_l0: int
    d_bar: int | None
    noise_scale: Fraction | None


@dataclass(frozen=True)
class Gumbel:
    """The k largest elements, each chosen and paid for, of members who change any number of elements.

    `d_bar` is how many elements are fetched, in addition to the next one; None: all of a known domain. `count_noise` is
    the law of the noise in the counts, and `noise_scale` its scale, in counts; both are None without counts.
    """

    d_bar: int | None
    count_noise: CountNoise | None
    noise_scale: Fraction | None


@dataclass(frozen=True)
class Bounded:
    """Counts of bounded contributions, with Gaussian noise whose price does not depend on k.

    A question costs `units` information units. `noise_variance` is that of a count as it is shown, exactly: of counts
    relative to a total that of a sum of two draws.
    `noise_scale` is its root, rounded up to six decimal places; None: no counts are shown. `sums` is what is summed
    beside the counts; None: nothing is. `looks` says how the data are looked at.
    """

    contributions: Contributions
    units: int
    noise_variance: Fraction
    noise_scale: Fraction | None
    sums: Sums | None
    looks: OneLook | NamesLook | Shift


@dataclass(frozen=True)
class Parameters:
    """Everything that the policy resolved for a question.

    `delta` is None where the mechanism takes no call, `domain_size` where the domain is unknown, and `k` where all is
    shown. `clipped`: rows are counted, and of a member at most `tau` in each element. `in_element_order`: the list is
    in ascending order of its elements, as a series is, and not ranked. `smallest_first`: a ranked list has the smallest
    number first. `having` names the conditions on what was released by which elements are left out; empty: there are
    none. `kind` is what kind of answer it is, with what is true of that kind alone. `coverage` is what the ends beside
    counts, and the ranks of quantiles, say of the table.
    """

    mechanism: Mechanism
    epsilon_per: Fraction
    delta: Fraction | None
    consistency: Consistency
    tau: int
    domain_size: int | None
    k: int | None
    kind: Laplace | Gumbel | Bounded | Quantiles
    coverage: Coverage
    clipped: bool = False
    in_element_order: bool = False
    smallest_first: bool = False
    having: str = ""

    @property
    def noise_scale(self) -> Fraction | None:
        """The scale of the Laplace noise in the counts, or the sigma of the Gaussian; None: no counts are shown."""
        return None if isinstance(self.kind, Quantiles) else self.kind.noise_scale

    @property
    def bounded(self) -> Bounded | None:
        """Counts of bounded contributions; None: it is another kind of answer."""
        return self.kind if isinstance(self.kind, Bounded) else None

    @property
    def laplace(self) -> Laplace | None:
        """Counts with Laplace noise; None: it is another kind of answer."""
        return self.kind if isinstance(self.kind, Laplace) else None

    @property
    def quantiles(self) -> Quantiles | None:
        """Of what quantiles are released; None: it is another kind of answer."""
        return self.kind if isinstance(self.kind, Quantiles) else None

    @property
    def sums(self) -> Sums | None:
        """What is summed beside the counts; None: nothing is."""
        return None if self.bounded is None else self.bounded.sums

    @property
    def names_look(self) -> NamesLook | None:
        """The first of two looks that counts are of; None: there is one look."""
        return self._looks if isinstance(self._looks, NamesLook) else None

    @property
    def shift(self) -> Shift | None:
        """How counts are relative to their total; None: they are not."""
        return self._looks if isinstance(self._looks, Shift) else None

    @property
    def _looks(self) -> OneLook | NamesLook | Shift | None:
        return None if self.bounded is None else self.bounded.looks

    @property
    def denominator(self) -> int:
        """Counts as they are shown are multiples of 1 / this."""
        return 1 if self.shift is None else self.shift.denominator

    @property
    def grid(self) -> int:
        """Counts are multiples of 1 / this, and shown rounded to whole numbers."""
        return 1 if self.bounded is None else self.bounded.contributions.grid

    @property
    def aggregates(self) -> tuple[ShownNumber, ...]:
        """The numbers beside the count that a result shows, in their order."""
        return () if self.sums is None else self.sums.aggregates

    @property
    def decimals(self) -> tuple[int, ...]:
        """How many digits behind the point each of `values` has at least: those of its column, an average two."""
        if self.quantiles is not None:
            return (decimals(self.quantiles.column.quantum),) * len(self.quantiles.shown)
        return tuple(max(2 * each.may_be_missing, decimals(each.quantum)) for each in self.aggregates)

    @property
    def coverages(self) -> tuple[Coverage | InCells, ...]:
        """What the ends beside each of `values` say."""
        if self.quantiles is not None:
            return (InCells(),) * len(self.quantiles.shown)
        return tuple(each.coverage for each in self.aggregates)

    @property
    def has_days(self) -> bool:
        """Whether the values of a result's rows are days."""
        return self.quantiles is not None and self.quantiles.column.scale is GridScale.DATES

    @property
    def values(self) -> tuple[ShownNumber | ShownQuantile, ...]:
        """What the values of a result's rows are: sums and averages, or quantiles."""
        return self.aggregates if self.quantiles is None else self.quantiles.shown
