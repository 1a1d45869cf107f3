"""Lists the caller's own results."""

import os
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
for release in service.ListReleases(app_pb2.ListReleasesRequest(page_size=5)).releases:
    print(
        release.released_at.ToDatetime(),
        release.question.structured.table,
        release.result.shown.element_count,
    )
