"""Lists what may be asked."""

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
request = app_pb2.GetCatalogRequest()
while True:
    page = service.GetCatalog(request).page
    for table in page.tables:
        print(table.name, *(column.name for column in table.columns))
    if not page.next_page_token:
        break
    request.page_token = page.next_page_token
