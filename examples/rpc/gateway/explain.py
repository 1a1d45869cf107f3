"""Shows what a question would cost at most, and how much of the budget that is."""

import os
from pathlib import Path

import grpc
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.dp.v1 import question_pb2

ca, key, certificate = (
    Path(os.environ[f"GRIS_{name}_FILE"]).read_bytes() for name in ("CA", "KEY", "CERTIFICATE")
)
credentials = grpc.ssl_channel_credentials(ca, key, certificate)
service = app_pb2_grpc.PrivateQueryServiceStub(
    grpc.secure_channel(os.environ["GRIS_GATEWAY"].removeprefix("gris://"), credentials)
)
query = question_pb2.HistogramQuery(
    table="cofacts_feedback", dimensions=["article_id"], measure=question_pb2.MEASURE_DISTINCT_MEMBERS, k=3
)
question = question_pb2.Question(structured=query)
explained = service.Explain(app_pb2.ExplainRequest(question=question))
cost = explained.estimate.worst_case_cost
print(cost.information, cost.calls, *(each.text for each in explained.estimate.statements))
for share in explained.shares:
    print("/".join(share.path), share.cost, "of", share.limit, share.unit)
