"""Notices a fail-over of Redis that lost charges which this service has acknowledged.

Replication is asynchronous: a replica that takes over may lack the last writes. It says how much of the previous
master's history it has: `master_replid2` names that history and `second_repl_offset` is where it ended. The service
remembers how far the history was when its last changes were answered, so it knows whether they are in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LOST = "a fail-over of Redis lost charges that were acknowledged"

COMMAND = ("INFO", "replication")
_FIELD = re.compile(
    r"^(master_replid2?|master_repl_offset|second_repl_offset|connected_slaves):(\S+)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class _Position:
    """A history of writes, and how far it was."""

    history: str
    offset: int


class Replication:
    """What a service knows of the history that its changes are in.

    `lost` is set once a master lacks some of them. Without replicas nothing can take over, and nothing needs
    to be asked: `has_replicas` tells whether there ever was one.
    """

    def __init__(self) -> None:
        self.has_replicas = False
        self.lost = False
        self._changes = 0
        self._known: _Position | None = None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be called around each change, from before it is sent until its answer is passed on."""
        self._changes += 1
        try:
            yield
        finally:
            self._changes -= 1

    def exchanged(self, information: str) -> None:
        """Note the answer to COMMAND right behind other commands, before their answers are passed on."""
        found = dict(_FIELD.findall(information))
        before, history, offset = self._known, found["master_replid"], int(found["master_repl_offset"])
        self._compare(found)
        # What others write, such as Redis' own pings to its replicas, is not missed by this service.
        if self._changes:
            # Of two connections, one may pass on later an answer that it had sooner.
            is_known = before is not None and before.history == history and before.offset > offset
            self._known = before if is_known else _Position(history, offset)

    def accepted(self) -> None:
        """Forget a loss that an administrator has confirmed."""
        self.lost = False

    def seen(self, information: Mapping[str, Any]) -> None:
        """Note what Redis says of its replication at another time."""
        self.has_replicas = self.has_replicas or int(information.get("connected_slaves", 0)) > 0
        self._compare({name: str(value) for name, value in information.items()})

    def _compare(self, found: Mapping[str, str]) -> None:
        known = self._known
        if known is None or found.get("master_replid", known.history) == known.history:
            return
        if found.get("master_replid2") == known.history:
            # The first offset that is not of the previous history any more.
            self.lost = self.lost or int(found["second_repl_offset"]) <= known.offset
        # Else Redis was started again, or another copy was put there: the high-water mark decides. The offsets go on.
        self._known = _Position(found["master_replid"], known.offset)
