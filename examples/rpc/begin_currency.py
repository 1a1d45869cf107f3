"""Plans another currency for a root account, from its next window on."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
request = admin_pb2.BeginCurrencyRequest(
    account=budget_pb2.Account(path=["demo"]),
    # The unit_id that GetCatalog returns under the policy that will be served from then on.
    unit_id="00000000000000000000000000000001",
    request_id=str(uuid.uuid4()),
)
print("costs are accepted in it from", service.BeginCurrency(request).begins_at.ToJsonString())
