"""Withdraws the plan of another currency."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
request = admin_pb2.WithdrawCurrencyRequest(
    account=budget_pb2.Account(path=["demo"]), request_id=str(uuid.uuid4())
)
service.WithdrawCurrency(request)
# A retry of the same call changes nothing.
print("replayed:", service.WithdrawCurrency(request).replayed)
