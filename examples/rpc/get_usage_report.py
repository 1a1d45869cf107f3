"""Shows how many analysts would have exhausted a limit by the end of each day."""

import os
from datetime import UTC, datetime, timedelta

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
request = admin_pb2.GetUsageReportRequest(
    account=budget_pb2.Account(path=["demo"]), depth=2, days=31, information_limits=[10, 3000]
)
request.start_time.FromDatetime(datetime.now(UTC) - timedelta(days=30))
report = service.GetUsageReport(request)
for curve in report.curves:
    print(curve.limit, curve.unit, "exhausted by", curve.exhausted_accounts[-1], "of", report.accounts)
