"""How tests are spread over the workers of pytest-xdist: by files, and by lanes of what is heavy."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

from tests.support.rings import lane_of


class Lanes(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Sends each file to one worker, and all files of a lane to the same one.

    xdist's own groups would do, were they not lost with pytest 9.2 and xdist 3.8: tests of a group went to any worker.
    """

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid) or super()._split_scope(nodeid)
