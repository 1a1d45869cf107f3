"""What `gris domain` prints of a domain."""

from __future__ import annotations

from typing import Any

import typer

from dp_service.queries.policy_types import MAXIMUM_DOMAIN_SIZE
from dp_service.queries.published import DomainFile, plain_value
from gris_cli.data.sheets import upwards
from gris_cli.terminal import print_json, printable, say
from pinot_connector import formats
from pinot_connector.budgets import Cost


def print_domain(
    domain: DomainFile,
    price: Cost | None,
    integrity: str,
    *,
    as_json: bool,
    lists_elements: bool = False,
) -> None:
    """Print what was published and what it costs; `price` is None where no currency is known."""
    if as_json:
        print_json(_plain(domain, price, integrity, lists_elements=lists_elements))
        return
    say("domain", f"{domain.table}.{domain.column}: {len(domain.elements)} elements ({domain.type})")
    say("data", f"version {domain.data_version}, published {domain.published_at}")
    say("method", f"{domain.method}, at most {domain.typical} elements of a member in each round")
    say(
        "guarantee",
        f"({upwards(domain.epsilon)}, {domain.dp_delta:.3g})-DP for adding or removing a member",
    )
    say("", f"{float(domain.delta):g}-approximate {float(domain.rho):g}-zCDP")
    say_price(price, f"{domain.rho}:{domain.delta}")
    say("policy", _policy_text(domain, integrity))
    if lists_elements:
        for value in domain.elements:
            typer.echo(printable(str(plain_value(value))))


def _policy_text(domain: DomainFile, integrity: str) -> str:
    """Return how a policy names a domain, or why none can."""
    if not domain.elements:
        return (
            "nothing to name: not one element is safe to name at this price. That is an answer too, and was paid for. "
            "Leave `domain` out of the policy: the column's domain is then unknown. A larger --rho or another --method "
            "may find elements, and is paid for again"
        )
    if len(domain.elements) > MAXIMUM_DOMAIN_SIZE:
        return f"none can name it: a policy takes at most {MAXIMUM_DOMAIN_SIZE:,} elements"
    return f"domain: {{published: FILE, integrity: {integrity}}}"


def say_price(price: Cost | None, domain: str) -> None:
    """Print what something published costs, and which flag counts it in `gris plan`."""
    say("price", "" if price is None else formats.cost(price))
    say("counts", f"for everyone who sees it: --domain {domain} of gris plan guarantee")


def _plain(domain: DomainFile, price: Cost | None, integrity: str, *, lists_elements: bool) -> dict[str, Any]:
    listed = {"elements": [plain_value(value) for value in domain.elements]} if lists_elements else {}
    return {
        "table": domain.table,
        "column": domain.column,
        "type": domain.type.value,
        "data_version": domain.data_version,
        "published_at": domain.published_at,
        "method": domain.method,
        "typical": domain.typical,
        "iterations": domain.iterations,
        "rho": str(domain.rho),
        "delta": str(domain.delta),
        "epsilon": domain.epsilon,
        "dp_delta": domain.dp_delta,
        "size": len(domain.elements),
        "price": None if price is None else {"information": price.information, "calls": price.calls},
        "integrity": integrity,
        **listed,
    }
