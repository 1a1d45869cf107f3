"""Moves an account to another name, with all that it has spent and paid for."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_ADMIN"]))
request = admin_pb2.MoveAccountRequest(
    account=budget_pb2.Account(path=["demo", "unused"]),
    target=budget_pb2.Account(path=["demo", "new-id"]),
    reason="the identity provider gave out new ids",
    request_id=str(uuid.uuid4()),
)
try:
    service.MoveAccount(request)
    print("moved")
except grpc.RpcError as error:
    # The account was never used: FAILED_PRECONDITION, NOTHING_TO_MOVE.
    print(error.code().name, error.details())
