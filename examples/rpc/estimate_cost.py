"""Asks what a question would cost at most."""

import os

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
question = question_pb2.Question(
    sql="SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app ORDER BY 2 DESC LIMIT 3"
)
estimate = service.EstimateCost(dp_pb2.EstimateCostRequest(question=question)).estimate
print(estimate.worst_case_cost.information, "information units at most")
print("\n".join(each.text for each in estimate.statements))
