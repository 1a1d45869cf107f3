"""Closes an account: nothing can be asked under it any more."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_ADMIN"]))
request = admin_pb2.CloseAccountRequest(
    account=budget_pb2.Account(path=["demo", "leaver"]),
    reason="left the company",
    request_id=str(uuid.uuid4()),
)
service.CloseAccount(request)
print("closed")
