"""The way of a question: what may be asked, its price, its answer."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from asyncio import gather

from gris_api.dp.v1 import question_pb2
from starlette.responses import RedirectResponse, Response

from gris_console.answers import Answer
from gris_console.forms import Form, decoded_question, encoded_question, question_of
from gris_console.page_requests import FORM_KEY, PageRequest
from gris_console.problems import Problem, ends_log_in, problem_of
from pinot_connector.budgets import questions_left
from pinot_connector.catalog import TableEntry
from pinot_connector.errors import GrisError, InvalidQuestion, RefusedByPolicy
from pinot_connector.results import Explanation
from pinot_connector.statements import Statement

DEFAULT_K = "10"
# What a page of a price adds to what the form of the question had.
_OF_PRICE = (FORM_KEY, "question", "request_id", "shown", "units", "data_version")
_REQUEST_ID = re.compile(r"[0-9a-f]{32}")


async def start(page_request: PageRequest) -> Response:
    """Show the tables that may be asked about, and a field for SQL."""
    return await _sql_page(page_request, Form())


async def table(page_request: PageRequest) -> Response:
    """Show the form for a question about one table."""
    entry = await _entry(page_request, page_request.request.path_params["table"])
    return _table_page(page_request, entry, Form((("k", DEFAULT_K),)))


async def edit_form(page_request: PageRequest) -> Response:
    """Show the form of a question again, as it was filled in."""
    return await _form_page(page_request, page_request.form.without(*_OF_PRICE))


async def price(page_request: PageRequest) -> Response:
    """Show what a question costs at most and how exact its answer will be. Nothing is asked, and no data are read."""
    form = page_request.form
    try:
        question = await _question(page_request)
        return await _price_page(page_request, question, form.get("request_id"))
    except GrisError as error:
        if ends_log_in(error):
            raise
        return await _form_page(page_request, form.without(*_OF_PRICE), problem_of(error))


async def answer(page_request: PageRequest) -> Response:
    """Ask a question and pay for it, if it is still what the page of its price has shown."""
    form = page_request.form
    question, request_id = decoded_question(form.get("question")), form.get("request_id")
    if not _REQUEST_ID.fullmatch(request_id):
        raise InvalidQuestion("request_id", "expected the field as the page had it")
    if page_request.console.answers.find(page_request.session.key, request_id) is None:
        try:
            explanation = await page_request.session.gateway.explain(question)
            if _digest(explanation) != form.get("shown"):
                return await _price_page(page_request, question, request_id, has_changed=True)
            result = await page_request.console.in_flight.ask(page_request.session, question, request_id)
            if result.explanation is not None:
                return await _price_page(page_request, question, request_id, is_all=True)
        except GrisError as error:
            if ends_log_in(error):
                raise
            return _unanswered(page_request, problem_of(error))
        page_request.console.answers.add(page_request.session.key, Answer(request_id, question, result))
    return RedirectResponse(f"/answers/{request_id}", 303)


def _unanswered(page_request: PageRequest, problem: Problem) -> Response:
    """Return why there is no answer. The same form may be sent again: by its request id it is paid once."""
    kept = page_request.form.without(FORM_KEY).pairs
    return page_request.page(
        "problem.html", status=problem.status, problem=problem, kept=kept, again=problem.is_retried
    )


async def _question(page_request: PageRequest) -> question_pb2.Question:
    """Return the question of a form: one that is filled in, or one that a page has kept."""
    form = page_request.form
    if text := form.get("question"):
        return decoded_question(text)
    name = form.get("table")
    return question_of(form, await _entry(page_request, name) if name else None)


async def _price_page(
    page_request: PageRequest,
    question: question_pb2.Question,
    request_id: str,
    *,
    has_changed: bool = False,
    is_all: bool = False,
) -> Response:
    """Return the page of a price; `is_all`: SQL asks for nothing else, by EXPLAIN."""
    gateway = page_request.session.gateway
    explanation, levels = await gather(gateway.explain(question), gateway.remaining())
    return page_request.page(
        "price.html",
        status=409 if has_changed else 200,
        question=question,
        encoded=encoded_question(question),
        request_id=request_id if _REQUEST_ID.fullmatch(request_id) else secrets.token_hex(16),
        shown=_digest(explanation),
        explanation=explanation,
        accuracy=[each for each in explanation.statements if _is_of_accuracy(each)],
        how=[each for each in explanation.statements if not _is_of_accuracy(each)],
        levels=levels,
        questions_left=questions_left(levels, explanation.worst_case_cost),
        has_changed=has_changed,
        is_all=is_all,
        kept=page_request.form.without(*_OF_PRICE).pairs,
    )


def _is_of_accuracy(statement: Statement) -> bool:
    return statement.subject == "accuracy" or statement.code in ("quantiles.rank", "sums.clamped")


def _digest(explanation: Explanation) -> str:
    """Return what names everything that a page says of a question, and whose limits pay for it.

    What is left of the budget does not count: others spend it too.
    """
    said = explanation.to_dict()
    said["paid_by"] = sorted({each.path for each in explanation.shares})
    for part in ("shares", "narrowest"):
        del said[part]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


async def _form_page(page_request: PageRequest, form: Form, problem: Problem | None = None) -> Response:
    """Return the form that a question came from, as it was filled in, with what is wrong."""
    name = form.get("table")
    if problem is not None and not name and not form.get("sql"):
        return page_request.page("problem.html", status=problem.status, problem=problem)
    try:
        if name:
            return _table_page(page_request, await _entry(page_request, name), form, problem)
        return await _sql_page(page_request, form, problem)
    except GrisError as error:
        if ends_log_in(error):
            raise
        # Neither does the catalogue answer: what was entered is kept on the page.
        found = problem or problem_of(error)
        return page_request.page(
            "problem.html", status=found.status, problem=found, kept=form.pairs, again_at="/ask"
        )


async def _sql_page(page_request: PageRequest, form: Form, problem: Problem | None = None) -> Response:
    catalog = await page_request.session.gateway.catalog()
    status = 200 if problem is None else problem.status
    return page_request.page(
        "ask.html", status=status, tables=catalog.tables, sql=form.get("sql"), problem=problem
    )


def _table_page(
    page_request: PageRequest, entry: TableEntry, form: Form, problem: Problem | None = None
) -> Response:
    return page_request.page(
        "table.html",
        status=200 if problem is None else problem.status,
        table=entry,
        form=form,
        problem=problem,
    )


async def _entry(page_request: PageRequest, name: str) -> TableEntry:
    catalog = await page_request.session.gateway.catalog(name)
    for each in catalog.tables:
        if each.name == name:
            return each
    raise RefusedByPolicy("there is no such table")
