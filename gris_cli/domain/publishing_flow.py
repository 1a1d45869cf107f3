"""What the commands do, from flags to a file."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from dp_service.partitions.weighting import TooManyError
from dp_service.queries.errors import PolicyError, RefusedByPolicyError
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.published import (
    LARGEST_FILE_BYTES,
    DomainFile,
    DomainFileError,
    integrity_of,
    read_published,
    written,
)
from dp_service.queries.structured import ColumnType
from gris_cli.budget.requests import path_of
from gris_cli.domain.ledger_entry import LedgerAccount, record
from gris_cli.domain.member_data import SourceError
from gris_cli.domain.price import price_of
from gris_cli.domain.publishing import Found, Publication, domain_of, write_recorded
from pinot_connector.budgets import Cost


@dataclass(frozen=True)
class Request:
    """What is to be published and what finds it, the policy whose currency it costs, and where the price goes.

    `account` empty: the price goes nowhere. `discover` raises SourceError or TooManyError.
    """

    publication: Publication
    discover: Callable[[Publication], Found]
    policy: Path
    out: Path
    account: str
    budget: str
    key_file: Path | None


@dataclass(frozen=True)
class Made:
    """A domain, its price in a currency (None: no policy was given), and the integrity by which a policy names it."""

    domain: DomainFile
    price: Cost | None
    integrity: str


def published(request: Request) -> Made:
    """Discover, record the price, write the file.

    Raises:
        typer.BadParameter: the data, the policy or the path of the file are not as expected.
        BudgetExhausted, GrisError: the ledger did not take the price; there is no file.
    """
    if not request.out.parent.is_dir():
        raise typer.BadParameter(f"--out: there is no directory {request.out.parent}")
    publication = request.publication
    _check_fields(publication)
    policy = _policy(request.policy)
    price = price_of(publication.parameters.rho, publication.parameters.delta, policy.currency)
    try:
        found = request.discover(publication)
    except (SourceError, TooManyError) as error:
        raise typer.BadParameter(f"--data: {error}") from None
    _check_type(policy, publication, found)
    domain = domain_of(publication, found, datetime.datetime.now(datetime.UTC))
    write_recorded(domain, request.out, lambda: _pay(request, price))
    return Made(domain, price, integrity_of(written(domain)))


def inspected(file: Path, policy: Path | None) -> Made:
    """Read a domain file. Raises typer.BadParameter if it is none, or not whole."""
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
        domain = read_published(content)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    except DomainFileError as error:
        raise typer.BadParameter(f"{file}: {error}") from None
    price = None if policy is None else price_of(domain.rho, domain.delta, _policy(policy).currency)
    return Made(domain, price, integrity_of(content))


def _policy(path: Path) -> Policy:
    try:
        return read_policy(path.read_bytes(), str(path)).policy
    except OSError as error:
        raise typer.BadParameter(f"--policy: {path}: {error.strerror}") from None
    except PolicyError as error:
        raise typer.BadParameter(f"--policy: {error}") from None


def _check_fields(publication: Publication) -> None:
    """Refuse, before anything is done, what a file would be paid for with and could not be read with."""
    empty = domain_of(publication, Found([], ColumnType.STRING), datetime.datetime.now(datetime.UTC))
    try:
        read_published(written(empty))
    except DomainFileError as error:
        raise typer.BadParameter(f"the file could not be read: {error}") from None


def _check_type(policy: Policy, publication: Publication, found: Found) -> None:
    """Refuse, before anything is paid, a domain that the policy could not use."""
    try:
        expected = policy.table(publication.table).column(publication.column).type
    except RefusedByPolicyError as error:
        raise typer.BadParameter(f"--table, --column: {error}") from None
    if expected is not found.type:
        raise typer.BadParameter(f"--column: the policy says {expected}, the data {found.type}")


def _pay(request: Request, price: Cost) -> None:
    if request.account:
        record(LedgerAccount(request.budget, tuple(path_of(request.account)), request.key_file), price)
