"""The way of an analyst's question, from the catalogue to the answer and what is left."""

from __future__ import annotations

import asyncio
import re

from tests.console.people import TOP, Person, Visitors
from tests.console.stage import WIDE_ELEMENTS, Stage


async def test_a_question_goes_from_the_catalogue_to_an_answer_that_is_listed(ana: Person) -> None:
    """The price is seen before anything is paid, and the history shows the answer again for nothing."""
    start = await ana.get("/ask")
    assert "feedback" in start.text
    assert "article_id" in start.text
    builder = await ana.get("/ask/feedback")
    before = await ana.left()
    price = await ana.send(builder.form("/price"), by="app", k="3")
    assert price.status == 200, price.text
    assert "information units" in price.text
    assert "By its noise alone a count is off by at most" in price.text
    assert "such questions until it is refreshed" in price.text
    assert before == await ana.left()
    answer = await ana.send(price.form("/answer"))
    assert answer.status == 200, answer.text
    assert "RUMORS_LINE_BOT" in answer.text
    paid = before - await ana.left()
    assert paid > 0
    assert answer.response.url.path.startswith("/answers/")
    assert len([1 for tag, named in answer.tags if tag == "rect" and named.get("class") == "value"]) == 3
    repeated = await ana.send((await ana.send(builder.form("/price"), by="app", k="3")).form("/answer"))
    assert "RUMORS_LINE_BOT" in repeated.text
    history = await ana.get("/history")
    assert "Top 3 of app in feedback" in history.text
    charged = re.findall(r'data-label="Charged">([0-9]+) information', history.html)
    assert charged == ["0", str(paid)]
    again = await ana.get(str(answer.response.url.path))
    assert "RUMORS_LINE_BOT" in again.text
    assert before - paid == await ana.left()


async def test_an_answer_is_found_by_its_page_after_a_new_log_in(visitors: Visitors) -> None:
    """The page comes from the gateway's list, and not from this log-in's memory alone."""
    first = await visitors.analyst("bert")
    answer = await first.send((await first.priced()).form("/answer"))
    second = await visitors.analyst("bert")
    assert "RUMORS_LINE_BOT" in (await second.get(answer.response.url.path)).text
    other = await visitors.analyst("cleo")
    assert (await other.get(answer.response.url.path)).status == 404


async def test_sql_is_priced_and_answered(ana: Person) -> None:
    """SQL has the same way, and a mistake in it names the place and keeps the text."""
    sql = "SELECT score, COUNT(DISTINCT member_id) AS people FROM feedback GROUP BY score ORDER BY people DESC LIMIT 3"
    answer = await ana.send((await ana.priced(sql=sql)).form("/answer"))
    assert answer.status == 200
    assert "people" in answer.text
    wrong = await ana.priced(sql="SELECT member_id FROM feedback WHERE")
    assert wrong.status == 422
    assert "Nothing was charged" in wrong.text
    assert dict(wrong.form("/price").fields)["sql"] == "SELECT member_id FROM feedback WHERE"


async def test_a_form_that_is_sent_twice_at_once_is_paid_once(ana: Person) -> None:
    """Also where answers do not repeat, so that the ledger alone would let both be charged."""
    price = await ana.priced(table="fresh", by="name", k="2")
    form, before = price.form("/answer"), await ana.left()
    pages = await asyncio.gather(*(ana.send(form) for _ in range(4)))
    assert {page.response.url.path for page in pages} == {pages[0].response.url.path}
    assert {page.status for page in pages} == {200}
    once = before - await ana.left()
    later = await ana.send(form)
    assert later.status == 200
    assert before - once == await ana.left()
    other = await ana.send((await ana.priced(table="fresh", by="name", k="2")).form("/answer"))
    assert other.status == 200
    assert before - 2 * once == await ana.left()


async def test_a_form_of_two_log_ins_of_one_person_is_paid_once(visitors: Visitors) -> None:
    """The gateway knows the form's request id, whichever console or log-in it comes from."""
    first, second = await visitors.analyst("dora"), await visitors.analyst("dora")
    form = (await first.priced(table="fresh", by="name", k="2")).form("/answer")
    before = await first.left()
    assert (await first.send(form)).status == 200
    once = before - await first.left()
    sent = [(name, value) for name, value in form.fields if name != "form_key"]
    assert (await second.post("/answer", [*sent, ("form_key", await second.form_key())])).status == 200
    assert before - once == await second.left()


async def test_an_exhausted_budget_says_what_is_missing_and_what_would_fit(visitors: Visitors) -> None:
    """Nothing is charged, and the page names the level, the unit and the largest k."""
    poor = await visitors.analyst(org="poor")
    price = await poor.priced(table="feedback", by="score", k="3")
    assert "0 such questions" in price.text
    refused = await poor.send(price.form("/answer"))
    assert refused.status == 429
    assert "The budget does not hold this" in refused.text
    assert "needed" in refused.text
    assert "With at most 1 elements it would fit now." in refused.text
    assert f"Request {dict(price.form('/answer').fields)['request_id']}" in refused.text


async def test_a_refused_question_keeps_what_was_filled_in(ana: Person) -> None:
    """The form is there again, with the reason and the values."""
    fields = {"table": "feedback", "by": "score", "k": "2", "filter.score": "in", "values.score": "one"}
    page = await ana.priced(**fields)
    assert page.status == 422
    assert "values of score: expected a whole number" in page.text
    kept = page.form("/price").fields
    assert {("by", "score"), ("k", "2"), ("filter.score", "in"), ("values.score", "one")} <= set(kept)


