"""Requests to a real Pinot without the connector."""

import httpx

HTTP = httpx.Client(timeout=30, limits=httpx.Limits(max_keepalive_connections=0))
"""As `httpx.get` and the like, each of which reads all certificates of this machine, for a twentieth of the CPU.

Each request has a connection of its own, for what it goes to is killed and started again.
"""
