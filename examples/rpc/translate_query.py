"""Translates a question for every engine."""

import os

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc, question_pb2

# The data_version that the policy declares. For a table without one, send the version that its engine reports.
VERSION = "sha256:9c2421aef2b1692b3c8692d6ccbd3fe8a5b237e0cc62dc5ed3e0d41d4eb81234"

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
question = question_pb2.Question(
    sql="SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app ORDER BY 2 DESC LIMIT 3"
)
translated = service.TranslateQuery(dp_pb2.TranslateQueryRequest(question=question, data_version=VERSION))
for query in translated.engine_queries:
    print(query.dialect, query.sql)
print("reserve", translated.worst_case_cost, "for", translated.query_id)
