"""The parameters of a release, and the two forms in which they are written down.

Policy and question fix them together (`queries.resolution`), and all that is drawn and paid follows from them
(`releases`). A new parameter is a field here with its place in both forms:

- The **release specification** names a release: seed and ids are functions of it. It has what changes what is drawn or
  paid.
- A **plan** carries every parameter from translation to noise, as JSON.

Both are stored or sent. A parameter that is added goes to the end, and a plan without it must still be read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from dp_service.terms import (
    AggregateFunction,
    BoundedBy,
    Comparison,
    Consistency,
    CountNoise,
    Element,
    GridScale,
    GridSpec,
    MechanismName,
    MemberValue,
    RankFunction,
    Scalar,
)


@dataclass(frozen=True)
class NamesLook:
    """The first of two looks: it finds the elements that the second one counts.

    Attributes:
        delta_1: In how many elements a member counts at most in this look, in each period.
        units: u_1, how many of the release's information units this look takes; the second one takes the rest.
        most_names: M, how many elements are kept at most, by their noisy rank.
    """

    delta_1: int
    units: Fraction
    most_names: int

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [("delta_1", self.delta_1), ("names_units", self.units), ("most_names", self.most_names)]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        return {**asdict(self), "units": str(self.units)}

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> NamesLook:
        """Return what a verified plan states."""
        return cls(**{**plan, "units": Fraction(plan["units"])})


@dataclass(frozen=True)
class LooksBefore:
    """What a sharpening is combined with: the looks at the same elements that were drawn and paid for before it.

    Attributes:
        units: How many information units each of them took for counts, in order.
        release_ids: Their releases, in the same order; empty in an estimate, which is for no release.
        planned: Whether all units were decided on beforehand. It decides which intervals are shown, and nothing else.
    """

    units: tuple[Fraction, ...]
    release_ids: tuple[str, ...] = ()
    planned: bool = False

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [
            ("units_before", ",".join(map(str, self.units))),
            ("releases_before", ",".join(self.release_ids)),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        return {**asdict(self), "units": [str(units) for units in self.units]}

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> LooksBefore:
        """Return what a verified plan states."""
        return cls(tuple(map(Fraction, plan["units"])), tuple(plan["release_ids"]), plan["planned"])


@dataclass(frozen=True)
class BoundedContributions:
    """What a release of bounded contributions has besides what every release has.

    Attributes:
        bounded_by: Why no member counts in more elements.
        delta_0: In how many elements a member counts at most, in each period.
        periods: In how many periods of its own a question's data were bounded.
        of_events: Whether rows are counted, and not members.
        units: How many information units the release costs.
        min_count: The smallest count that is considered; None over a known domain. Of two looks, it is the first one's.
        salt: The public salt by which the query chooses a member's elements, hexadecimal; empty if no query does.
        names: The first of two looks; `delta_0` is then that of the second, within the names. None: there is one look.
        shifted: Whether counts of a known domain are released relative to their total.
        before: The looks that this one sharpens; `units` are those of this look alone. None: it sharpens none.
    """

    bounded_by: BoundedBy
    delta_0: int
    periods: int
    of_events: bool
    units: int
    min_count: int | None
    salt: str
    names: NamesLook | None = None
    shifted: bool = False
    before: LooksBefore | None = None

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [
            ("bounded_by", self.bounded_by.name),
            ("delta_0", self.delta_0),
            ("periods", self.periods),
            ("of_events", self.of_events),
            ("units", self.units),
            ("min_count", self.min_count),
            ("salt", self.salt),
            *(() if self.names is None else self.names.specified()),
            *([("shifted", True)] if self.shifted else []),
            *(() if self.before is None else self.before.specified()),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        names = {} if self.names is None else {"names": self.names.to_json()}
        shifted = {"shifted": True} if self.shifted else {}
        before = {} if self.before is None else {"before": self.before.to_json()}
        apart = ("names", "shifted", "before")
        own = {name: value for name, value in asdict(self).items() if name not in apart}
        return {**own, "bounded_by": self.bounded_by.name, **names, **shifted, **before}

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> BoundedContributions:
        """Return what a verified plan states."""
        names = NamesLook.from_json(plan["names"]) if "names" in plan else None
        before = LooksBefore.from_json(plan["before"]) if "before" in plan else None
        bounded_by = BoundedBy[plan["bounded_by"]]
        return cls(**{**plan, "bounded_by": bounded_by, "names": names, "before": before})


@dataclass(frozen=True)
class SummedValue:
    """A column that a release sums.

    Attributes:
        name: The name of the column.
        quantum: What one step of its sums is worth.
        low: The least that a member's total in an element can be, in steps; over rows, that of a row.
        high: The most.
        share: The part of the release's units that its sums take.
        count_share: The part that a count of its own takes; None: it has none, and shares that of the elements.
    """

    name: str
    quantum: Fraction
    low: int
    high: int
    share: Fraction
    count_share: Fraction | None = None

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [
            ("sum", self.name),
            ("quantum", self.quantum),
            ("low", self.low),
            ("high", self.high),
            ("sum_share", self.share),
            *([] if self.count_share is None else [("count_share", self.count_share)]),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        found = {**asdict(self), "quantum": str(self.quantum), "share": str(self.share)}
        count_share = found.pop("count_share")
        return found if count_share is None else {**found, "count_share": str(count_share)}

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> SummedValue:
        """Return what a verified plan states."""
        count_share: str | None = plan.get("count_share")
        numbers = {
            "quantum": Fraction(plan["quantum"]),
            "share": Fraction(plan["share"]),
            "count_share": None if count_share is None else Fraction(count_share),
        }
        return cls(**{**plan, **numbers})


@dataclass(frozen=True)
class AskedAggregate:
    """A sum or an average that the question shows: the place of its column in the release, and its alias in SQL."""

    function: AggregateFunction
    place: int
    alias: str = ""


@dataclass(frozen=True)
class SumsReleased:
    """What a release of sums has besides what every release of bounded contributions has.

    Attributes:
        share: The part of the units that the counts take.
        columns: The columns that are summed, by name.
        asked: What the question shows of them; no part of the release.
        ordered_by: The place in `asked` of what the list is in descending order of; None: it is in the order of its
            counts. No part of the release either.
    """

    share: Fraction
    columns: tuple[SummedValue, ...]
    asked: tuple[AskedAggregate, ...]
    ordered_by: int | None = None

    @property
    def own_counts(self) -> tuple[int, ...]:
        """The places in `columns` of those with a count of their own."""
        return tuple(place for place, column in enumerate(self.columns) if column.count_share is not None)

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [("share", self.share), *(pair for column in self.columns for pair in column.specified())]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        return {
            "share": str(self.share),
            "columns": [column.to_json() for column in self.columns],
            "asked": [[each.function.name, each.place, each.alias] for each in self.asked],
            **({} if self.ordered_by is None else {"ordered_by": self.ordered_by}),
        }

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> SumsReleased:
        """Return what a verified plan states."""
        asked = (
            AskedAggregate(AggregateFunction[name], place, alias) for name, place, alias in plan["asked"]
        )
        columns = tuple(map(SummedValue.from_json, plan["columns"]))
        return cls(Fraction(plan["share"]), columns, tuple(asked), plan.get("ordered_by"))


@dataclass(frozen=True)
class TotalsReleased:
    """The totals that a release has beside its elements.

    Attributes:
        place: Which of the two columns of an element the totals are of; they add up over the other one.
        share: The part of the units that totals take.
        one_value: Whether the policy says that a member has one value of the other column.
    """

    place: int
    share: Fraction
    one_value: bool

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [
            ("totals_place", self.place),
            ("totals_share", self.share),
            ("totals_one_value", self.one_value),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        return {**asdict(self), "share": str(self.share)}

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> TotalsReleased:
        """Return what a verified plan states."""
        return cls(**{**plan, "share": Fraction(plan["share"])})


@dataclass(frozen=True)
class ShownQuantile:
    """What the question shows in one place: which rank (`q` for a quantile, else None), and its alias in SQL."""

    function: RankFunction
    q: Fraction | None = None
    alias: str = ""


@dataclass(frozen=True)
class QuantilesReleased:
    """What a release of quantiles has besides what every release has.

    Attributes:
        column: The column.
        quantum: What one step of its values is worth.
        grid: The public grid, in steps.
        rule: Which value of a member counts; it is part of what the question means.
        quantiles: The quantiles that are chosen, ascending.
        smallest: Whether about the smallest value is, too.
        largest: Whether about the largest value is, too.
        asked: What the question shows, in its order: each of the above once. The order is no part of the release.
    """

    column: str
    quantum: Fraction
    grid: GridSpec
    rule: MemberValue
    quantiles: tuple[Fraction, ...]
    smallest: bool
    largest: bool
    asked: tuple[ShownQuantile, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """Where each of `asked` is in the release: quantiles come first, then the smallest, then the largest."""
        order: list[tuple[RankFunction, Fraction | None]] = [
            *((RankFunction.QUANTILE, q) for q in self.quantiles),
            *([(RankFunction.SMALLEST, None)] if self.smallest else []),
            *([(RankFunction.LARGEST, None)] if self.largest else []),
        ]
        return tuple(order.index((each.function, each.q)) for each in self.asked)

    @property
    def units(self) -> int:
        """What one group costs a member that has a value in it: ceil(log2(m + 1)), and one for each extreme."""
        return len(self.quantiles).bit_length() + self.smallest + self.largest

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        grid = self.grid
        return [
            ("quantiles_of", self.column),
            ("quantum", self.quantum),
            ("grid", f"{grid.scale.name} {grid.low} {grid.high} {grid.cells}"),
            ("quantiles", " ".join(map(str, self.quantiles))),
            ("smallest", self.smallest),
            ("largest", self.largest),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        grid = self.grid
        return {
            "column": self.column,
            "quantum": str(self.quantum),
            "grid": [grid.scale.name, grid.low, grid.high, grid.cells],
            "rule": self.rule.name,
            "asked": [
                [each.function.name, None if each.q is None else str(each.q), each.alias]
                for each in self.asked
            ],
        }

    @classmethod
    def of(
        cls,
        column: str,
        quantum: Fraction,
        grid: GridSpec,
        rule: MemberValue,
        asked: tuple[ShownQuantile, ...],
    ) -> QuantilesReleased:
        """Return what a question releases that shows all of this."""
        functions = {each.function for each in asked}
        return cls(
            column,
            quantum,
            grid,
            rule,
            tuple(sorted(each.q for each in asked if each.q is not None)),
            RankFunction.SMALLEST in functions,
            RankFunction.LARGEST in functions,
            asked,
        )

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> QuantilesReleased:
        """Return what a verified plan states."""
        scale, *numbers = plan["grid"]
        asked = (
            ShownQuantile(RankFunction[name], None if q is None else Fraction(q), alias)
            for name, q, alias in plan["asked"]
        )
        grid = GridSpec(GridScale[scale], *numbers)
        rule = MemberValue[plan["rule"]]
        return cls.of(plan["column"], Fraction(plan["quantum"]), grid, rule, tuple(asked))


@dataclass(frozen=True)
class HavingCondition:
    """A condition on a number that was released of an element.

    Attributes:
        aggregate: Which number: the place of a sum or an average among those that the question asks for; None: the
            count.
        comparison: How it is compared.
        bound: With what, exactly, in the units of the number.
    """

    aggregate: int | None
    comparison: Comparison
    bound: Fraction

    def to_json(self) -> list[Any]:
        """Return what a plan says, as values of JSON."""
        return [self.aggregate, self.comparison.name, str(self.bound)]

    @classmethod
    def from_json(cls, plan: list[Any]) -> HavingCondition:
        """Return what a verified plan states."""
        aggregate, name, bound = plan
        return cls(aggregate, Comparison[name], Fraction(bound))


@dataclass(frozen=True)
class Listing:
    """What a question shows of a release other than its first elements; no part of the release.

    Attributes:
        in_element_order: Whether the list is in ascending order of its elements, as a series in time; k then shows the
            first of them.
        having: Conditions on what was released; elements that do not meet all of them are not shown.
    """

    in_element_order: bool
    having: tuple[HavingCondition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says, as values of JSON."""
        return {
            "in_element_order": self.in_element_order,
            "having": [each.to_json() for each in self.having],
        }

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> Listing:
        """Return what a verified plan states."""
        return cls(plan["in_element_order"], tuple(map(HavingCondition.from_json, plan["having"])))


