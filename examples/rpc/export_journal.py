"""Counts the lines of each root account's journal, and prints the digest that they end with."""

import os

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
lines = 0
for part in service.ExportJournal(admin_pb2.ExportJournalRequest()):
    lines += part.lines.count("\n")
    if part.HasField("end"):
        print(part.root, lines, "of", part.end.entries, "entries, with the digest", part.end.digest)
        lines = 0
