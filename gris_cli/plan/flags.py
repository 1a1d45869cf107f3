"""The flags of `gris plan`, each declared once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dp_service.accounting.composition import PublishedDomain

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


@contextmanager
def named_errors() -> Iterator[None]:
    """Turns errors of arguments, which name them, into errors of flags."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


EpsilonPerFlag = Annotated[
    Fraction,
    typer.Option(parser=exact, metavar="NUMBER", show_default="0.15", help="What one information unit buys."),
]
DeltaFlag = Annotated[
    Fraction,
    typer.Option(parser=exact, metavar="NUMBER", show_default="1e-10", help="What one call may add."),
]
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
        help="A published domain that the account can see; repeat it for several.",
    ),
]
DBarFlag = Annotated[int, typer.Option("--d-bar", help="How many elements are fetched.")]
TauFlag = Annotated[int, typer.Option(help="By how much a member changes a count.")]
SeedFlag = Annotated[
    int | None, typer.Option(help="Makes a simulation repeatable; without it, every run draws afresh.")
]
TrialsFlag = Annotated[int, typer.Option(min=2, max=10**6, help="Runs of the mechanism for each point.")]
OutFlag = Annotated[
    Path | None, typer.Option(help="Draws a picture into this file; .png or .svg.", dir_okay=False)
]
