"""The guarantee of a budget, as messages.

Every guarantee counts what the served policy has published, whatever a request says: every account may see it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from gris_api.dp.v1 import dp_pb2

from dp_service.accounting.checks import MAX_UNITS
from dp_service.accounting.composition import PublishedDomain, guarantee
from dp_service.queries.policy import Policy
from dp_service.queries.policy_types import exact_decimal
from dp_service.queries.publications import Publication, publications_in
from dp_service.server.errors import RequestError, UnitMismatchError
from dp_service.terms import CountNoise

DEFAULT_SLACK = "1e-9"
MAX_DOMAINS = 1000
MAX_STATEMENTS = 1000
MAX_PUBLICATIONS = 10_000
# Sums of numbers without common denominators would take minutes, so each number is rounded up to forty decimal places.
_PLACES = 10**40
# A price as a catalogue shows it, within what the file of a domain can state.
_RATIO = re.compile(r"[0-9]{1,60}/[1-9][0-9]{0,59}")


def describe_guarantee(
    request: dp_pb2.DescribeGuaranteeRequest, policy: Policy
) -> dp_pb2.DescribeGuaranteeResponse:
    """Return the guarantee of a budget, rounded up, and that of a shared budget if given.

    Raises:
        RequestError: A number is malformed or out of range; `field` names it.
        UnitMismatchError: The budget is in another currency.
    """
    currency = policy.currency
    if request.unit_id not in ("", currency.unit_id):
        raise UnitMismatchError
    slack = _decimal("slack", request.slack or DEFAULT_SLACK)
    if not 0 < slack < 1:
        raise RequestError("slack", "expected a decimal number strictly between 0 and 1, such as 1e-9")
    more = _domains(request.domains)
    seen = policy.publications | _stated("policy_statements", request.policy_statements)
    own = _worth(request, "", policy, slack, [*_priced(seen), *more])
    response = dp_pb2.DescribeGuaranteeResponse(worth=own)
    if request.HasField("shared"):
        shared_seen = seen | _stated("shared.policy_statements", request.shared.policy_statements)
        shared = _worth(request.shared, "shared.", policy, slack, [*_priced(shared_seen), *more])
        response.shared.CopyFrom(shared)
    return response


def _worth(
    budget: dp_pb2.DescribeGuaranteeRequest | dp_pb2.SharedBudget,
    prefix: str,
    policy: Policy,
    slack: Fraction,
    domains: Sequence[PublishedDomain],
) -> dp_pb2.BudgetWorth:
    """Return the guarantee of a budget in the policy's currency; errors put `prefix` before its fields."""
    # A member is in so many blocks at most, each of which may take the whole budget.
    times = policy.currency.times
    for field, units in (("information", budget.information), ("calls", budget.calls)):
        if not 0 <= times * units <= MAX_UNITS:
            most = "2^53 units" if times == 1 else f"2^53 / {times} units, as a member is in {times} blocks"
            raise RequestError(f"{prefix}{field}", f"expected 0 to {most}")
    found = guarantee(
        policy.currency.epsilon_per,
        policy.currency.delta,
        information=times * budget.information,
        calls=times * budget.calls,
        slack=slack,
        gaussian=policy.count_noise is CountNoise.GAUSSIAN,
        domains=domains,
    )
    return dp_pb2.BudgetWorth(
        epsilon=found.epsilon, delta=found.delta, domain_count=len(domains), times=times
    )


def _stated(field: str, statements: Sequence[str]) -> frozenset[Publication]:
    """Return the publications that policy statements list; one that several list counts once."""
    if len(statements) > MAX_STATEMENTS:
        raise RequestError(field, f"expected at most {MAX_STATEMENTS} policy statements")
    found: set[Publication] = set()
    for i, statement in enumerate(statements):
        found |= _publications(f"{field}[{i}]", statement)
        if len(found) > MAX_PUBLICATIONS:
            raise RequestError(field, f"expected at most {MAX_PUBLICATIONS} publications in all")
    return frozenset(found)


def _publications(field: str, statement: str) -> frozenset[Publication]:
    try:
        return publications_in(statement)
    except ValueError as error:
        raise RequestError(field, str(error)) from None


def _priced(publications: Iterable[Publication]) -> list[PublishedDomain]:
    return [PublishedDomain(_coarse(each.rho), _coarse(each.delta)) for each in publications]


def _coarse(number: Fraction) -> Fraction:
    return Fraction(math.ceil(number * _PLACES), _PLACES)


def _domains(messages: Sequence[dp_pb2.PublishedDomain]) -> list[PublishedDomain]:
    if len(messages) > MAX_DOMAINS:
        raise RequestError("domains", f"expected at most {MAX_DOMAINS} published domains")
    return [_domain(each, f"domains[{i}]") for i, each in enumerate(messages)]


def _domain(message: dp_pb2.PublishedDomain, field: str) -> PublishedDomain:
    rho, delta = _exact(f"{field}.rho", message.rho), _exact(f"{field}.delta", message.delta)
    try:
        found = PublishedDomain(rho, delta)
    except ValueError as error:
        raise RequestError(f"{field}.{str(error).partition(' ')[0]}", str(error)) from None
    return PublishedDomain(_coarse(found.rho), _coarse(found.delta))


def _exact(field: str, text: str) -> Fraction:
    """Return the number that a decimal text or a ratio such as 1/10 denotes."""
    if _RATIO.fullmatch(text):
        return Fraction(text)
    return _decimal(field, text)


def _decimal(field: str, text: str) -> Fraction:
    try:
        return exact_decimal(text)
    except ValueError as error:
        raise RequestError(field, str(error)) from None
