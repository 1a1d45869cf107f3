"""Pairs for private discovery, and its parameters."""

from __future__ import annotations

from fractions import Fraction

from dp_service.partitions import Method, Parameters

SEED = bytes(range(32))
SALT = b"a public salt"
TYPICAL = 5
# Popular and rare elements, members with one element and with sixty, odd texts, and pairs that repeat.
PAIRS = """
    SELECT 'm' || (i % 700) AS member,
           CASE i % 11 WHEN 0 THEN 'é😀' || (i % 3) WHEN 1 THEN '' ELSE 'e' || floor(pow(random(), 3) * 400)::INT END
           AS element
    FROM range(6000) r(i)
    UNION ALL SELECT 'm' || (i % 700), 'e' || (i % 40) FROM range(3000) r(i)
    UNION ALL SELECT 'many', 'x' || i FROM range(60) r(i)
"""


def parameters_of(method: Method) -> Parameters:
    """Return parameters under which every round releases something."""
    return Parameters(method, rho=Fraction(1, 2), delta=Fraction(1, 10**5), typical=TYPICAL)
