"""Reports a charge that a region has made from a lease."""

import os

import grpc
from gris_api.budget.v1 import budget_pb2, regions_pb2, regions_pb2_grpc
from gris_api.common.v1 import cost_pb2

service = regions_pb2_grpc.RegionServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET"]))
charge = regions_pb2.ReportedCharge(
    account=budget_pb2.Account(path=["demo", "ana"]),
    lease_id=os.environ["GRIS_LEASE_ID"],
    number=1,
    cost=cost_pb2.Cost(information=5, calls=1, unit_id=os.environ["GRIS_UNIT_ID"]),
)
request = regions_pb2.ReportChargesRequest(
    region="eu", instance=os.environ["GRIS_REGION_INSTANCE"], charges=[charge]
)
print(service.ReportCharges(request).charges[0].is_known)
