"""Opens a closed account again, with all that it had spent."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_ADMIN"]))
request = admin_pb2.ReopenAccountRequest(
    account=budget_pb2.Account(path=["demo", "returner"]),
    reason="closed by mistake",
    request_id=str(uuid.uuid4()),
)
try:
    service.ReopenAccount(request)
    print("open again")
except grpc.RpcError as error:
    # Nobody has closed it: FAILED_PRECONDITION, ACCOUNT_NOT_CLOSED.
    print(error.code().name, error.details())
