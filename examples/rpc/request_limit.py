"""Asks for a higher limit of an account, in the name of who asks."""

import os
import uuid

import grpc
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc

service = budget_pb2_grpc.BudgetServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
request = budget_pb2.RequestLimitRequest(
    account=budget_pb2.Account(path=["demo", f"asker-{uuid.uuid4().hex[:8]}"]),
    information=6000,
    calls=600,
    reason="the yearly report",
    asked_by=["sub:ada"],
    request_id=str(uuid.uuid4()),
)
print("request", service.RequestLimit(request).id)
