"""Adds up the journal again and compares every balance with it."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
found = service.VerifyLedger(admin_pb2.VerifyLedgerRequest())
print(found.entries, "entries,", found.balances, "balances,", found.different, "differ")
