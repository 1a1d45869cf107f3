"""The owner's pages: accounts and limits, usage, guarantees, parameters and policies."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from gris_api.budget.v1 import admin_pb2, budget_pb2
from gris_api.dp.v1 import dp_pb2
from starlette.responses import Response

from gris_console.charts import usage_charts
from gris_console.forms import Form, day, whole
from gris_console.page_requests import PageRequest
from gris_console.problems import Problem, ends_log_in, problem_of
from gris_console.services import Charges
from pinot_connector.budgets import Level
from pinot_connector.errors import GrisError, InvalidQuestion
from pinot_connector.views import exact

MOST_LIMITS = 6
LATEST_CHARGES = 50
_MODES = {"enforce": budget_pb2.MODE_ENFORCE, "track": budget_pb2.MODE_TRACK}
_PERIODS = {
    "day": admin_pb2.PERIOD_DAY,
    "week": admin_pb2.PERIOD_WEEK,
    "month": admin_pb2.PERIOD_MONTH,
    "never": admin_pb2.PERIOD_NEVER,
}
_KINDS = {
    admin_pb2.CHARGE_KIND_SETTLED: "question",
    admin_pb2.CHARGE_KIND_DIRECT: "charge",
    admin_pb2.CHARGE_KIND_FORFEITED: "lapsed reservation",
    admin_pb2.CHARGE_KIND_LOST: "write-off",
    admin_pb2.CHARGE_KIND_CURRENCY: "new currency",
    admin_pb2.CHARGE_KIND_CLOCK: "clock resumed",
    admin_pb2.CHARGE_KIND_REFUNDED: "refund",
    admin_pb2.CHARGE_KIND_LIMIT: "limit changed",
    admin_pb2.CHARGE_KIND_CLOSE: "closed",
    admin_pb2.CHARGE_KIND_REOPEN: "reopened",
    admin_pb2.CHARGE_KIND_MOVE: "moved",
    admin_pb2.CHARGE_KIND_FORGET: "forgotten",
    admin_pb2.CHARGE_KIND_REQUEST: "limit requested",
    admin_pb2.CHARGE_KIND_APPROVE: "request approved",
    admin_pb2.CHARGE_KIND_REFUSE: "request refused",
}
_CHARGES = (
    admin_pb2.CHARGE_KIND_SETTLED,
    admin_pb2.CHARGE_KIND_DIRECT,
    admin_pb2.CHARGE_KIND_FORFEITED,
    admin_pb2.CHARGE_KIND_LOST,
)


@dataclass(frozen=True)
class Spender:
    """An account that was charged, how often, and how much of both units."""

    path: tuple[str, ...]
    charges: int
    information: int
    calls: int


@dataclass(frozen=True)
class Entry:
    """One entry of the journal, for the page."""

    time: str
    path: tuple[str, ...]
    kind: str
    information: int
    calls: int


async def accounts(page_request: PageRequest) -> Response:
    """Show the limits of an account or level, what is left, who spent it, and a form for another limit."""
    return await _accounts_page(page_request, page_request.form)


async def set_limit(page_request: PageRequest) -> Response:
    """Set or remove a limit; sent twice, the same form changes it once."""
    form = page_request.form
    try:
        change = _limit_change(form)
        await page_request.owner.set_limit(change, form.get("request_id"), form.get("reason"))
    except GrisError as error:
        if ends_log_in(error):
            raise
        return await _accounts_page(page_request, form, problem=problem_of(error))
    said = (
        "The limit is set; it holds at once."
        if change.HasField("limit")
        else "The limit is removed; the configuration applies again."
    )
    return await _accounts_page(page_request, Form((("account", form.get("account")),)), said=said)


async def requests(page_request: PageRequest, problem: Problem | None = None, said: str = "") -> Response:
    """Show the requests for other limits that wait."""
    found: Sequence[admin_pb2.LimitRequest] = ()
    try:
        found = await page_request.owner.requests()
    except GrisError as error:
        problem = problem or _problem(error)
    status = 200 if problem is None else problem.status
    return page_request.page("requests.html", status=status, requests=found, problem=problem, said=said)


async def decide(page_request: PageRequest) -> Response:
    """Approve or refuse a request."""
    form, owner = page_request.form, page_request.owner
    account, id_ = budget_pb2.Account(path=_path(form.get("account"))), form.get("id")
    try:
        if form.has("decision", "refuse"):
            await owner.refuse(account, id_, form.get("reason"))
            return await requests(page_request, said="The request is refused.")
        is_set = await owner.approve(account, id_)
    except GrisError as error:
        return await requests(page_request, _problem(error))
    said = (
        "The limit is set; it holds at once." if is_set else "Approved; another person has to approve it too."
    )
    return await requests(page_request, said=said)


async def usage(page_request: PageRequest) -> Response:
    """Show how many accounts would have used up limits by each day (Rogers et al. 2020, figure 5)."""
    form, report, problem = page_request.form, None, None
    if form.get("account"):
        try:
            report = await page_request.owner.usage(_usage_request(form))
        except GrisError as error:
            problem = _problem(error)
    return page_request.page(
        "usage.html",
        status=200 if problem is None else problem.status,
        form=form,
        since=form.get("since") or _first_of_month(),
        report=report,
        charts=[] if report is None else usage_charts(report),
        problem=problem,
    )


async def guarantee(page_request: PageRequest) -> Response:
    """Show what the current limits of an account promise every member."""
    form, found, problem = page_request.form, None, None
    levels: Sequence[Level] = ()
    if form.get("account"):
        try:
            account = _path(form.get("account"))
            found = await page_request.owner.guarantee(account)
            levels, _ = await page_request.owner.levels(account)
        except GrisError as error:
            problem = _problem(error)
    status = 200 if problem is None else problem.status
    return page_request.page(
        "guarantee.html", status=status, form=form, guarantee=found, levels=levels, problem=problem
    )


async def plan(page_request: PageRequest) -> Response:
    """Find parameters of a policy and a budget whose guarantee is within a wanted one."""
    form, found, problem = page_request.form, None, None
    if form.get("epsilon"):
        try:
            found = await page_request.owner.solve(_solve_request(form))
        except GrisError as error:
            problem = _problem(error)
    status = 200 if problem is None else problem.status
    per_unit = None if found is None else exact(found.epsilon_per)
    per_call = None if found is None or not found.delta_per_call else exact(found.delta_per_call)
    return page_request.page(
        "plan.html",
        status=status,
        form=form,
        found=found,
        per_unit=per_unit,
        per_call=per_call,
        problem=problem,
    )


async def policy(page_request: PageRequest) -> Response:
    """Check the text of a policy. Nothing is stored, and no data are read."""
    form, checked, problem = page_request.form, None, None
    text = next((value for name, value in form.pairs if name == "policy"), "")
    if text.strip():
        try:
            checked = await page_request.owner.check_policy(text)
        except GrisError as error:
            problem = _problem(error)
    return page_request.page(
        "policy.html",
        status=200 if problem is None else problem.status,
        text=text,
        lines=text.splitlines(),
        checked=checked,
        problem=problem,
    )


def _problem(error: GrisError) -> Problem:
    if ends_log_in(error):
        raise error
    return problem_of(error)


async def _accounts_page(
    page_request: PageRequest, form: Form, *, problem: Problem | None = None, said: str = ""
) -> Response:
    levels: Sequence[Level] = ()
    closed: tuple[str, ...] = ()
    charges: Charges | None = None
    if form.get("account"):
        try:
            account = _path(form.get("account"))
            levels, closed = await page_request.owner.levels(account)
            charges = await page_request.owner.charges(_charges_request(account, levels))
        except GrisError as error:
            problem = problem or _problem(error)
    return page_request.page(
        "accounts.html",
        status=200 if problem is None else problem.status,
        form=form,
        levels=levels,
        closed=closed,
        spenders=[] if charges is None else spenders_of(charges.entries),
        entries=[] if charges is None else list(map(_entry, charges.entries[: -LATEST_CHARGES - 1 : -1])),
        is_whole=charges is None or charges.is_whole,
        request_id=secrets.token_hex(16),
        problem=problem,
        said=said,
    )


def spenders_of(entries: Sequence[admin_pb2.ChargeEntry]) -> list[Spender]:
    """Return what each account was charged, the largest first."""
    found: dict[tuple[str, ...], Spender] = {}
    for each in entries:
        if each.kind in _CHARGES:
            path = tuple(each.account.path)
            known = found.get(path, Spender(path, 0, 0, 0))
            cost = each.cost
            found[path] = Spender(
                path, known.charges + 1, known.information + cost.information, known.calls + cost.calls
            )
    return sorted(found.values(), key=lambda each: (-each.information, -each.calls, each.path))


def _entry(entry: admin_pb2.ChargeEntry) -> Entry:
    time = entry.time.ToDatetime(tzinfo=datetime.UTC)
    kind = _KINDS.get(entry.kind, "other")
    return Entry(
        f"{time:%Y-%m-%d %H:%M}", tuple(entry.account.path), kind, entry.cost.information, entry.cost.calls
    )


def _charges_request(account: Sequence[str], levels: Sequence[Level]) -> admin_pb2.ListChargesRequest:
    request = admin_pb2.ListChargesRequest(account=budget_pb2.Account(path=account))
    if levels and (begun := levels[-1].window_start) is not None:
        request.start_time.FromDatetime(begun)
    return request


def _limit_change(form: Form) -> admin_pb2.LimitChange:
    change = admin_pb2.LimitChange(path=_path(form.get("account")))
    if form.has("remove", "yes"):
        return change
    period, mode = form.get("period"), form.get("mode")
    if mode not in _MODES:
        raise InvalidQuestion("mode", "expected enforce or track")
    days = whole("sliding_days", form.get("sliding_days") or "0", 400) if period == "sliding" else 0
    if period not in _PERIODS and not 2 <= days <= 400:
        raise InvalidQuestion("period", "expected day, week, month or never, or sliding with 2 to 400 days")
    change.limit.CopyFrom(
        admin_pb2.Limit(
            information=whole("information", form.get("information")),
            calls=whole("calls", form.get("calls")),
            mode=_MODES[mode],
            period=_PERIODS.get(period, admin_pb2.PERIOD_SLIDING),
            sliding_days=days,
            zone=form.get("zone"),
        )
    )
    if form.get("until"):
        change.limit.until.FromDatetime(_begin(day("until", form.get("until"))))
    return change


def _usage_request(form: Form) -> admin_pb2.GetUsageReportRequest:
    request = admin_pb2.GetUsageReportRequest(
        account=budget_pb2.Account(path=_path(form.get("account"))),
        depth=whole("depth", form.get("depth"), 4),
        days=whole("days", form.get("days"), 400),
        information_limits=_limits("information", form),
        call_limits=_limits("calls", form),
    )
    if not request.information_limits and not request.call_limits:
        raise InvalidQuestion("limits", "expected at least one limit, in information units or in calls")
    request.start_time.FromDatetime(_begin(day("since", form.get("since"))))
    return request


def _limits(name: str, form: Form) -> list[int]:
    texts = form.get(name).replace(",", " ").split()
    if len(texts) > MOST_LIMITS:
        raise InvalidQuestion(name, f"expected at most {MOST_LIMITS} limits")
    return [whole(name, text) for text in texts]


def _solve_request(form: Form) -> dp_pb2.SolveParametersRequest:
    return dp_pb2.SolveParametersRequest(
        epsilon=form.get("epsilon"),
        delta=form.get("delta"),
        epsilon_per=form.get("epsilon_per"),
        information=whole("information", form.get("information") or "0"),
        calls=whole("calls", form.get("calls") or "0"),
        delta_per_call=form.get("delta_per_call"),
        d_bar=whole("d_bar", form.get("d_bar") or "0"),
    )


def _path(text: str) -> list[str]:
    return text.split("/")


def _begin(day_: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day_, datetime.time(), datetime.UTC)


def _first_of_month() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-01")
