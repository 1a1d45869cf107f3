"""The catalogue of a gateway, which starts behind it."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
from psycopg import errors

from gris_gateway.faces.postgres.catalogue_process import programs
from tests.support.programs import is_hidden

WAIT_SECONDS = 50.0


def catalogue_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs that a gateway would use; None: there is none, or it is hidden."""
    return None if is_hidden("postgres") else programs()


def wait_for_catalogue(connection: psycopg.Connection) -> None:
    """Wait until the catalogue answers."""
    ends = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("SELECT 1 + 1")
        except errors.CannotConnectNow:
            assert time.monotonic() < ends
        else:
            return
