"""What was resolved for a question: its mechanism, how contributions are bounded, and what is summed."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from gris_api.dp.v1 import dp_pb2

from pinot_connector.guarantees import PublishedDomain
from pinot_connector.questions import AggregateFunction, RankFunction
from pinot_connector.views import day, exact, read_by, view


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
    """The law of the noise that counts carry; `NONE`: counts are not part of the release."""

    NONE = "none"
    DISCRETE_LAPLACE = "discrete_laplace"
    DISCRETE_GAUSSIAN = "discrete_gaussian"


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
    """Why no member counts in more elements: the query sees to it, or a prepared copy, or the policy promises it."""

    IN_QUERY = "in_query"
    PREPARED = "prepared"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class NamesLook:
    """The first of two looks, which names the elements that the second one counts.

    A member counts in at most `delta_1` elements in it, in each period. It takes `units` of the information units, and
    names at most `max_names` elements: those above `threshold` in it. In a catalogue, threshold and variance are None.
    """

    delta_1: int
    units: Fraction
    max_names: int
    threshold: int | None
    noise_variance: Fraction | None


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
class Sharpened:
    """How the counts of several looks at the same elements are combined: weighted by the units of each.

    `units_before` are those of each look before the last one. Combined counts are multiples of 1 / `denominator`, and
    `noise_variance` is that of their noise. If all units were `planned` before any count was seen, intervals are of the
    combined counts. Otherwise they are those of the last look's own noise, extended to the combined count where
    that lies outside; each holds whatever led to that look.
    """

    units_before: tuple[Fraction, ...]
    denominator: int
    noise_variance: Fraction
    planned: bool


@dataclass(frozen=True)
class Contributions:
    """How the contributions of members are bounded; counts and intervals are of bounded contributions.

    A member counts in at most `delta_0` elements in each of so many `periods` (None in a catalogue: the question's
    range decides how many). A question costs `units` information units. `min_count` is the smallest count that is
    considered, and elements above `threshold` are shown; both are None over a known domain. `noise_variance` is exact.
    In a catalogue, threshold and variance are None. `names` is the first of two looks, None if there is one: then
    `delta_0` and `noise_variance` are those of the second, which counts the named elements and has no threshold. With
    `shift`, `noise_variance` is that of a sum of two draws. `may_shift`, in a catalogue: questions by small known
    domains can have a shift. With `sharpened`, this is the last of several looks whose counts are combined; `units` and
    `noise_variance` are its own. `most_sharpening_units`, in a catalogue: how many units a sharpening may take, None
    where there is none. `totals_share`, in a catalogue: which part of its units totals take of a question that asks for
    them, None where there are none; `one_value` are then the columns of which a member has one value.
    """

    bounded_by: BoundedBy
    delta_0: int
    periods: int | None
    units: int
    min_count: int | None
    threshold: int | None
    noise_variance: Fraction | None
    names: NamesLook | None = None
    shift: Shift | None = field(default=None, metadata=read_by(lambda message: _shift(message.shift)))
    may_shift: bool = field(default=False, metadata=read_by(lambda message: message.HasField("shift")))
    sharpened: Sharpened | None = None
    most_sharpening_units: int | None = None
    totals_share: Fraction | None = None
    one_value: tuple[str, ...] = ()

    @property
    def denominator(self) -> int:
        """Counts are multiples of 1 / this."""
        if self.sharpened is not None:
            return self.sharpened.denominator
        return 1 if self.shift is None else self.shift.denominator


def _shift(message: dp_pb2.Shift) -> Shift | None:
    """Returns how counts are relative to n; None in a catalogue, whose message is empty."""
    return view(Shift, message) if message.denominator else None


@dataclass(frozen=True)
class SummedColumn:
    """A column that is summed; all numbers are exact.

    Of each member one number counts in each element: its total, between `lower` and `upper`, in steps of `quantum`.
    `share` is the column's part of the information units, and `noise_variance` that of its noise, in half steps; both
    are None in a catalogue.

    With `has_own_count` rows without a usable value count, and the column's sums and averages are of the others. Their
    own count takes `count_share` of the units and has noise of `count_variance`; both are None in a catalogue, which
    alone says what publishing the upper bound cost, if it was `published`.
    """

    name: str
    quantum: Fraction
    lower: Fraction
    upper: Fraction
    share: Fraction | None
    noise_variance: Fraction | None
    row_lower: Fraction | None = None
    row_upper: Fraction | None = None
    has_own_count: bool = False
    count_share: Fraction | None = None
    count_variance: Fraction | None = None
    published: PublishedDomain | None = None


@dataclass(frozen=True)
class Aggregate:
    """A sum or an average that a result shows: of members' totals, or if `over_rows` of rows.

    `alias` is what a question in SQL calls it.
    """

    function: AggregateFunction
    column: str
    alias: str | None = None
    over_rows: bool = False

    @property
    def title(self) -> str:
        """What to call it where a result is displayed."""
        return self.alias or _TITLES[self.function, self.over_rows].format(column=self.column)


# An average of totals is another number than an average of rows, and sums are bounded in other ways: names say which.
_TITLES = {
    (AggregateFunction.SUM, False): "sum_{column}",
    (AggregateFunction.AVERAGE, False): "average_{column}_per_member",
    (AggregateFunction.SUM, True): "sum_{column}_of_rows",
    (AggregateFunction.AVERAGE, True): "average_{column}_per_row",
}


def _aggregates(message: dp_pb2.Sums) -> tuple[Aggregate, ...]:
    return tuple(view(Aggregate, each, over_rows=message.over_rows) for each in message.aggregates)


@dataclass(frozen=True)
class Sums:
    """What a release sums beside its counts, which take `share` of the units, and what a question shows of that.

    `ordered_by` is the place in `aggregates` of what the list is in descending order of, None if that are the counts.
    `over_rows`: rows are summed, of a member at most `Parameters.tau` in each element, and not members' totals.
    """

    share: Fraction
    columns: tuple[SummedColumn, ...]
    aggregates: tuple[Aggregate, ...] = field(metadata=read_by(_aggregates))
    ordered_by: int | None = None
    over_rows: bool = False


class MemberValue(Enum):
    """Which value of a member quantiles are of: its total, the mean or the largest of its rows, or one of them."""

    TOTAL = "total"
    MEAN = "mean"
    LARGEST = "largest"
    ONE_ROW = "one_row"


class GridScale(Enum):
    """How the cells of a public grid widen: all are equally wide, or by a common factor; or each has as many days."""

    LINEAR = "linear"
    GEOMETRIC = "geometric"
    DATES = "dates"


@dataclass(frozen=True)
class QuantileColumn:
    """A column whose quantiles may be asked for; all numbers are exact. With a grid of dates its values are days.

    Of each member one value counts in each element, by the rule `member_value`, in steps of `quantum`. It is in one of
    so many public `cells` between `lower` and `upper`; values beyond are in the first cell or the last one.
    """

    name: str
    member_value: MemberValue
    quantum: Fraction
    scale: GridScale
    lower: Fraction | datetime.date = field(metadata=read_by(lambda message: _end(message, message.lower)))
    upper: Fraction | datetime.date = field(metadata=read_by(lambda message: _end(message, message.upper)))
    cells: int


def _end(message: dp_pb2.QuantileColumn, text: str) -> Fraction | datetime.date:
    return day(text) if message.scale == dp_pb2.GRID_SCALE_DATES else exact(text)


@dataclass(frozen=True)
class RankCut:
    """A part of the members in the cell of another quantile, `position`, by which a rank may be off further."""

    position: int
    part: Fraction


@dataclass(frozen=True)
class ShownQuantile:
    """A quantile that a result shows, `q` None for about the smallest and the largest value.

    With 95 %, for all quantiles of an element together, its wanted rank is within `rank_error` members, and what `cuts`
    add, of the ranks that the shown cell holds. Both follow from public numbers.
    """

    function: RankFunction
    column: str
    q: Fraction | None
    alias: str | None
    rank_error: Fraction
    cuts: tuple[RankCut, ...] = ()

    @property
    def title(self) -> str:
        """What to call it where a result is displayed."""
        if self.alias is not None:
            return self.alias
        if self.q is None:
            return f"{self.function.value}_{self.column}"
        return f"{self.column}_p{float(100 * self.q):g}"


def _shown(message: dp_pb2.Quantiles) -> tuple[ShownQuantile, ...]:
    return tuple(view(ShownQuantile, each, column=message.column.name) for each in message.shown)


@dataclass(frozen=True)
class Quantiles:
    """Of what quantiles are released, and what a question shows of them.

    About the smallest and the largest value are those at rank `spare_members` from the end; None: neither is asked for.
    """

    column: QuantileColumn
    shown: tuple[ShownQuantile, ...] = field(metadata=read_by(_shown))
    spare_members: int | None


class TotalOf(Enum):
    """What totals count: rows, members, or members' contributions, of which a member may have several in a total."""

    ROWS = "rows"
    MEMBERS = "members"
    CONTRIBUTIONS = "contributions"


