"""Records of changed files, in the journals of some roots one after the other: a retry goes on where one failed."""

from __future__ import annotations

from collections.abc import Sequence

from gris_api.budget.v1 import admin_pb2 as pb

from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import LimitsSet
from budget_service.ledger.recorded_files import RecordedFile
from budget_service.ledger.requests import RecordFile
from budget_service.ledger.values import Account
from budget_service.server import rpc_errors
from budget_service.server.admin_messages import Administrator
from budget_service.server.messages import parse_id
from budget_service.server.service import success
from budget_service.stores.interface import Store


async def record_file(
    store: Store, message: pb.RecordFileRequest, sender: Administrator, roots: Sequence[str]
) -> pb.RecordFileResponse:
    """Record a file in the journals of roots.

    Raises:
        InvalidFieldError: A field is malformed.
        RefusalError: The ledger has not got one of them, or there are none, or it refuses.
        StoreError: The store failed.
    """
    request_id = parse_id(message.request_id, "request_id")
    file = RecordedFile.parse(message.file.kind, message.file.sha256, message.file.name)
    reason = sender.reason(message.reason)
    if not roots or not {*roots} <= {*await store.roots()}:
        raise rpc_errors.RefusalError(rpc_errors.no_journal(next(iter(roots), "")))
    replayed = True
    for root in roots:
        request = RecordFile(
            account=Account((root,)), request_id=request_id, actor=sender.actor, file=file, reason=reason
        )
        answer = await store.apply(request, NO_LIMITS)
        success(answer, LimitsSet, request)
        replayed = replayed and answer.replayed
    return pb.RecordFileResponse(journals=len(roots), replayed=replayed)
