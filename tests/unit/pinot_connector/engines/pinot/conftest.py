"""Pinot's engine before fake Pinots: nothing here starts a process."""

from tests.support.fake_pinot_fixtures import opened, pinot, servers

__all__ = ("opened", "pinot", "servers")
