"""The question for a sharpening: a look more at the elements of a release that is paid for (`kinds.sharpened`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dp_service.mechanisms.bounded import BoundGauss
from dp_service.parameters.contributions import LooksBefore
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.resolution import NAMES_TO_COME, Resolution, second_look
from dp_service.releases.kinds import IncompleteParametersError, UnusableParametersError, kind_of
from dp_service.releases.kinds.sharpened import unusable_units
from dp_service.terms import Consistency, Element

MAXIMUM_SHARPENINGS = 8
MAXIMUM_UNITS = 1_000_000


@dataclass(frozen=True)
class AskedSharpening:
    """What a question asks for: the units of each sharpening, the last one's last, and whether they were planned.

    Raises:
        QuestionError: There are none or too many, or some are out of range.
    """

    units: tuple[int, ...]
    planned: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.units) <= MAXIMUM_SHARPENINGS:
            raise QuestionError("sharpening.units", f"expected the units of 1 to {MAXIMUM_SHARPENINGS} looks")
        if any(not 1 <= units <= MAXIMUM_UNITS for units in self.units):
            raise QuestionError("sharpening.units", f"expected whole numbers from 1 to {MAXIMUM_UNITS}")

    def first(self, number: int) -> AskedSharpening:
        """Return the question for one of the sharpenings, counted from 1."""
        return replace(self, units=self.units[:number])


def sharpened_question(
    resolution: Resolution,
    asked: AskedSharpening,
    *,
    most_units: int | None,
    names: tuple[Element, ...] | None = None,
    release_ids: tuple[str, ...] = (),
) -> Resolution:
    """Return the question for a look more, of a question as the policy resolves it.

    Args:
        resolution: The question without a sharpening.
        asked: The sharpening.
        most_units: The most units that the policy allows a sharpening; None: it allows none.
        names: What the release to sharpen named, in ascending order; None: this is an estimate.
        release_ids: The looks before this one; none in an estimate.

    Raises:
        RefusedByPolicyError: The policy allows no such look, or the question has no counts that can be sharpened.
        QuestionError: The units are out of range; `field` names them.
    """
    parameters = resolution.parameters
    base = kind_of(parameters).sharpenable
    if most_units is None:
        raise _refused("the policy allows no sharpening of this table (contributions.sharpening)")
    if base is None:
        raise _refused(
            "only counts of two looks, or of a known domain with bounded contributions, can be sharpened: not sums, "
            "not counts beside totals, and not counts relative to a total"
        )
    if parameters.listing is not None:
        raise _refused(
            "a series in time, a list that HAVING filters, or one with the smallest first cannot be: leave out the "
            "bucket, HAVING or the order"
        )
    if parameters.consistency is Consistency.FRESH:
        raise _refused("answers of this table do not repeat, so none is kept that could be sharpened")
    if any(units > most_units for units in asked.units):
        raise QuestionError("sharpening.units", f"expected at most {most_units} units, as the policy allows")
    look = _look_more(resolution, base, asked, names, release_ids)
    try:
        kind_of(look.parameters).require_answerable()
    except UnusableParametersError:
        raise unusable_units() from None
    return look


def _look_more(
    resolution: Resolution,
    base: BoundGauss,
    asked: AskedSharpening,
    names: tuple[Element, ...] | None,
    release_ids: tuple[str, ...],
) -> Resolution:
    parameters, stated = resolution.parameters, resolution.parameters.contributions
    if stated is None:
        raise IncompleteParametersError
    before = LooksBefore((base.units, *map(Fraction, asked.units[:-1])), release_ids, asked.planned)
    contributions = replace(stated, units=asked.units[-1], min_count=None, names=None, before=before)
    if parameters.domain is not None:
        return replace(resolution, parameters=replace(parameters, contributions=contributions))
    known = NAMES_TO_COME if names is None else names
    look = replace(parameters, contributions=contributions, domain=known, within=())
    return replace(second_look(resolution, known), parameters=look)


def _refused(why: str) -> RefusedByPolicyError:
    return RefusedByPolicyError(Rule.SHARPENING, f"sharpening: {why}")
