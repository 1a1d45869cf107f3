"""The one value of a member in a group, for quantiles, by a rule that looks at the member's own rows alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from dp_service.noise.encoding import length_prefixed
from dp_service.terms import MemberValue
from dp_service.values.bounds import ValueBounds
from dp_service.values.quantum import Value


def member_value(
    rule: MemberValue, rows: Sequence[Value], bounds: ValueBounds, *, salt: bytes, member: str
) -> int | None:
    """Return the value in steps, None if no row counts.

    Rows are clamped before anything else, and the result to the clamp of totals. A mean is rounded as rows are: to the
    nearest step, of two the upper one.

    Args:
        rule: Which value it is.
        rows: The member's rows in a group.
        bounds: How they are rounded and clamped.
        salt: The public salt of the table; for `ONE_ROW` only.
        member: Whose rows they are, as canonical text.
    """
    steps = [step for step in map(bounds.row, rows) if step is not None]
    if not steps:
        return None
    return bounds.totals(_reduced(rule, steps, salt, member))


def _reduced(rule: MemberValue, steps: Sequence[int], salt: bytes, member: str) -> int:
    match rule:
        case MemberValue.TOTAL:
            return sum(steps)
        case MemberValue.MEAN:
            return (2 * sum(steps) + len(steps)) // (2 * len(steps))
        case MemberValue.LARGEST:
            return max(steps)
        case MemberValue.ONE_ROW:
            return min(steps, key=lambda step: (_order_hash(salt, member, step), step))


def _order_hash(salt: bytes, member: str, step: int) -> bytes:
    """Return the bytes by which a member's values are ordered, as `bounding.order` orders elements."""
    return hashlib.sha256(length_prefixed(salt, member.encode(), str(step).encode())).digest()
