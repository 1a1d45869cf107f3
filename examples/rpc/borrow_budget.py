"""Borrows a share of an account's budget, as a region does."""

import os
import secrets

import grpc
from gris_api.budget.v1 import budget_pb2, regions_pb2, regions_pb2_grpc
from gris_api.common.v1 import cost_pb2

service = regions_pb2_grpc.RegionServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
request = regions_pb2.BorrowBudgetRequest(
    account=budget_pb2.Account(path=["demo", "ana"]),
    region="eu",
    instance=secrets.token_hex(16),
    lease_id=secrets.token_hex(16),
    wanted=cost_pb2.Cost(information=21, calls=1, unit_id=os.environ["GRIS_UNIT_ID"]),
)
lease = service.BorrowBudget(request)
print(lease.share.information, lease.share.calls)
