"""The flags of `gris plan`, each declared once."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.inputs import exact, number, parts_of

if TYPE_CHECKING:
    from dp_service.accounting.composition import PublishedDomain
    from dp_service.queries.tables import Policy

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
PolicyFlag = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="A policy: its currency, its published domains, Gaussian counts if it permits them, and its blocks.",
    ),
]
DBarFlag = Annotated[int, typer.Option("--d-bar", help="How many elements are fetched.")]
