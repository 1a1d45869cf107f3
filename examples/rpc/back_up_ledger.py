"""Copies the ledger into the service's folder for backups."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
backup = service.BackUpLedger(admin_pb2.BackUpLedgerRequest())
print(backup.file, "has", backup.bytes, "bytes")
