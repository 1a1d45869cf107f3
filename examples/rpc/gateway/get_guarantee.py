"""Shows the privacy guarantee of everything that the caller's account is shown."""

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
reported = service.GetGuarantee(app_pb2.GetGuaranteeRequest())
holds = reported.own if reported.sharing == app_pb2.SHARING_NONE else reported.shared
if holds.HasField("worth"):
    print(f"({holds.worth.epsilon:.2f}, {holds.worth.delta:.2g})-differentially private")
else:
    print("no limit is enforced, so nothing bounds it")
