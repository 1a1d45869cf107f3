"""What goes wrong, or is meant to do harm: hostile names, gateways that go away, policies that change, odd forms."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from gris_gateway.rpc_errors import in_progress
from gris_mcp.failures import failure_of
from pinot_connector.errors import GrisError, IntegrityError, RequestInProgress
from pinot_connector.notebooks.cells import visible
from pinot_connector.rpc_errors import Service, error_of_rpc
from tests.console.people import TOP, Person, Visitors, until
from tests.console.stage import HOSTILE, POLICY, Stage
from tests.support.some import some


async def test_hostile_names_are_texts_on_pages(ana: Person) -> None:
    """Markup is escaped, what cannot be seen is replaced, and each name keeps its direction to itself."""
    answer = await ana.send((await ana.priced(table="hostile", by="name")).form("/answer"))
    assert answer.status == 200
    assert "<script>" not in answer.html
    assert "<img src=x" not in answer.html
    for name in HOSTILE:
        assert visible(name) in answer.text
    assert not {"\u202e", "\u200b", "\u2066"} & set(answer.html)
    assert "{{ 7 * 7 }}" in answer.text
    assert {"bdi"} <= {tag for tag, _ in answer.tags}
    history = await ana.get("/history")
    assert "&lt;script&gt;" in history.html
    assert "<script>" not in history.html


async def test_hostile_names_are_texts_in_spreadsheets(ana: Person) -> None:
    """Nothing in a cell begins as a formula does, also if a semicolon ends cells, and numbers are numbers."""
    answer = await ana.send((await ana.priced(table="hostile", by="name")).form("/answer"))
    file = await ana.get(f"{answer.response.url.path}/answer.csv")
    assert file.response.headers["content-disposition"].startswith("attachment")
    rows = list(csv.reader(io.StringIO(file.html)))
    assert len(rows) == 1 + len(HOSTILE)
    for name, count, *_ in some(rows[1:]):
        for part in name.split(";"):
            assert part.strip()[:1] not in ("=", "+", "-", "@", "\t", "\r", "\uff0b")
        int(count)


async def test_a_gateway_that_goes_away_leaves_what_was_entered(stage: Stage) -> None:
    """The page says that nothing was charged; the same form can be sent again, and is paid once."""
    with stage.another_gateway("leaving") as leaving:
        visitors = Visitors(leaving)
        jan = await visitors.analyst("jan")
        price, entered = await jan.priced(), await jan.get("/ask/feedback")
        before = await jan.left()
    gone = await jan.send(price.form("/answer"))
    assert gone.status == 503
    assert "Nothing was charged" in gone.text
    assert ("request_id", dict(price.form("/answer").fields)["request_id"]) in gone.form("/answer").fields
    lost = await jan.send(entered.form("/price"), by="score", k="7")
    assert lost.status == 503
    assert ("k", "7") in lost.form("/ask").fields
    for path in ("/history", "/budget", "/ask"):
        assert (await jan.get(path)).status == 503
    # Another gateway of the same services answers the form that is left.
    here = Visitors(stage)
    again = await here.analyst("jan")
    fields = [pair for pair in gone.form("/answer").fields if pair[0] != "form_key"]
    answer = await again.post("/answer", [*fields, ("form_key", await again.form_key())])
    assert answer.status == 200
    assert before > await again.left()
    await visitors.close()
    await here.close()


async def test_a_policy_that_changes_under_a_page_is_not_paid_for_unseen(stage: Stage, ana: Person) -> None:
    """The page of the price comes again, with what holds now."""
    price = await ana.priced()
    before = await ana.left()
    path = stage.folder / "policy.yaml"
    try:
        path.write_text(POLICY.replace("delta: 4\n", "delta: 2\n"))

        async def changed() -> bool:
            return (await ana.priced()).text != price.text

        await until(changed)
        page = await ana.send(price.form("/answer"))
        assert page.status == 409
        assert "has changed since you saw the price" in page.text
        assert before == await ana.left()
        assert (await ana.send(page.form("/answer"))).status == 200
    finally:
        path.write_text(POLICY)

    async def restored() -> bool:
        return (
            dict((await ana.priced()).form("/answer").fields)["shown"]
            == dict(price.form("/answer").fields)["shown"]
        )

    await until(restored)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"table": "nowhere", "by": "app"}, 403, "lists no table with that name"),
        ({**TOP, "k": "many"}, 422, "k: expected a whole number"),
        ({**TOP, "k": "9" * 40}, 422, "k: expected a whole number"),
        ({**TOP, "from": "yesterday"}, 422, "the first day: expected a day"),
        ({**TOP, "bucket": "hour"}, 422, "bucket"),
        ({"question": "###"}, 422, "question"),
        ({"question": "", "sql": ""}, 422, "sql"),
    ],
)
async def test_wrong_fields_are_named(ana: Person, fields: dict[str, str], status: int, said: str) -> None:
    """Each gets a page that says what was expected, and none is a fault of the console."""
    page = await ana.priced(**fields)
    assert page.status == status, page.text
    assert said in page.text


async def test_forms_that_are_none_are_refused(ana: Person) -> None:
    """Other types, too much, and bytes that are no text."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    odd = [
        (b"{}", {"content-type": "application/json"}),
        (b"a=" + b"x" * 600_000, form),
        (b"&".join(b"a=1" for _ in range(3000)), form),
        (b"a=%ff", form),
        (b"a=\xff", form),
    ]
    for content, headers in odd:
        answered = await ana.client.post("/price", content=content, headers=headers)
        assert answered.status_code == 400
        assert "expected" in answered.text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RequestInProgress("gateway", "being answered"), "is still being answered; it may be charged"),
        (IntegrityError("the gateway is older than this client"), "it may have been charged"),
    ],
)
async def test_what_may_have_been_paid_is_not_called_free(
    ana: Person, monkeypatch: pytest.MonkeyPatch, error: GrisError, said: str
) -> None:
    """Neither by a page nor by an agent's tool; the same form can be sent again, for it is paid once."""

    async def failing(*_: object, **__: object) -> None:
        raise error

    form = (await ana.priced()).form("/answer")
    with monkeypatch.context() as patched:
        patched.setattr("pinot_connector.gateway_client.AsyncGatewayClient.ask", failing)
        page = await ana.send(form)
    assert said in page.text
    assert "Nothing was charged" not in page.text
    assert (await ana.send(page.form("/answer"))).status == 200
    shown = failure_of(error).what_to_do
    assert "charged" in shown
    assert "nothing was charged" not in shown


