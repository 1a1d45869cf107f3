"""Refunds what an account was charged for a release whose answer was wrong."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
request = admin_pb2.RefundChargeRequest(
    account=budget_pb2.Account(path=["demo", "ana"]),
    release_id="a release of ListCharges",
    reason="the engine answered with rows of an older version",
    request_id=str(uuid.uuid4()),
)
try:
    print("refunded", service.RefundCharge(request).refunded.information, "information units")
except grpc.RpcError as error:
    # Nobody has paid for a release with this id: FAILED_PRECONDITION, NOT_PAID.
    print(error.code().name, error.details())
