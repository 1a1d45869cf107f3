"""The catalogue of a gateway, which starts behind it."""

from __future__ import annotations

import time

import psycopg
from psycopg import errors

WAIT_SECONDS = 50.0


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
