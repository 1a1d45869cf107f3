"""The steps of publishing and inspecting a domain."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dp_service.partitions.weighting import TooManyError
from dp_service.queries.errors import RefusedByPolicyError
from dp_service.queries.policy import Policy
from dp_service.queries.published import DomainFile
from dp_service.queries.published_files import PublishedFileError, integrity_of, written
from dp_service.terms import ColumnType
from gris_cli.data.domain.ledger_entry import LedgerAccount, record
from gris_cli.data.domain.price import price_of
from gris_cli.data.domain.publishing import Found, Publication, domain_of, write_recorded
from gris_cli.data.errors import InputError
from gris_cli.data.policies import policy_of
from pinot_connector.budgets import Cost


@dataclass(frozen=True)
class Request:
    """What is to be published, and where its price is recorded.

    Attributes:
        publication: What is published.
        discover: Finds the elements; raises InputError or TooManyError.
        policy: The policy, for its currency.
        out: The domain file to write.
        payer: The account that records the price; None to record none.
    """

    publication: Publication
    discover: Callable[[Publication], Found]
    policy: Path
    out: Path
    payer: LedgerAccount | None


@dataclass(frozen=True)
class Made:
    """A domain, its price in a currency (None: no policy was given), and the integrity by which a policy names it."""

    domain: DomainFile
    price: Cost | None
    integrity: str


def published(request: Request) -> Made:
    """Discover, record the price, write the file.

    Raises:
        InputError: The data, the policy or the path of the file are not as expected.
        BudgetExhausted, GrisError: The ledger did not record the price; there is no file.
    """
    if not request.out.parent.is_dir():
        raise InputError(f"there is no directory {request.out.parent}", "out")
    publication = request.publication
    _check_fields(publication)
    policy = policy_of(request.policy)
    price = price_of(publication.parameters.rho, publication.parameters.delta, policy.currency)
    try:
        found = request.discover(publication)
    except InputError as error:
        raise InputError(str(error), *(error.of or ("data",)), remedy=error.remedy) from None
    except TooManyError as error:
        raise InputError(str(error), "data") from None
    _check_type(policy, publication, found)
    domain = domain_of(publication, found, datetime.datetime.now(datetime.UTC))
    write_recorded(domain, request.out, lambda: record(request.payer, price))
    return Made(domain, price, integrity_of(written(domain)))


def inspected(file: Path, policy: Path | None) -> Made:
    """Read a domain file.

    Raises:
        InputError: It is not a domain file, or not intact.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(DomainFile.MOST_BYTES + 1)
        domain = DomainFile.read(content)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except PublishedFileError as error:
        raise InputError(f"{file}: {error}") from None
    price = None if policy is None else price_of(domain.rho, domain.delta, policy_of(policy).currency)
    return Made(domain, price, integrity_of(content))


def _check_fields(publication: Publication) -> None:
    """Refuse, before anything is paid, fields with which the file could not be read."""
    try:
        domain_of(publication, Found([], ColumnType.STRING), datetime.datetime.now(datetime.UTC))
    except PublishedFileError as error:
        raise InputError(f"the file could not be read: {error}") from None


def _check_type(policy: Policy, publication: Publication, found: Found) -> None:
    """Refuse, before anything is paid, a domain that the policy could not use."""
    try:
        expected = policy.table(publication.table).column(publication.column).type
    except RefusedByPolicyError as error:
        raise InputError(str(error), "table", "column") from None
    if expected is not found.type:
        raise InputError(f"the policy says {expected}, the data {found.type}", "column")