@dataclass(frozen=True)
class Totals:
    """The totals by `column` that a release has beside its elements, for `share` of its units.

    `noise_variance` is that of their counts, and `sum_variances` are those of their centred sums, in half steps, in the
    order of `Sums.columns`.
    """

    column: str
    share: Fraction
    counted: TotalOf
    noise_variance: Fraction
    sum_variances: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class Parameters:
    """Everything that the policy resolved for a question.

    `delta` is None where the mechanism takes no call, `delta_l0` where the sensitivity is unrestricted, `d_bar` and
    `domain_size` where they have no meaning, `k` where all is shown. `noise_scale`, in counts, is the scale of
    Laplace noise or the sigma of Gaussian noise, and None without counts. `contributions` says how they are bounded,
    None where they are not. `clipped`: rows are counted, and of a member at most `tau` in each element. `sums` is what
    is summed beside the counts, None if nothing is. `quantiles` is of what quantiles are released instead of counts,
    None if they are of nothing. `totals` are beside the elements, which then have the rest of the units; None: there
    are none. `in_element_order`: the list is in ascending order of its elements, as a series is, and not ranked.
    `having` names the conditions on what was released by which elements are left out; empty: there are none.
    """

    mechanism: Mechanism
    epsilon_per: Fraction
    delta: Fraction | None
    tau: int
    delta_l0: int | None
    d_bar: int | None
    k: int | None
    domain_size: int | None
    count_noise: CountNoise
    noise_scale: Fraction | None
    consistency: Consistency
    contributions: Contributions | None = None
    clipped: bool = False
    sums: Sums | None = None
    quantiles: Quantiles | None = None
    totals: Totals | None = None
    in_element_order: bool = False
    having: str = ""

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The sums and averages that a result shows, in their order."""
        return () if self.sums is None else self.sums.aggregates

    @property
    def has_days(self) -> bool:
        """Whether the values of a result's rows are days."""
        return self.quantiles is not None and self.quantiles.column.scale is GridScale.DATES

    @property
    def values(self) -> tuple[Aggregate | ShownQuantile, ...]:
        """What the values of a result's rows are: sums and averages, or quantiles."""
        return self.aggregates if self.quantiles is None else self.quantiles.shown

    @property
    def sharpened(self) -> Sharpened | None:
        """How the counts of several looks are combined; None: there is one look, or the first only names elements."""
        return None if self.contributions is None else self.contributions.sharpened
