"""Sets a limit for one analyst."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
limit = admin_pb2.Limit(
    information=500,
    calls=10,
    mode=budget_pb2.MODE_ENFORCE,
    period=admin_pb2.PERIOD_MONTH,
    zone="Europe/Berlin",
)
change = admin_pb2.LimitChange(path=["demo", "grace"], limit=limit)
request = admin_pb2.SetLimitsRequest(changes=[change], reason="a report", request_id=str(uuid.uuid4()))
print("limits of this root were changed", service.SetLimits(request).version, "times")
