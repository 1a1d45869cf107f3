"""Where an answer finds little or says little, and what would help.

Everything is said of what the answer shows and of public numbers: of the policy, the question and the mechanism. So it
is post-processing, and says nothing of elements that are not shown, nor of how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dp_service.releases.kinds import AnyKind
from dp_service.releases.kinds.parts import WHAT_HELPS
from dp_service.releases.kinds.views import Counts, IntervalKind, ReleaseView, ShownSums
from dp_service.releases.statements import Statement, elements

# A larger limit means all elements: some clients limit every question.
_MOST_WANTED = 100
_SETTINGS_HELP = "The policy's owner may choose settings that find more: more units, or other bounds."


def shortcomings(kind: AnyKind, view: ReleaseView, shown: Counts | None) -> Iterator[Statement]:
    """Yield what an answer is short of.

    Args:
        kind: The kind of the question.
        view: What the question shows of the release.
        shown: The counts that the view shows; None: it shows none.
    """
    yield from _few(kind, view.count)
    yield from _full(kind, view.count)
    if shown is not None and shown.noisy.size:
        yield from _noisy(kind, view, shown)
        yield from _negative(shown)
    yield from _uncertain(kind, view)


def _few(kind: AnyKind, found: int) -> Iterator[Statement]:
    """Yield that fewer elements of an unknown domain are shown than were asked for, and what one needs."""
    wanted, listing = kind.parameters.k, kind.parameters.listing
    if listing is not None and listing.having:
        # How many the question's own conditions left out is not known here.
        return
    if wanted is not None and wanted > _MOST_WANTED:
        wanted = None
    if found >= (wanted or 1):
        return
    expected = kind.accuracy()
    if expected.found_mostly is None:
        return
    of = f"{found} of {elements(wanted)}" if wanted else "No element"
    where = "a first look" if kind.first_look is not None else "the threshold"
    above = ""
    if not expected.is_fixed:
        rank = (kind.parameters.d_bar or 0) + 1
        above = f" more than that at rank {rank} (0 if there are fewer elements)"
    yield Statement(
        "list.few",
        f"{of} {'is' if wanted in (None, 1) else 'are'} shown. With these settings an element needs a count of about "
        f"{expected.found_mostly}{above} to pass {where} with 95 %; that grows with {kind.grows_with}. "
        f"{_SETTINGS_HELP}",
        values=(str(found), str(expected.found_mostly)),
    )


def _full(kind: AnyKind, found: int) -> Iterator[Statement]:
    """Yield that a setting of the policy, and not the question, has decided how many elements there are."""
    most = kind.most_found
    if most is None or found < most or kind.parameters.k == found:
        return
    yield Statement(
        "list.full",
        f"{elements(found)} are as many as these settings let a list have, so there may be others like them.",
        values=(str(most),),
    )


def _noisy(kind: AnyKind, view: ReleaseView, shown: Counts) -> Iterator[Statement]:
    """Yield that noise alone may be half of most counts, or more of them."""
    half_width = kind.accuracy().half_width
    if half_width is None:
        return
    # A count of v is off by v / 2 or more if its noise is.
    poor = int((np.abs(shown.noisy) <= 2 * half_width * shown.denominator).sum())
    if 2 * poor < shown.noisy.size:
        return
    # Elsewhere an element is shown because of the noise in its count, too.
    less = (
        ""
        if view.interval_kind is IntervalKind.PLAIN
        else ", and less surely where counts decide what is shown"
    )
    yield Statement(
        "counts.noisy",
        f"By its noise alone a count is off by up to {half_width} with 95 %{less}: for "
        f"{_of(poor, shown.noisy.size)} shown, that is half of the count or more. {WHAT_HELPS}",
        values=(str(half_width), str(poor)),
    )


def _negative(shown: Counts) -> Iterator[Statement]:
    negative = int((shown.noisy < 0).sum())
    if not negative:
        return
    yield Statement(
        "counts.negative",
        f"{_of(negative, shown.noisy.size)} shown {'is' if negative == 1 else 'are'} below 0: noise may take more from "
        "a small count than there is. They stand as they were drawn: cut off at 0, counts would add up to too much.",
        values=(str(negative),),
    )


def _uncertain(kind: AnyKind, view: ReleaseView) -> Iterator[Statement]:
    """Yield for each column that is summed that intervals of its sums hold 0."""
    stated = kind.parameters.sums
    if stated is None:
        return
    for asked, sums in zip(stated.asked, view.aggregates, strict=False):
        if not isinstance(sums, ShownSums):
            continue
        holding = sum(low <= 0 <= high for low, high in zip(sums.lower, sums.upper, strict=True))
        if not holding:
            continue
        yield Statement(
            "sums.uncertain",
            f"The intervals of {_of(holding, len(sums.values), 'value')} of {asked.name} hold 0, so all that is "
            "shown there may be noise. Fewer columns, longer buckets, a longer time or wider conditions put more into "
            "each sum.",
            stated.columns[asked.place].name,
            (str(holding),),
        )


def _of(some: int, all_of_them: int, noun: str = "count") -> str:
    """Return how many of how many."""
    return f"{some:,} of {all_of_them:,} {noun}{'s' * (all_of_them != 1)}"
