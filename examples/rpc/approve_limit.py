"""Approves a request for another limit, which is set at once where one person is enough."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2, budget_pb2_grpc

budget = budget_pb2_grpc.BudgetServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
request = budget_pb2.RequestLimitRequest(
    account=budget_pb2.Account(path=["demo", f"asker-{uuid.uuid4().hex[:8]}"]),
    information=6000,
    calls=600,
    reason="the yearly report",
    request_id=str(uuid.uuid4()),
)
decision = admin_pb2.ApproveLimitRequest(
    account=request.account,
    id=budget.RequestLimit(request).id,
    request_id=str(uuid.uuid4()),
)
print("version", service.ApproveLimit(decision).version)
