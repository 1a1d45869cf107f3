"""The header of a policy: what units are worth, and who pays them."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.blocks import Blocks, PaidBy
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.policy_types import MAXIMUM_EPSILON_PER, Exact, Stated
from dp_service.terms import CountNoise

_UNIT_ID_CHARACTERS = 32


class Currency(Stated):
    """The currency of a deployment: what one information unit and one call are worth, and how members are divided.

    `count_noise` belongs to it. If any count is Gaussian, a unit pays for Gaussian noise as well, for every account,
    and only bounds that cover it hold. A ledger must not add up units of both kinds: a later policy without Gaussian
    counts would account for them by bounds that do not cover what was released. The label of the Gaussian kind says
    that its noise has the variance of `variance_for`: units that paid for less are of another currency. So
    do `blocks`: what was charged to a block says nothing about who was in it under another division.
    """

    epsilon_per: Annotated[Exact, Field(gt=0, le=MAXIMUM_EPSILON_PER)]
    delta: Annotated[Exact, Field(gt=0, lt=1)]
    count_noise: Annotated[CountNoise, Field(strict=False)] = CountNoise.LAPLACE
    blocks: Blocks | None = None

    @property
    def unit_id(self) -> str:
        """The name of the currency, 32 hexadecimal characters: equal exactly if numbers, noise and blocks are."""
        kind = () if self.count_noise is CountNoise.LAPLACE else (b"gaussian/gdp",)
        blocks = () if self.blocks is None else (self.blocks.digest,)
        encoded = length_prefixed(
            b"gris/unit/v1", _ratio(self.epsilon_per), _ratio(self.delta), *kind, *blocks
        )
        return hashlib.sha256(encoded).hexdigest()[:_UNIT_ID_CHARACTERS]

    @property
    def times(self) -> int:
        """How often a budget counts for one member: once in each block that the member may be of."""
        return 1 if self.blocks is None else self.blocks.times

    def paid_by(self, query: CanonicalQuery, column: str | None, *, is_divided: bool) -> PaidBy:
        """Return what pays for a question.

        Args:
            query: The question.
            column: The column of its table's blocks; None: it has none.
            is_divided: Whether any table has such a column that who asks is offered.
        """
        if self.blocks is None or not is_divided:
            return PaidBy(self.unit_id)
        return PaidBy(self.unit_id, self.blocks.read_by(query, column), self.blocks.name, column or "")


def _ratio(number: Fraction) -> bytes:
    return f"{number.numerator}/{number.denominator}".encode()
