"""Lists what may be asked, page by page."""

import os

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

service = dp_pb2_grpc.DpServiceStub(grpc.insecure_channel(os.environ["GRIS_DP"]))
page = dp_pb2.GetCatalogResponse(next_page_token="")
while True:
    page = service.GetCatalog(dp_pb2.GetCatalogRequest(page_size=100, page_token=page.next_page_token))
    for table in page.tables:
        print(table.name, [column.name for column in table.columns])
    if not page.next_page_token:
        break
