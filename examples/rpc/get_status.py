"""Shows since when the configuration is in force, and why a newer one is not."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
status = service.GetStatus(admin_pb2.GetStatusRequest())
print("in force since", status.configuration_since.ToJsonString())
for fault in status.faults:
    print("refused:", fault.field, "expected", fault.expected)
