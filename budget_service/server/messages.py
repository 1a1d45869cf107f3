"""Translates requests from protocol buffers into the ledger's values, and checks them field by field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.budget.v1 import admin_pb2
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2
from msgspec import structs

from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.leases import LEASE_PREFIX
from budget_service.ledger.values import (
    MAX_AMOUNT,
    Account,
    Cost,
    InvalidFieldError,
    Unit,
    parse_blocks,
    segments_of,
)
from budget_service.ledger.windows import SECOND, Microseconds

DEFAULT_TTL: Microseconds = 60 * SECOND
SHORTEST_TTL: Microseconds = SECOND
LONGEST_TTL: Microseconds = 600 * SECOND
MAX_ID_CHARACTERS = 128
# A ticket has 40 bytes. The bound keeps requests small.
MAX_TICKET_BYTES = 1024
MAX_FURTHER_CHARGES = 255
MAX_STATEMENT_BYTES = 4096

_UNIT_ID = re.compile(r"[0-9a-f]{32}")
_NUMBER = "[1-9][0-9]{0,59}"
_PUBLICATION = re.compile(f"[0-9a-f]{{16,64}}:({_NUMBER}(?:/{_NUMBER})?):({_NUMBER}/{_NUMBER})")
_LARGEST_RHO = 10**24
_KEPT_ACCOUNTS = 10_000
# Policies change seldom; at most a megabyte.
_KEPT_STATEMENTS = 256


def parse_reserve(
    message: pb.ReserveBudgetRequest, account: Account, reservation_id: str, *, forfeits: bool
) -> Reserve:
    """Return the request, or raise InvalidFieldError."""
    return Reserve(
        max_cost=parse_cost(message.max_cost, "max_cost"),
        unit_id=parse_unit_id(message.max_cost.unit_id, "max_cost.unit_id"),
        blocks=parse_blocks(message.max_cost.blocks, "max_cost.blocks"),
        query_id=parse_id(message.query_id, "query_id"),
        request_id=parse_id(message.request_id, "request_id"),
        ttl=_ttl(message.ttl) if message.HasField("ttl") else DEFAULT_TTL,
        account=account,
        reservation_id=reservation_id,
        forfeits=forfeits,
    )


def parse_charge(message: pb.UpdateBudgetRequest, account: Account, *, worst_case_above: bool) -> Charge:
    """Return the request, or raise InvalidFieldError."""
    charge = Charge(
        cost=parse_cost(message.cost, "cost"),
        unit_id=parse_unit_id(message.cost.unit_id, "cost.unit_id"),
        blocks=parse_blocks(message.cost.blocks, "cost.blocks"),
        request_id=parse_id(message.request_id, "request_id"),
        reservation_id=parse_optional_id(message.reservation_id, "reservation_id"),
        release_id=parse_optional_id(message.release_id, "release_id"),
        query_id=parse_optional_id(message.query_id, "query_id"),
        charge_ticket=_parse_ticket(message.charge_ticket, "charge_ticket"),
        policy_statement=parse_statement(message.policy_statement, "policy_statement"),
        worst_case_above=worst_case_above,
        account=account,
    )
    return _with_further(charge, message.further) if message.further else charge


def _with_further(charge: Charge, messages: Sequence[pb.FurtherCharge]) -> Charge:
    """Return a charge with others that are made with it, or raise InvalidFieldError."""
    if len(messages) > MAX_FURTHER_CHARGES:
        raise InvalidFieldError(
            "further", f"must have at most {MAX_FURTHER_CHARGES} charges, got {len(messages)}"
        )
    if charge.reservation_id:
        raise InvalidFieldError("reservation_id", "must be empty beside further charges, which settle none")
    further = tuple([_parse_further(each, charge, f"further[{at}]") for at, each in enumerate(messages)])
    named: set[tuple[str, str]] = set()
    for at, each in enumerate((charge, *further)):
        within = f"further[{at - 1}]." if at else ""
        for field, id_ in (("release_id", each.release_id), ("query_id", each.query_id)):
            if not id_ or (field, id_) in named:
                raise InvalidFieldError(
                    f"{within}{field}", "must be given, and be no other charge's of the request"
                )
            named.add((field, id_))
    for unit in Unit:
        if sum(each.cost.of(unit) for each in (charge, *further)) > MAX_AMOUNT:
            raise InvalidFieldError("further", f"must add up with cost to at most 2^63 - 1 {unit.value}")
    return structs.replace(charge, further=further)


def _parse_further(message: pb.FurtherCharge, charge: Charge, field: str) -> Charge:
    if message.cost.unit_id != charge.unit_id:
        raise InvalidFieldError(f"{field}.cost.unit_id", f"must be {charge.unit_id}, as in cost")
    if parse_blocks(message.cost.blocks, f"{field}.cost.blocks") != charge.blocks:
        raise InvalidFieldError(f"{field}.cost.blocks", "must be those in cost")
    return structs.replace(
        charge,
        cost=parse_cost(message.cost, f"{field}.cost"),
        release_id=parse_optional_id(message.release_id, f"{field}.release_id"),
        query_id=parse_optional_id(message.query_id, f"{field}.query_id"),
        charge_ticket=_parse_ticket(message.charge_ticket, f"{field}.charge_ticket"),
        policy_statement=parse_statement(message.policy_statement, f"{field}.policy_statement"),
    )


def _parse_ticket(ticket: bytes, field: str) -> bytes:
    if len(ticket) > MAX_TICKET_BYTES:
        raise InvalidFieldError(field, f"must have at most {MAX_TICKET_BYTES} bytes")
    return ticket


def parse_cancel(message: pb.ReleaseReservationRequest, account: Account) -> CancelReservation:
    """Return the request, or raise InvalidFieldError."""
    return CancelReservation(
        request_id=parse_id(message.request_id, "request_id"),
        reservation_id=parse_id(message.reservation_id, "reservation_id"),
        account=account,
    )


def parse_account(message: pb.Account) -> Account:
    """Return an account that is well formed, or raise InvalidFieldError."""
    return _account(segments_of(message.path, "account.path"))


@lru_cache(maxsize=_KEPT_ACCOUNTS)
def _account(path: tuple[str, ...]) -> Account:
    return Account.parse(path, "account.path")


def parse_cost(message: cost_pb2.Cost | admin_pb2.Limit, field: str) -> Cost:
    """Return a cost, or raise InvalidFieldError."""
    try:
        return Cost(message.information, message.calls)
    except InvalidFieldError as error:
        raise InvalidFieldError(f"{field}.{error.field}", error.problem) from None


def parse_unit_id(unit_id: str, field: str) -> str:
    """Return the name of a currency, or raise InvalidFieldError."""
    if not _UNIT_ID.fullmatch(unit_id):
        raise InvalidFieldError(field, "must be 32 lower-case hexadecimal characters")
    return unit_id


def parse_statement(text: str, field: str) -> str:
    """Return a policy statement; an empty one stands for no publications.

    Only its form is checked. A statement that cannot be parsed would leave every account below a shared level without a
    guarantee.

    Raises:
        InvalidFieldError: The statement is too long or not well formed.
    """
    if len(text) > MAX_STATEMENT_BYTES:
        raise InvalidFieldError(field, f"must have at most {MAX_STATEMENT_BYTES} bytes")
    return _statement(text, field) if text else text


@lru_cache(maxsize=_KEPT_STATEMENTS)
def _statement(text: str, field: str) -> str:
    items = text.split(",")
    if not all(map(_is_publication, items)):
        raise InvalidFieldError(
            field, "must be id:rho:delta for each publication, in lowest terms, joined by commas"
        )
    if any(first >= second for first, second in pairwise(items)):
        raise InvalidFieldError(field, "must name each publication once, in ascending order")
    return text


def _is_publication(text: str) -> bool:
    match = _PUBLICATION.fullmatch(text)
    if match is None:
        return False
    rho, delta = map(Fraction, match.groups())
    return 0 < rho <= _LARGEST_RHO and 0 < delta < 1 and (str(rho), str(delta)) == match.groups()


def parse_id(text: str, field: str) -> str:
    """Return an id that may be used, or raise InvalidFieldError."""
    if not 1 <= len(text) <= MAX_ID_CHARACTERS:
        raise InvalidFieldError(field, f"must have 1 to {MAX_ID_CHARACTERS} characters")
    return _not_of_a_lease(text, field)


def microseconds(message: Timestamp) -> Microseconds:
    """Return a time as the ledger has it, exactly for those that it made."""
    return message.seconds * SECOND + message.nanos // 1000


def parse_optional_id(text: str, field: str) -> str:
    """Return an id that may be empty, or raise InvalidFieldError."""
    if len(text) > MAX_ID_CHARACTERS:
        raise InvalidFieldError(field, f"must have at most {MAX_ID_CHARACTERS} characters")
    return _not_of_a_lease(text, field)


def _not_of_a_lease(text: str, field: str) -> str:
    if text.startswith(LEASE_PREFIX):
        # Regions alone name leases: a client could free one, or take the name of its next report.
        raise InvalidFieldError(field, f"must not begin with {LEASE_PREFIX!r}")
    return text


def _ttl(message: Duration) -> Microseconds:
    ttl = message.seconds * SECOND + message.nanos // 1000
    if not SHORTEST_TTL <= ttl <= LONGEST_TTL:
        raise InvalidFieldError("ttl", "must be between 1 second and 10 minutes")
    return ttl