def test_a_gateway_that_still_answers_a_request_is_told_from_one_that_did_nothing() -> None:
    """By the reason of its status."""
    status: Any = in_progress()
    error = grpc.aio.AioRpcError(
        status.code, grpc.aio.Metadata(), grpc.aio.Metadata(*status.trailing_metadata), status.details
    )
    assert type(error_of_rpc(Service.GATEWAY, error)) is RequestInProgress


async def test_a_request_id_of_somebodys_own_making_is_refused(ana: Person) -> None:
    """It names the page of the answer, so it is what the console made."""
    form = (await ana.priced()).form("/answer")
    page = await ana.send(form, request_id="../../etc")
    assert page.status == 422
    assert "request_id" in page.text


async def test_a_fault_of_the_console_shows_nothing_of_it(
    visitors: Visitors, ana: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the type and the place, and neither has the text of the error."""

    async def failing(_: object, __: str) -> None:
        raise RuntimeError("secret-literal")

    monkeypatch.setattr("pinot_connector.gateway_client.AsyncGatewayClient.catalog", failing)
    page = await ana.get("/ask")
    assert page.status == 500
    assert "secret-literal" not in page.html + caplog.text
    assert [each for each in caplog.records if each.__dict__.get("event") == "internal_error"]


def test_a_console_logs_nothing_of_its_people(stage: Stage, tmp_path: Path) -> None:
    """Neither tokens, nor questions, nor elements are in its log, though requests failed."""
    token, log = stage.token("karl-marker"), stage.folder / "console.log"
    with stage.serving() as url, httpx.Client(base_url=url, follow_redirects=True, timeout=60) as client:
        client.post("/sign-in", data={"shown": token})
        key = client.get("/ask").text.partition('name="form_key" value="')[2].partition('"')[0]
        asked = client.post("/price", data={"form_key": key, "sql": "SELECT secret_marker FROM nowhere"})
        assert asked.status_code in {422, 403}
        # What is wrong is pointed at, in its line.
        assert "^^^^^^^" in asked.text.partition("<pre>")[2]
        assert client.get("/answers/answer-marker?page=x").status_code in (404, 422)
        assert client.get("/static/console.css").status_code == 200
        assert client.get("/static/../process.py").status_code == 404
    written = log.read_text()
    for part in (token, token.rpartition(".")[2], "karl-marker", "secret_marker", "answer-marker"):
        assert part not in written