@dataclass(frozen=True)
class ReleaseParameters:
    """All numbers of a release.

    Attributes:
        mechanism: Follows from what the policy says of the columns.
        epsilon_per: What one information unit pays for.
        delta: What one call pays for.
        tau: By how much one member changes a count.
        delta_l0: How many elements one member can change; None: any number (unrestricted).
        d_bar: How many elements of an unknown domain are fetched; None: the domain is known, or all are fetched.
        k: How many elements are shown; None: all.
        with_counts: Whether their noisy counts are shown.
        count_noise: The noise in counts; LAPLACE where that noise is the mechanism itself (KNOWN_LAP, UNK_LAP), and
            GAUSSIAN for BOUND_GAUSS and BOUND_MOMENTS.
        consistency: Whether the same question on the same data gets the same answer.
        domain: The elements of a known domain in ascending order; None: the domain is unknown.
        within: The values that count in each column of an unknown domain, None: all; empty: all in every column.
            What an engine answers outside them is left out.
        contributions: How contributions are bounded; None: they are not, for every mechanism but BOUND_GAUSS and
            BOUND_MOMENTS.
        clips: Whether rows are counted, at most tau of a member in each element. Results state it; the query
            that does it is part of what the release is of.
        sums: What is summed beside the counts; None: nothing is, for every mechanism but BOUND_MOMENTS.
        quantiles: Of what quantiles are released; None: of nothing, for every mechanism but QUANTILE_GUMB, which
            releases no counts.
        listing: Which elements the question shows, and in which order; None: the first ones, in the order of the
            release or of a sum. No part of the release.
        totals: The totals that are released beside the elements; None: there are none.
    """

    mechanism: MechanismName
    epsilon_per: Fraction
    delta: Fraction
    tau: int
    delta_l0: int | None
    d_bar: int | None
    k: int | None
    with_counts: bool
    count_noise: CountNoise
    consistency: Consistency
    domain: tuple[Element, ...] | None
    within: tuple[tuple[Scalar, ...] | None, ...] = ()
    contributions: BoundedContributions | None = None
    clips: bool = False
    sums: SumsReleased | None = None
    quantiles: QuantilesReleased | None = None
    listing: Listing | None = None
    totals: TotalsReleased | None = None

    @property
    def sums_rows(self) -> bool:
        """Whether rows are summed, of a member at most tau in each element, and not members' totals."""
        return self.sums is not None and self.contributions is not None and self.contributions.of_events

    @property
    def k_changes_the_release(self) -> bool:
        """Whether k and counts change what is drawn and paid; elsewhere they only cut one list."""
        return self.mechanism.is_gumbel

    @property
    def shown_at_most(self) -> int | None:
        """How many elements of the release to show; None for all of them."""
        return None if self.k_changes_the_release else self.k

    def specified(self, *, drawn_by: tuple[int, int]) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order, without the domain.

        k and whether counts are wanted belong to it only where they change what is drawn or paid (the Gumbel
        mechanisms). The others release one list, whatever part of it is shown, so any k is the same release.

        Args:
            drawn_by: The versions of the mechanism and of the sampler.
        """
        drawn = self.k_changes_the_release
        return [
            ("mechanism", self.mechanism.name),
            ("mechanism_version", drawn_by[0]),
            ("sampler_version", drawn_by[1]),
            ("epsilon_per", self.epsilon_per),
            ("delta", self.delta),
            ("tau", self.tau),
            ("delta_l0", self.delta_l0),
            ("d_bar", self.d_bar),
            ("count_noise", self.count_noise.name),
            ("consistency", self.consistency.name),
            ("k", self.k if drawn else None),
            ("with_counts", self.with_counts if drawn else None),
            *(() if self.contributions is None else self.contributions.specified()),
            *(() if self.sums is None else self.sums.specified()),
            *(() if self.quantiles is None else self.quantiles.specified()),
            *(() if self.totals is None else self.totals.specified()),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what a plan says of the parameters, as values of JSON."""
        return {
            "mechanism": self.mechanism.name,
            "epsilon_per": str(self.epsilon_per),
            "delta": str(self.delta),
            "tau": self.tau,
            "delta_l0": self.delta_l0,
            "d_bar": self.d_bar,
            "k": self.k,
            "with_counts": self.with_counts,
            "count_noise": self.count_noise.name,
            "consistency": self.consistency.name,
            "domain": self.domain,
            "within": self.within,
            **({} if self.contributions is None else {"contributions": self.contributions.to_json()}),
            **({"clips": True} if self.clips else {}),
            **({} if self.sums is None else {"sums": self.sums.to_json()}),
            **({} if self.quantiles is None else {"quantiles": self.quantiles.to_json()}),
            **({} if self.listing is None else {"listing": self.listing.to_json()}),
            **({} if self.totals is None else {"totals": self.totals.to_json()}),
        }

    @classmethod
    def from_json(cls, plan: dict[str, Any]) -> ReleaseParameters:
        """Return the parameters that a verified plan states."""
        domain: list[list[Any]] | None = plan["domain"]
        bounded: dict[str, Any] | None = plan.get("contributions")
        return cls(
            mechanism=MechanismName[plan["mechanism"]],
            epsilon_per=Fraction(plan["epsilon_per"]),
            delta=Fraction(plan["delta"]),
            tau=plan["tau"],
            delta_l0=plan["delta_l0"],
            d_bar=plan["d_bar"],
            k=plan["k"],
            with_counts=plan["with_counts"],
            count_noise=CountNoise[plan["count_noise"]],
            consistency=Consistency[plan["consistency"]],
            domain=None if domain is None else tuple(map(tuple, domain)),
            # A plan that an older replica made has none; it lives for ten minutes.
            within=tuple(None if values is None else tuple(values) for values in plan.get("within", ())),
            contributions=None if bounded is None else BoundedContributions.from_json(bounded),
            clips=plan.get("clips", False),
            sums=SumsReleased.from_json(plan["sums"]) if "sums" in plan else None,
            quantiles=QuantilesReleased.from_json(plan["quantiles"]) if "quantiles" in plan else None,
            listing=Listing.from_json(plan["listing"]) if "listing" in plan else None,
            totals=TotalsReleased.from_json(plan["totals"]) if "totals" in plan else None,
        )
