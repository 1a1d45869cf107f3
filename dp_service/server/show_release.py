"""Shows a kept release: how much of it a question shows, with which intervals, and the ticket to charge it with.

The release was drawn and returned before, as a whole. What happens here is post-processing: it needs neither data nor
noise.
"""

from __future__ import annotations

from collections.abc import Iterator

from gris_api.dp.v1 import dp_pb2

from dp_service.releases.kinds import kind_of
from dp_service.releases.releasing import from_the_draw_on, shown
from dp_service.server.errors import RequestError
from dp_service.server.kept_assembler import KeptAssembler
from dp_service.server.responses import ReleaseMessages


def show_release(received: KeptAssembler) -> Iterator[dp_pb2.ShowReleaseResponse]:
    """Return the messages that show a kept release under the plan of a question.

    Raises:
        RequestError: Ranks and counts do not belong together.
        UnansweredDrawError: Something else failed, which what was drawn may have decided.
    """
    plan, drawn = received.plan, received.drawn()
    try:
        kind_of(plan.parameters).require(drawn)
    except ValueError:
        # A ticket says what a release costs, and not what is in it.
        raise RequestError("chunk.elements", "expected the counts and sums as the release has them") from None
    with from_the_draw_on():
        view = shown(plan.parameters, drawn, confidence=received.confidence)
    messages = ReleaseMessages(plan, received.confidence, received.key)
    return messages.shown_again(received.kept, received.counts, view)
