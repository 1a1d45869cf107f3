"""Lists the requests for other limits that wait for a decision."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
waiting = service.ListLimitRequests(admin_pb2.ListLimitRequestsRequest()).requests
print(len(waiting), "requests wait")
for each in waiting:
    print(each.id, "/".join(each.account.path), each.limit_after.information, each.reason)
