"""From flags to requests to the administrator's service."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

import typer
from google.protobuf import timestamp_pb2
from gris_api.budget.v1 import admin_pb2, budget_pb2

from pinot_connector.budgets import Level

_MODES = {"enforce": budget_pb2.MODE_ENFORCE, "track": budget_pb2.MODE_TRACK}
_PERIODS = {
    "day": admin_pb2.PERIOD_DAY,
    "week": admin_pb2.PERIOD_WEEK,
    "month": admin_pb2.PERIOD_MONTH,
    "never": admin_pb2.PERIOD_NEVER,
}
_SLIDING = re.compile(r"sliding:([1-9][0-9]{0,3})")


def path_of(text: str) -> list[str]:
    """Return the segments of an account that is written with slashes; the service checks them."""
    return text.split("/")


def limit_of(*, information: int, calls: int, mode: str, window: str, zone: str) -> admin_pb2.Limit:
    """Return the limit that the flags describe."""
    sliding = _SLIDING.fullmatch(window)
    if window not in _PERIODS and sliding is None:
        raise typer.BadParameter("--window expects day, week, month, never or sliding:DAYS")
    if mode not in _MODES:
        raise typer.BadParameter("--mode expects enforce or track")
    if min(information, calls) < 0 or max(information, calls) >= 2**63:
        raise typer.BadParameter("--information and --calls expect 0 to 2^63 - 1")
    return admin_pb2.Limit(
        information=information,
        calls=calls,
        mode=_MODES[mode],
        period=_PERIODS.get(window, admin_pb2.PERIOD_SLIDING),
        sliding_days=0 if sliding is None else int(sliding[1]),
        zone=zone,
    )


def timestamp_of(flag: str, text: str) -> timestamp_pb2.Timestamp | None:
    """Return the timestamp that a flag names, a day meaning its start in UTC; None where it is empty."""
    if not text:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{flag} expects a day such as 2026-01-31 or a time") from None
    stamp = timestamp_pb2.Timestamp()
    stamp.FromDatetime(found if found.tzinfo else found.replace(tzinfo=datetime.UTC))
    return stamp


def history_request(account: str, level: Level) -> admin_pb2.ListChargesRequest:
    """Return the request for the charges of an account in the window that is open on this level."""
    request = admin_pb2.ListChargesRequest(account=budget_pb2.Account(path=path_of(account)))
    if level.window_start is not None:
        request.start_time.FromDatetime(level.window_start)
    return request


def usage_request(
    account: str, depth: int, since: str, days: int, limits: tuple[Sequence[int], Sequence[int]]
) -> admin_pb2.GetUsageReportRequest:
    """Return the request for a usage report; `limits` are those of information and of calls."""
    information, calls = limits
    if not information and not calls:
        raise typer.BadParameter("--information or --calls says for which limits")
    if (
        any(not 0 <= each < 2**63 for each in (*information, *calls))
        or not 0 <= days < 2**31
        or not 0 <= depth < 2**31
    ):
        raise typer.BadParameter("limits, --days and --depth expect numbers that are not negative")
    return admin_pb2.GetUsageReportRequest(
        account=budget_pb2.Account(path=path_of(account)),
        depth=depth,
        start_time=timestamp_of("--since", since),
        days=days,
        information_limits=information,
        call_limits=calls,
    )
