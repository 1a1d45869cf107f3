"""Finds how many information units a guarantee permits."""

import os

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
wanted = dp_pb2.SolveParametersRequest(epsilon="10", delta="1e-8", epsilon_per="0.15", calls=300)
print(service.SolveParameters(wanted).information, "information units")
