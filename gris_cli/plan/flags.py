"""The flags of `gris plan`, each declared once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dp_service.accounting.composition import PublishedDomain
    from dp_service.queries.tables import Policy

EPSILON_PER = Fraction("0.15")
DELTA = Fraction("1e-10")
INFORMATION = 3000
CALLS = 30
SLACK = Fraction("1e-9")


def exact(text: str) -> Fraction:
    """Return the number that a text spells, exactly: 0.15 is three twentieths, and no float near it."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text} is no number such as 0.15 or 1e-10") from None


def domain(text: str) -> PublishedDomain:
    """Return the published domain that RHO:DELTA names."""
    from dp_service.accounting.composition import PublishedDomain  # noqa: PLC0415 - `gris --help` should be quick

    rho, colon, delta = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"--domain expects RHO:DELTA, such as 0.1:1e-9, got {text}")
    try:
        return PublishedDomain(exact(rho), exact(delta))
    except ValueError as error:
        raise typer.BadParameter(f"--domain: {error}") from None


def domains_of(policy: Policy | None, texts: Iterable[str]) -> tuple[PublishedDomain, ...]:
    """Return the domains that a policy has published, and those that flags name."""
    from dp_service.accounting.composition import PublishedDomain  # noqa: PLC0415 - `gris --help` should be quick

    published = () if policy is None else policy.publications
    own = (PublishedDomain(each.rho, each.delta) for each in sorted(published))
    return (*own, *map(domain, texts))


def is_gaussian(policy: Policy | None) -> bool:
    """Return whether a policy permits Gaussian noise somewhere."""
    return policy is not None and policy.count_noise == "gaussian"


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn errors of arguments, which name them, into errors of flags."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_EPSILON_PER = typer.Option(
    parser=exact, metavar="NUMBER", show_default="0.15", help="What one information unit buys."
)
_DELTA = typer.Option(parser=exact, metavar="NUMBER", show_default="1e-10", help="What one call may add.")
EpsilonPerFlag = Annotated[Fraction, _EPSILON_PER]
MaybeEpsilonPerFlag = Annotated[Fraction | None, _EPSILON_PER]
DeltaFlag = Annotated[Fraction, _DELTA]
MaybeDeltaFlag = Annotated[Fraction | None, _DELTA]
InformationFlag = Annotated[int, typer.Option(help="The information units of a budget.")]
CallsFlag = Annotated[int, typer.Option(help="The calls of a budget.")]
SlackFlag = Annotated[
    Fraction,
    typer.Option(
        parser=exact,
        metavar="NUMBER",
        show_default="1e-9",
        help="The part of delta for the better composition.",
    ),
]
GaussianFlag = Annotated[
    bool, typer.Option("--gaussian", help="The policy permits Gaussian noise somewhere.")
]
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
        help="A policy: its currency, the domains that it has published, and Gaussian counts if it permits them.",
    ),
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
