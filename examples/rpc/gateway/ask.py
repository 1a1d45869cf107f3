"""Asks for the three articles that most members gave an opinion on."""

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
for response in service.Ask(app_pb2.AskRequest(question=question, request_id="the first question")):
    chunk = response.chunk
    for column in chunk.columns:
        print(
            *zip(
                column.strings.values,
                chunk.noisy_counts,
                chunk.interval_lower,
                chunk.interval_upper,
                strict=True,
            )
        )
    if response.HasField("end"):
        print(response.end.charged.information, "information", response.end.charged.calls, "calls")
