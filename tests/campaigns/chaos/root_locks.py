"""Who holds the lock of a root account in PostgreSQL between two round trips, and whether the others go on."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.postgres_server import PostgresServer

# Longer than a service that runs takes between its round trips, on a busy machine and a slow connection.
HELD_SECONDS = 0.3

_HELD = """
    SELECT count(*) > 0 FROM pg_stat_activity
    WHERE state = 'idle in transaction' AND clock_timestamp() - state_change > make_interval(secs => %s)
"""
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_BEHIND = (
    "SELECT count(*) > 0 FROM gris.rows "
    "WHERE key = 'roots' AND (text::json #>> '{record,last_time}')::bigint <= %s"
)


@dataclass(frozen=True)
class RootLocks:
    """The locks of one server."""

    server: PostgresServer

    def is_held(self) -> bool:
        """Tell whether a transaction has begun and has not gone on for a while."""
        return self._is(_HELD, HELD_SECONDS)

    def now(self) -> int:
        """Return the server's time."""
        ((found,),) = self.server.execute(_NOW)
        return int(found)

    def have_all_gone_on(self, since: int) -> bool:
        """Tell whether something was decided in every root since then."""
        return not self._is(_BEHIND, since)

    def _is(self, question: str, parameter: float) -> bool:
        ((answer,),) = self.server.execute(question, parameter)
        return bool(answer)
