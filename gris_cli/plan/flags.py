"""The flags of `gris plan`, each declared once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag
from gris_cli.inputs import exact, named_by, number, parts_of

if TYPE_CHECKING:
    from dp_service.accounting.composition import PublishedDomain
    from dp_service.queries.tables import Policy
    from gris_lab.histograms import NamedHistogram

EPSILON_PER = Fraction("0.15")
DELTA = Fraction("1e-11")
INFORMATION = 3000
CALLS = 300
SLACK = Fraction("1e-9")


def _domain(text: str) -> PublishedDomain:
    """Return the published domain that RHO:DELTA names."""
    from dp_service.accounting.composition import PublishedDomain

    rho, delta = parts_of("--domain", "RHO:DELTA, such as 0.1:1e-9", text)
    try:
        return PublishedDomain(exact(rho), exact(delta))
    except ValueError as error:
        raise typer.BadParameter(f"--domain: {error}") from None


def domains_of(policy: Policy | None, texts: Iterable[str]) -> tuple[PublishedDomain, ...]:
    """Return the domains that a policy has published, and those that flags name."""
    from dp_service.accounting.composition import PublishedDomain

    published = () if policy is None else policy.publications
    own = (PublishedDomain(each.rho, each.delta) for each in sorted(published))
    return (*own, *map(_domain, texts))


def is_gaussian(policy: Policy | None) -> bool:
    """Return whether a policy permits Gaussian noise somewhere."""
    return policy is not None and policy.count_noise == "gaussian"


def times_of(policy: Policy | None) -> int:
    """Return how often a budget counts for one member, by a policy's blocks."""
    return 1 if policy is None else policy.currency.times


_EPSILON_PER = number("What one information unit buys.", default="0.15")
_DELTA = number("What one call may add.", default="1e-11")
EpsilonPerFlag = Annotated[Fraction, _EPSILON_PER]
MaybeEpsilonPerFlag = Annotated[Fraction | None, _EPSILON_PER]
DeltaFlag = Annotated[Fraction, _DELTA]
MaybeDeltaFlag = Annotated[Fraction | None, _DELTA]
InformationFlag = Annotated[int, typer.Option(help="The information units of a budget.")]
CallsFlag = Annotated[int, typer.Option(help="The calls of a budget.")]
SlackFlag = Annotated[Fraction, number("The part of delta for the better composition.", default="1e-9")]
GaussianFlag = Annotated[
    bool, typer.Option("--gaussian", help="The policy permits Gaussian noise somewhere.")
]
# typer copies a list before it hands it over.
NO_DOMAINS: list[str] = []
DomainsFlag = Annotated[
    list[str],
    typer.Option(
        "--domain",
        metavar="RHO:DELTA",
        help="A published domain that the account can see; repeatable.",
    ),
]
QuickFlag = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Leave out the adaptive bound if its table is not in the cache: making one can take minutes.",
    ),
]
PolicyFlag = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="A policy: its currency, its published domains, Gaussian counts if it permits them, and its blocks.",
    ),
]
AudienceFlag = Annotated[
    str,
    typer.Option(metavar="NAME[,KEY=VALUE..]", help="As which audience of the policy, where it states some."),
]
DBarFlag = Annotated[int, typer.Option("--d-bar", help="How many elements are fetched.")]
TauFlag = Annotated[int, typer.Option(help="By how much a member changes a count.")]
SeedFlag = Annotated[
    int | None,
    typer.Option(help="A seed that makes the simulation repeatable; by default every run is different."),
]
TrialsFlag = Annotated[
    int, typer.Option(min=2, max=10**6, help="How often the mechanism runs for each point.")
]
OutFlag = Annotated[
    Path | None, typer.Option(help="Draw a figure into this file, .png or .svg.", dir_okay=False)
]
EpsilonsFlag = Annotated[list[Fraction], number("An epsilon_per; repeatable.", "--epsilon-per")]


@dataclass(frozen=True)
class HistogramFlags:
    """Which histogram a mechanism is simulated on."""

    counts: Path | None = flag(None, "A file with one count on each line.", exists=True, dir_okay=False)
    data: Path | None = flag(None, "A Parquet file, folder or pattern whose members are counted.")
    by: str = flag("", "With --data: the column of elements.")
    member: str = flag("", "With --data: the column of members.")

    def histogram(self) -> NamedHistogram | None:
        """Return the histogram; None: no flag names one.

        Raises:
            typer.BadParameter: Flags that do not belong together.
            InputError: A file without counts.
        """
        from gris_data.input_files import require_table_file
        from gris_lab.histograms import histogram_of_counts, histogram_of_members

        if self.counts and self.data:
            raise typer.BadParameter("--counts and --data both name a histogram; one is enough")
        if self.counts:
            return histogram_of_counts(self.counts)
        if not self.data:
            return None
        if not self.by or not self.member:
            raise typer.BadParameter("--data needs --by and --member, the columns of elements and of members")
        with named_by("--data"):
            require_table_file(self.data)
        return histogram_of_members(self.data, self.by, self.member)


@dataclass(frozen=True)
class SimulationFlags:
    """How a mechanism is simulated, and where the picture goes."""

    delta: DeltaFlag = DELTA
    tau: TauFlag = 1
    trials: TrialsFlag = 1000
    seed: SeedFlag = None
    out: OutFlag = None
