"""What was paid for, free to see again, and what is left of the budget."""

from __future__ import annotations

import datetime
import secrets
from math import ceil

from gris_api.app.v1 import app_pb2
from starlette.responses import Response

from gris_console.answers import Answer, listed, past_answer
from gris_console.exports import csv_text, totals_csv_text
from gris_console.forms import day, whole
from gris_console.page_requests import PageRequest
from gris_console.problems import Problem, ends_log_in, problem_of
from pinot_connector.errors import GrisError
from pinot_connector.notebooks.cells import cells, facts, heads, total_cells, total_heads
from pinot_connector.notebooks.pictures import picture
from pinot_connector.results import PrivateResult

PAGE_ROWS = 100
_NOTHING = Problem(
    404,
    "There is no such answer",
    "The gateway keeps nothing under this name for your account.",
    "The history lists what is kept.",
)


async def answer(page_request: PageRequest) -> Response:
    """Show an answer: a picture with intervals, the same as a table, its totals, and what there is to know of it."""
    found = await _answer(page_request)
    if found is None:
        return page_request.page("problem.html", status=_NOTHING.status, problem=_NOTHING)
    result = found.result
    pages = max(1, ceil(len(result.rows) / PAGE_ROWS))
    page = min(page_request.page_number, pages)
    rows = result.rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return page_request.page(
        "answer.html",
        answer=found,
        result=result,
        heads=heads(result),
        rows=[cells(row, result.parameters.decimals) for row in rows],
        first_row=(page - 1) * PAGE_ROWS,
        names=len(result.columns),
        page=page,
        pages=pages,
        picture=picture(result, _place(page_request.request.query_params.get("draw", ""))),
        total_heads=total_heads(result),
        totals=[total_cells(each, result.parameters.decimals) for each in (result.totals or ())[:PAGE_ROWS]],
        facts=list(facts(result, len(result.rows), totals=False)),
    )


def _place(text: str) -> int | None:
    """Return which number somebody wants to see drawn; None: they do not say, or it is no place."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None


async def answer_csv(page_request: PageRequest) -> Response:
    """Return an answer's elements as CSV."""
    found = await _answer(page_request)
    if found is None or found.is_omitted:
        return page_request.page("problem.html", status=_NOTHING.status, problem=_NOTHING)
    return _file(found.result, "answer.csv", csv_text(found.result))


async def totals_csv(page_request: PageRequest) -> Response:
    """Return an answer's totals as CSV, with what its elements leave of them."""
    found = await _answer(page_request)
    if found is None or found.result.totals is None:
        return page_request.page("problem.html", status=_NOTHING.status, problem=_NOTHING)
    return _file(found.result, "totals.csv", totals_csv_text(found.result))


def _file(result: PrivateResult, name: str, text: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


async def history(page_request: PageRequest) -> Response:
    """List the answers and what each was charged; looking at one again costs nothing."""
    page = page_request.page_number
    answers, has_more = await listed(page_request.session.gateway, page)
    return page_request.page("history.html", answers=answers, page=page, has_more=has_more)


async def request_budget(page_request: PageRequest) -> Response:
    """Ask administrators for a higher limit."""
    form = page_request.form
    try:
        asked = app_pb2.RequestBudgetRequest(
            path=form.get("level").split("/"),
            information=whole("information", form.get("information")),
            calls=whole("calls", form.get("calls")),
            reason=form.get("reason"),
            request_id=secrets.token_hex(16),
        )
        if form.get("until"):
            asked.until.FromDatetime(
                datetime.datetime.combine(day("until", form.get("until")), datetime.time())
            )
        id_ = await page_request.session.gateway.request_budget(asked)
    except GrisError as error:
        if ends_log_in(error):
            raise
        return await budget(page_request, problem_of(error))
    return await budget(page_request, said=f"Request {id_} waits for an administrator.")


async def budget(page_request: PageRequest, problem: Problem | None = None, said: str = "") -> Response:
    """Show what is left, when it is refreshed, and what it promises every member."""
    gateway = page_request.session.gateway
    levels = await gateway.remaining()
    blocks = None
    if any(each.remaining_of_blocks for each in levels):
        blocks = (await gateway.catalog()).blocks
    try:
        guarantee = await gateway.guarantee()
    except GrisError as error:
        if ends_log_in(error):
            raise
        guarantee = None
    return page_request.page(
        "budget.html",
        status=200 if problem is None else problem.status,
        levels=levels,
        blocks=blocks,
        guarantee=guarantee,
        problem=problem,
        said=said,
    )


async def _answer(page_request: PageRequest) -> Answer | None:
    name = page_request.request.path_params["name"]
    recent = page_request.console.answers.find(page_request.session.key, name)
    return recent or await past_answer(page_request.session.gateway, name)
