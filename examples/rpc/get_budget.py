"""Shows what is spent, reserved and left."""

import os

import grpc
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc

service = budget_pb2_grpc.BudgetServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
account = budget_pb2.Account(path=["demo", "ada"])
for level in service.GetBudget(budget_pb2.GetBudgetRequest(account=account)).levels:
    print(
        "/".join(level.path), level.spent.information, level.reserved.information, level.remaining.information
    )
