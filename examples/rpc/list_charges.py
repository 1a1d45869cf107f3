"""Lists what was charged, oldest first."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
root = budget_pb2.Account(path=["demo"])
page = admin_pb2.ListChargesResponse()
while True:
    request = admin_pb2.ListChargesRequest(account=root, page_size=100, page_token=page.next_page_token)
    page = service.ListCharges(request)
    for charge in page.charges:
        print(charge.time.ToJsonString(), "/".join(charge.account.path), charge.cost.information)
    if not page.next_page_token:
        break
