"""Checks whether a cost would be allowed now."""

import os

import grpc
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

# dp_service knows the unit_id of the deployment's currency.
catalog = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"])).GetCatalog(
    dp_pb2.GetCatalogRequest(page_size=1)
)
service = budget_pb2_grpc.BudgetServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
account = budget_pb2.Account(path=["demo", "ada"])
cost = cost_pb2.Cost(information=20, calls=1, unit_id=catalog.unit_id)
answer = service.CheckBudget(budget_pb2.CheckBudgetRequest(account=account, cost=cost))
print("fits" if answer.allowed else f"missing: {answer.shortfalls}")
