"""What a question for a sharpening brings along: the releases of the looks before it, and the names of the first.

Every one of them proves itself. A release's ticket shows that this deployment made it for the question that its
query_id names, and that has to be the question's own, for this policy and this version of the data. The tag of the
names shows that the first release has these elements and no others.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.queries.resolution import Resolution
from dp_service.releases.keys import NoiseKey
from dp_service.releases.plan import Plan
from dp_service.releases.release_ids import keyed_data_version, names_tag
from dp_service.releases.sharpening import AskedSharpening, sharpened_question
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.server.errors import NotSharpenableError, RequestError
from dp_service.server.kept_assembler import require_authentic
from dp_service.server.messages import column_values
from dp_service.terms import Element, Scalar

_UNPAID = (
    "expected a kept release of the question, and of each sharpening before the last one, that the account has paid "
    "for on the present version of the data and of the policy: ask for them first, one after the other"
)


@dataclass(frozen=True)
class SharpeningRequest:
    """A question for a sharpening, with what it is translated under.

    Attributes:
        resolution: The question without the sharpening.
        message: The sharpening.
        most_units: The most units that the policy allows; None: it allows none.
        before: The looks before it; None: the request has none.
    """

    resolution: Resolution
    message: question_pb2.Sharpening
    most_units: int | None
    before: dp_pb2.LooksBefore | None = None

    @property
    def asked(self) -> AskedSharpening:
        """What is asked for."""
        return AskedSharpening(tuple(self.message.units), self.message.planned)

    def estimate(self) -> Resolution:
        """Return the question for the last look, whose names are not known yet.

        Raises:
            RefusedByPolicyError: The policy allows no such look.
            QuestionError: The units are out of range.
        """
        return sharpened_question(self.resolution, self.asked, most_units=self.most_units)

    def translated(self, data_version: str, key: NoiseKey, context: IssueContext) -> Resolution:
        """Return the question for the last look, about the names of the release that it sharpens.

        Args:
            data_version: The engine's own version of the data.
            key: The current key.
            context: The time, and fresh random bytes.

        Raises:
            RefusedByPolicyError: The policy allows no such look.
            QuestionError: The units are out of range.
            NotSharpenableError: The releases are not as many as the question says, of another version of the data or of
                the policy, or show nothing.
            ReleaseNotAuthenticError: This deployment did not make them.
            RequestError: The names are no elements.
        """
        self.estimate()
        base = plan_for(self.resolution, data_version, key, context)
        self._require_version(base, key)
        if self.before is None or len(self.before.releases) != len(self.message.units):
            raise NotSharpenableError(_UNPAID)
        names = self._names(base, key, self.before)
        for number, kept in enumerate(self.before.releases):
            plan = base if number == 0 else plan_for(self._look(number, names), data_version, key, context)
            _require_of(plan, kept.bill, key)
        return self._look(len(self.message.units), names)

    def _look(self, number: int, names: tuple[Element, ...] | None) -> Resolution:
        releases = [] if self.before is None else self.before.releases[:number]
        return sharpened_question(
            self.resolution,
            self.asked.first(number),
            most_units=self.most_units,
            names=names,
            release_ids=tuple(each.bill.release_id for each in releases),
        )

    def _require_version(self, base: Plan, key: NoiseKey) -> None:
        stated = self.message.data_version
        if stated and stated != keyed_data_version(key, base.table, base.data_version):
            raise NotSharpenableError("the data have another version by now than the release to sharpen")

    def _names(self, base: Plan, key: NoiseKey, before: dp_pb2.LooksBefore) -> tuple[Element, ...] | None:
        """Return the names of the first release; None: its domain is that of the question."""
        if base.parameters.domain is not None:
            return None
        first = before.releases[0]
        # Before the tag: on another version the tag is not wrong, but of another question.
        _require_of(base, first.bill, key)
        names = _elements([column_values(column) for column in before.names])
        if not hmac.compare_digest(first.names_tag, names_tag(key, first.bill.release_id, names)):
            raise NotSharpenableError(
                "the release was kept by a version that could not sharpen, or its elements are not those that it was "
                "kept with; ask a question with another data_version"
            )
        if not names:
            raise NotSharpenableError(
                "the release to sharpen shows no elements, so there is nothing to count"
            )
        return names


def _elements(columns: Sequence[Sequence[Scalar]]) -> tuple[Element, ...]:
    if not columns or len({len(column) for column in columns}) > 1:
        raise RequestError("before.names", "expected as many values in every column")
    return tuple(sorted(zip(*columns, strict=True)))


def _require_of(plan: Plan, bill: dp_pb2.Bill, key: NoiseKey) -> None:
    if bill.query_id != plan.query_id:
        raise NotSharpenableError(
            "the data or the policy have another version by now than the release to sharpen"
        )
    require_authentic(plan, bill, key)
