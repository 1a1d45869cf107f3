"""`gris budget resume-clock`."""

from __future__ import annotations

from gris_cli.budget.flags import DEFAULT_ADMIN, AdminFlag, ReasonFlag, RequestFlag, RootFlag
from gris_cli.flag_groups import with_flags


@with_flags
def resume_clock(
    *,
    root: RootFlag,
    reason: ReasonFlag = "",
    request_id: RequestFlag = "",
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Let the time of a root account go on after its store's clock jumped ahead. This machine's clock must be right."""
    from gris_api.budget.v1 import admin_pb2, budget_pb2

    from gris_cli.budget.ledger import administered
    from gris_cli.terminal import print_done

    account = budget_pb2.Account(path=[root])
    request = admin_pb2.ResumeClockRequest(account=account, reason=reason, request_id=request_id)
    request.true_time.GetCurrentTime()
    seconds = administered(admin, "ResumeClock", request).ahead.ToTimedelta().total_seconds()
    done = f"the time of {root} goes on, {seconds:.0f} seconds ahead of its store's clock"
    print_done(done, {"root": root, "seconds_ahead": seconds}, as_json=as_json)
