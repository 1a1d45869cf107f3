"""Asks administrators for a higher limit of the caller's account."""

import os
import uuid
from pathlib import Path

import grpc
from gris_api.app.v1 import app_pb2, app_pb2_grpc

ca, key, certificate = (
    Path(os.environ[f"GRIS_{name}_FILE"]).read_bytes() for name in ("CA", "KEY", "CERTIFICATE")
)
credentials = grpc.ssl_channel_credentials(ca, key, certificate)
service = app_pb2_grpc.PrivateQueryServiceStub(
    grpc.secure_channel(os.environ["GRIS_GATEWAY"].removeprefix("gris://"), credentials)
)
request = app_pb2.RequestBudgetRequest(
    information=6000, calls=600, reason="the yearly report", request_id=str(uuid.uuid4())
)
print("request", service.RequestBudget(request).id, "waits for an administrator")
