"""Reserves the worst case of a question."""

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
request = budget_pb2.ReserveBudgetRequest(
    account=budget_pb2.Account(path=["demo", "ada"]),
    max_cost=cost_pb2.Cost(information=21, calls=1, unit_id=catalog.unit_id),
    query_id="the query_id of TranslateQuery",
    # A retry of this call sends the same id; a new reservation needs a new one.
    request_id=str(uuid.uuid4()),
)
request.ttl.FromSeconds(30)
held = service.ReserveBudget(request)
print(held.reservation_id, "until", held.expires_at.ToJsonString())
