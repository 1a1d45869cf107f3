"""Checks the text of a policy: each fault comes with its line and key."""

import os

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
text = """\
epsilon_per: 0.15
delta: 1e-11
tables:
  visits:
    member: visitor_id
    measures: {distinct_members: true}
    columns:
      page: {type: text, group_by: true}
"""
checked = service.CheckPolicy(dp_pb2.CheckPolicyRequest(text=text))
for fault in checked.faults:
    print(f"line {fault.line}: {fault.key}: {fault.message}")
