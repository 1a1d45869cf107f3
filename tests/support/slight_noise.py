"""What the noise of more units than anybody has still does to counts and sums.

Its variance is 1/11 however many units there are (`dp_service.noise.gaussian_price.DISCRETENESS`): one count in 120 is
off by 1, one in 10^9 by 2, and one in 10^21 by more, which is less often than a disk forgets a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

MOST = 2
"""The most that a count is off: by more once in 10^21."""


def is_near(found: float | Fraction | None, true: float | Fraction, most: float | Fraction = MOST) -> bool:
    """Return whether noise of variance 1/11 explains how far a number is from the true one."""
    return found is not None and abs(Fraction(found) - Fraction(true)) <= most


def require_near(
    found: Mapping[Any, float | None], true: Mapping[Any, float], most: float | Fraction = MOST
) -> None:
    """Assert that the same elements are there, each with its true number but for such noise."""
    assert found.keys() == true.keys()
    far = {key: (found[key], true[key]) for key in true if not is_near(found[key], true[key], most)}
    assert not far


def require_list(
    found: list[tuple[str, float | None]],
    true: Mapping[str, int],
    bottom: int,
    k: int | None = None,
    *,
    is_rounded: bool = False,
) -> None:
    """Assert that a list has the largest elements above a threshold, as far as such noise leaves them, in its order.

    Args:
        found: Elements and their noisy counts in the order in which they are shown.
        true: The counts of all elements.
        bottom: The threshold, which noisy counts exceed.
        k: How many are shown at most; None: all.
        is_rounded: Whether order and threshold were decided before counts were rounded.
    """
    counts = [count for _, count in found if count is not None]
    assert len(counts) == len(found)
    tied = (lambda name: b"") if is_rounded else str.encode
    assert found == sorted(found, key=lambda each: (-(each[1] or 0), tied(each[0])))
    require_near(dict(found), {name: true[name] for name, _ in found})
    assert all(count + is_rounded > bottom for count in counts)
    assert len(found) == len(dict(found))
    assert k is None or len(found) <= k
    # Who is not shown is below the threshold, or below the last one of a full list.
    least = min(counts) if k is not None and len(found) == k else bottom
    names = dict(found).keys()
    assert [name for name, count in true.items() if name not in names and count > least + 2 * MOST] == []
