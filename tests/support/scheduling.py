"""How tests are spread over the workers of pytest-xdist: by files, and what takes the whole machine in one worker."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

from tests.support.rings import SERIAL


class OneAtATime(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Sends each file to one worker, and the folders that start Pinot, Spark or containers all to the same one.

    xdist's own groups would do, were they not lost with pytest 9.2 and xdist 3.8: tests of a group went to any worker.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return "one at a time" if {*path.split("/")} & {*SERIAL} else path
