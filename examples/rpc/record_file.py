"""Records in each journal that a file by which services decide was changed."""

import hashlib
import os
import uuid

import grpc
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc

service = admin_pb2_grpc.BudgetAdminServiceStub(grpc.insecure_channel(os.environ["GRIS_BUDGET_ADMIN"]))
content = b"accounts: []"
done = service.RecordFile(
    admin_pb2.RecordFileRequest(
        file={"kind": "budget", "name": "budget.yaml", "sha256": hashlib.sha256(content).hexdigest()},
        reason="limits of the new year",
        request_id=str(uuid.uuid4()),
    )
)
print("recorded in", done.journals, "journals")