async def test_filters_and_days_reach_the_question(ana: Person) -> None:
    """Values have the types of their columns, and the price page says every condition, however long."""
    filters = {
        "condition": "app LIKE 'W%' OR score = 1",
        "filter.score": "range",
        "lower.score": "0",
        "upper.score": "1",
        "from": "2019-01-01",
        "to": "2020-01-01",
    }
    page = await ana.priced(**TOP, **filters)
    assert page.status == 200, page.text
    assert "score >= 0 and <= 1, (app LIKE 'W%' OR score = 1)" in page.text
    assert "before 2020-01-0" in page.text
    names = [f"a-name-that-is-long-{number}" for number in range(20)]
    listed = await ana.priced(**TOP, **{"filter.article_id": "in", "values.article_id": "\n".join(names)})
    assert all(f"'{name}'" in listed.text for name in names), listed.text
    assert (await ana.send(page.form("/answer"))).status == 200
    changed = await ana.send(page.form("/ask"))
    kept = changed.form("/price").fields
    assert {
        ("condition", filters["condition"]),
        ("lower.score", "0"),
        ("to", "2020-01-01"),
        ("by", "app"),
    } <= set(kept)


async def test_a_funnel_retention_and_groups_are_asked_by_their_fields(ana: Person) -> None:
    """Each becomes a function of the question, is shown whole, and is there again when the question is changed."""
    builder = (await ana.get("/ask/feedback")).form("/price")
    both = {"from": "2018-01-01", "to": "2020-01-01"}
    funnel = await ana.send(builder, steps="score >= 0\n\napp = 'WEBSITE'")
    assert "FUNNEL_COUNT(STEPS(score >= 0, app = 'WEBSITE')) in feedback" in funnel.text
    assert "Top 10" not in funnel.text
    assert ("steps", "score >= 0\n\napp = 'WEBSITE'") in (await ana.send(funnel.form("/ask"))).form(
        "/price"
    ).fields
    answer = await ana.send(funnel.form("/answer"))
    assert re.search(r"step 2 [\d,]+ [\d.]+ % of step 1", answer.text), answer.text
    retention = await ana.send(builder, since="retention year", **both)
    assert "RETENTION('year', day) in feedback" in retention.text
    answer = await ana.send(retention.form("/answer"))
    assert "2019-01-01, 0 later: " in answer.text
    assert "1 later" in answer.text
    groups = await ana.send(builder, cases="it's: app LIKE 'W%'", others="rest")
    assert "CASE WHEN app LIKE 'W%' THEN 'it''s' ELSE 'rest' END" in groups.text
    assert {"it's", "rest"} <= set((await ana.send(groups.form("/answer"))).text.split())
    wrong = await ana.send(builder, cases="no colon")
    assert wrong.status == 422
    assert "groups: expected a name, a colon and a condition" in wrong.text


async def test_examples_of_the_catalogue_stand_beside_the_fields(ana: Person) -> None:
    """As a text for the field, and as whole statements for SQL."""
    page = (await ana.get("/ask/feedback")).text
    assert "FUNNEL_COUNT(STEPS(app = 'DEVELOPMENT_BACKEND'" in page
    assert "CORRELATE_BY(member_id)) FROM feedback" in page
    assert "conversion is 100 * members where" in (await ana.get("/ask/articles")).text


async def test_a_series_and_a_total_are_answered(ana: Person) -> None:
    """A series is in the order of time, and a total is one row."""
    series = await ana.send(
        (
            await ana.priced(table="feedback", bucket="year", **{"from": "2018-01-01", "to": "2020-01-01"})
        ).form("/answer")
    )
    assert series.status == 200, series.text
    assert "2018-01-01" in series.text
    assert "polyline" in {tag for tag, _ in series.tags}
    total = await ana.send((await ana.priced(table="feedback", measure="distinct_members")).form("/answer"))
    assert total.status == 200
    assert "total" in total.text


async def test_a_large_answer_has_pages_and_the_file_has_all_of_it(ana: Person) -> None:
    """A page shows a hundred rows and fifty bars."""
    price = await ana.priced(table="wide", by="element")
    answer = await ana.send(price.form("/answer"))
    assert answer.status == 200, answer.text
    assert f"the first 50 of {WIDE_ELEMENTS:,} elements" in answer.text
    path = answer.response.url.path
    last = await ana.get(f"{path}?page=10")
    assert f"Page 10 of {WIDE_ELEMENTS // 100}" in last.text
    assert f"{WIDE_ELEMENTS}" in last.text
    file = await ana.get(f"{path}/answer.csv")
    assert len(file.html.splitlines()) == 1 + WIDE_ELEMENTS
    assert (await ana.get(f"{path}?page=zero")).status == 422


async def test_a_notice_is_on_every_page_as_a_text(stage: Stage) -> None:
    """Also before a log-in; markup in it is none."""
    visitors = Visitors(stage, notice="Made up <b>rows</b>")
    person = visitors.stranger()
    for page in (
        await person.get("/sign-in"),
        await person.log_in(stage.token()),
        await person.get("/budget"),
    ):
        assert "Made up <b>rows</b>" in page.text
        assert "<b>rows" not in page.html
    await visitors.close()
