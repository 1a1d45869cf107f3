"""Forgets who a closed account was that nothing counts for any more; this one was never charged."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
account, request_id = budget_pb2.Account(path=["demo", "mistyped"]), str(uuid.uuid4())
service.CloseAccount(
    admin_pb2.CloseAccountRequest(account=account, reason="a typing error", request_id=request_id)
)
request = admin_pb2.ForgetAccountRequest(
    account=account,
    reason="a typing error",
    request_id=str(uuid.uuid4()),
)
service.ForgetAccount(request)
print("forgotten")
