"""Settles a reservation with what a release cost."""

import os
import uuid

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
reserve = budget_pb2.ReserveBudgetRequest(
    account=account,
    max_cost=cost_pb2.Cost(information=21, calls=1, unit_id=catalog.unit_id),
    query_id="another question",
    request_id=str(uuid.uuid4()),
)
charge = budget_pb2.UpdateBudgetRequest(
    account=account,
    cost=cost_pb2.Cost(information=16, calls=1, unit_id=catalog.unit_id),
    request_id=str(uuid.uuid4()),
    reservation_id=service.ReserveBudget(reserve).reservation_id,
    release_id="the release_id of AddNoise",
)
charged = service.UpdateBudget(charge)
for level in charged.levels:
    print("/".join(level.path), level.remaining.information, "information units left")
# A retry of the same call is answered from the ledger and costs nothing.
print("replayed:", service.UpdateBudget(charge).replayed)
