"""A published domain and the calls that read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from gris_api.dp.v1 import dp_pb2_grpc

from dp_service.releases.keys import KeySet
from dp_service.server.served_policy import PolicyContent, ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from pinot_connector.channels import Timeouts
from pinot_connector.dp_service_client import DpServiceClient
from tests.support.dp_questions import KEY, Clock, Entropy

DOMAIN = [f"v{i:04}" for i in range(1300)]
POLICY = f"""
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: m
    time: {{column: day, type: date, refresh: month, delay_minutes: 0}}
    measures: {{events: {{tau: 4, tau_is: clipped}}}}
    columns:
      page: {{type: string, group_by: true, domain: {DOMAIN!r}, delta: 2}}
      since: {{type: date, filter: [in], nulls: keep, null_value: 2020-02-29}}
"""


def content(text: str = POLICY) -> PolicyContent:
    """Return a policy as it is served."""
    return usable_policy(text.encode(), "policy", KEY)


@asynccontextmanager
async def calls_to(served: ServedPolicy) -> AsyncIterator[DpServiceClient]:
    """Serve a policy and give calls to it."""
    server = grpc.aio.server()
    servicer = DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()))
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    calls = DpServiceClient(f"127.0.0.1:{port}", Timeouts())
    yield calls
    await calls.close()
    await server.stop(None)
