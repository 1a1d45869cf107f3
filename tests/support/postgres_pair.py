"""Two PostgreSQL servers, of which one follows the other synchronously and takes its place when it is killed."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.postgres_server import PostgresServer, copied, postgres_server, standby_of

# Every commit waits until the other server has it on its disk.
SYNCHRONOUS = "synchronous_standby_names=*"
# What is added to the address of a ledger that has to be on both.
REQUIRED = "&synchronous=required"
START_SECONDS = 120.0
_FOLLOWED = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"


@dataclass
class PostgresPair:
    """As a store: what is killed or frozen is each server in turn, as it is primary or standby at that moment."""

    primary: PostgresServer
    standby: PostgresServer
    fail_overs: int = 0
    _kills: Iterator[int] = field(default_factory=itertools.count)
    _freezes: Iterator[int] = field(default_factory=itertools.count)

    @property
    def address(self) -> str:
        """The address of its store for libpq, which finds the primary."""
        return self.behind(*sorted(f"127.0.0.1:{each.port}" for each in (self.primary, self.standby)))

    @staticmethod
    def behind(*hosts: str) -> str:
        """Return the address where both are found at these places."""
        parameters = "connect_timeout=10&target_session_attrs=read-write"
        return f"postgresql://gris@{','.join(hosts)}/postgres?{parameters}"

    def kill(self) -> None:
        """Kill the primary twice of three times, and else the standby."""
        (self.primary, self.primary, self.standby)[next(self._kills) % 3].kill()

    def start(self) -> None:
        """Have the standby take the place of a primary that is gone, and another one follow it."""
        if self.primary.process is None:
            self._fail_over()
        if self.standby.process is None:
            self.standby.start()
        self._wait_until_followed()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the standby and the primary in turn."""
        with (self.standby, self.primary)[next(self._freezes) % 2].frozen():
            yield

    def _fail_over(self) -> None:
        self.primary, self.standby = self.standby, self.primary
        self.primary.execute("SELECT pg_promote()")
        self.fail_overs += 1
        # What the old primary has and nobody else was never acknowledged; it begins anew as a copy.
        parent = self.standby.folder.parent
        shutil.rmtree(self.standby.folder)
        assert copied(self.primary, parent) == self.standby.folder

    def _wait_until_followed(self) -> None:
        end = time.monotonic() + START_SECONDS
        while self.primary.execute(_FOLLOWED) != [(True,)]:
            assert time.monotonic() < end, "no standby follows the primary"
            time.sleep(0.05)


@contextmanager
def postgres_pair() -> Iterator[PostgresPair]:
    """Run both, or skip the test where there is no PostgreSQL."""
    with postgres_server(SYNCHRONOUS) as primary, standby_of(primary) as standby:
        # It waits for a standby of its own once it is the primary.
        standby.restart(SYNCHRONOUS)
        pair = PostgresPair(primary, standby)
        pair.start()
        yield pair
