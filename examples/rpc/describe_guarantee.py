"""Asks what the default budget is worth."""

import os

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
worth = service.DescribeGuarantee(dp_pb2.DescribeGuaranteeRequest(information=3000, calls=300))
print(f"({worth.epsilon:.2f}, {worth.delta:.2g})-differentially private")
