"""Writes a checkpoint of a root account's journal."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
checkpointed = service.SealJournal(admin_pb2.SealJournalRequest(account=budget_pb2.Account(path=["demo"])))
print(checkpointed.entries, "entries in the checkpoint, digest", checkpointed.digest)
