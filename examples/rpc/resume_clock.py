"""Lets the time of a root account run on after the clock of its store was wrong."""

import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
request = admin_pb2.ResumeClockRequest(
    account=budget_pb2.Account(path=["demo"]), request_id=str(uuid.uuid4())
)
request.true_time.GetCurrentTime()
try:
    print("ahead of the store's clock by", service.ResumeClock(request).ahead.ToJsonString())
except grpc.RpcError as error:
    # Usually nothing is wrong: FAILED_PRECONDITION, CLOCK_NOT_BEHIND.
    print(error.code().name, error.details())
