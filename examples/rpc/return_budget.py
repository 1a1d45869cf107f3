"""Gives back what is left of a lease."""

import os

import grpc
from gris_api.budget.v1 import budget_pb2, regions_pb2, regions_pb2_grpc

service = regions_pb2_grpc.RegionServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
request = regions_pb2.ReturnBudgetRequest(
    account=budget_pb2.Account(path=["demo", "ana"]),
    region="eu",
    instance=os.environ["GRIS_REGION_INSTANCE"],
    lease_id=os.environ["GRIS_LEASE_ID"],
    reported=1,
)
print(service.ReturnBudget(request).returned.information)
