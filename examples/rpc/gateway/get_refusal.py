"""Asks for a column that there is not, and then why that was refused."""

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
asked = question_pb2.Question(sql="SELECT nothing, COUNT(*) FROM cofacts_feedback GROUP BY nothing")
try:
    list(service.Ask(app_pb2.AskRequest(question=asked, request_id="refused-1")))
except grpc.RpcError:
    refused = service.GetRefusal(app_pb2.GetRefusalRequest(request_id="refused-1"))
    print(refused.refused_at.ToDatetime(), refused.refusal.reason, refused.refusal.message)
