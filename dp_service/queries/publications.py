"""The publications of a policy: the price of each published domain, and the policy statement that lists them.

A publication costs everyone who may see it, whatever they ask: a policy's guarantee counts each of its publications.
Policies change within a window of a budget, so each charge carries the policy statement of its question to the ledger,
and the guarantee of a window counts every publication that any of them lists, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dp_service.limits import LARGEST_RHO

MAXIMUM_STATEMENT_BYTES = 4096

_ID_CHARACTERS = 16
_PUBLICATION = re.compile(
    r"(?P<id>[0-9a-f]{16,64}):(?P<rho>[1-9][0-9]{0,59}(?:/[1-9][0-9]{0,59})?):"
    r"(?P<delta>[1-9][0-9]{0,59}/[1-9][0-9]{0,59})"
)


@dataclass(frozen=True, order=True)
class Publication:
    """A domain that was published: `delta`-approximate `rho`-zCDP for adding or removing one member.

    `id` identifies the publication by the integrity hash of its file: the same file is the same publication, whichever
    policy names it, and a refresh is another one.

    Raises:
        ValueError: Unless 0 < rho <= 10^24 and 0 < delta < 1; the message names the field.
    """

    id: str
    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.rho <= LARGEST_RHO:
            raise ValueError("rho: expected a number above 0, of at most 10^24")
        if not 0 < self.delta < 1:
            raise ValueError("delta: expected a number strictly between 0 and 1")

    def __str__(self) -> str:
        return f"{self.id}:{self.rho}:{self.delta}"


def publication_of(integrity: str, rho: Fraction, delta: Fraction) -> Publication:
    """Return the publication of a domain's file, whose integrity is "sha256:" and 64 hexadecimal characters.

    Raises:
        ValueError: As `Publication`.
    """
    return Publication(integrity.removeprefix("sha256:")[:_ID_CHARACTERS], rho, delta)


def policy_statement(publications: Iterable[Publication]) -> str:
    """Return the canonical text of publications: each once as `id:rho:delta`, sorted, joined by commas."""
    return ",".join(sorted({str(each) for each in publications}))


def publications_in(statement: str) -> frozenset[Publication]:
    """Return the publications that a policy statement lists; empty for an empty one.

    Raises:
        ValueError: The statement is no text that `policy_statement` returns, of at most 4096 bytes.
    """
    if not statement:
        return frozenset()
    if len(statement) > MAXIMUM_STATEMENT_BYTES:
        raise ValueError(f"expected at most {MAXIMUM_STATEMENT_BYTES} bytes")
    found = frozenset(_publication(text) for text in statement.split(","))
    # One set of publications has one text: any other was not written by dp_service.
    if policy_statement(found) != statement:
        raise ValueError(
            "expected each publication once, in ascending order, and its numbers in lowest terms"
        )
    return found


def _publication(text: str) -> Publication:
    match = _PUBLICATION.fullmatch(text)
    if match is None:
        raise ValueError(
            "expected id:rho:delta for each publication, joined by commas, such as a policy statement has"
        )
    return Publication(match["id"], Fraction(match["rho"]), Fraction(match["delta"]))
