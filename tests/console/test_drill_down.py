"""Totals beside a list, asked for by a form or in SQL, and shown as a table of their own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest

from tests.console.people import PageSeen, Person, Visitors
from tests.console.sales import FAR, SHOWN, TOTALS, running_sales
from tests.console.stage import Stage
from tests.support.rings import needs

SQL = "SELECT topic, country, COUNT(DISTINCT member_id) FROM sales GROUP BY GROUPING SETS ((topic, country), (topic))"


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Run services and a gateway on the table."""
    with running_sales(tmp_path_factory.mktemp("sales")) as made:
        yield made


async def filled(person: Person, totals: str) -> PageSeen:
    """Fill in the form of the table with two columns and totals by one."""
    form = (await person.get("/ask/sales")).form("/price")
    fields = form.filled(k=str(SHOWN), totals_by=totals)
    return await person.post("/price", [*fields, ("by", "topic"), ("by", "country")])


async def test_a_form_asks_for_totals_and_its_answer_shows_them_apart(ana: Person) -> None:
    """The page of the price names them; the file of elements has none, and the file of totals what is left."""
    assert "looked up by article" in (await ana.get("/ask/sales")).text
    price = await filled(ana, "topic")
    assert price.status == 200, price.text
    assert "with totals by topic" in price.text
    answer = await ana.send(price.form("/answer"))
    assert answer.status == 200, answer.text
    assert "total of topic contributions 95 % interval other 95 % interval" in answer.text
    path = answer.response.url.path
    elements = list(csv.reader(io.StringIO((await ana.get(f"{path}/answer.csv")).html)))
    assert len(elements) == 1 + SHOWN
    totals = list(csv.DictReader(io.StringIO((await ana.get(f"{path}/totals.csv")).html)))
    assert [row["topic"] for row in totals] == [*TOTALS]
    for row in totals:
        assert abs(int(row["other_count"]) - TOTALS[row["topic"]][1]) < FAR
        numbers = (
            f"{row['count_lower']} to {row['count_upper']} {row['other_count']} {row['other_count_lower']} to"
        )
        assert f"{row['topic']} {row['count']} {numbers}" in answer.text


async def test_totals_asked_for_in_sql_are_shown_too_and_again_after_a_new_log_in(visitors: Visitors) -> None:
    """The field for SQL takes GROUPING SETS, and the gateway's list keeps totals."""
    first = await visitors.analyst("tia")
    answer = await first.send((await first.priced(sql=SQL)).form("/answer"))
    assert "total of topic contributions" in answer.text
    file = f"{answer.response.url.path}/totals.csv"
    again = await (await visitors.analyst("tia")).get(file)
    assert (again.status, again.html) == (200, (await first.get(file)).html)


async def test_wrong_totals_are_named_and_the_form_keeps_them(ana: Person) -> None:
    """A column that is not counted by has no totals; an answer without totals has no file of them."""
    page = await filled(ana, "article")
    assert page.status == 422
    assert "totals_by: expected one of exactly two columns" in page.text
    assert ("totals_by", "article") in page.form("/price").fields
    plain = await ana.send((await filled(ana, "")).form("/answer"))
    assert "total of topic" not in plain.text
    assert (await ana.get(f"{plain.response.url.path}/totals.csv")).status == 404


async def test_what_is_said_of_counts_is_not_said_of_sums_and_quantiles(ana: Person) -> None:
    """The price of a sum is of its own noise, and the bar of a quantile of all members is of no total."""
    price = await ana.priced(sql="SELECT SUM(price), COUNT(DISTINCT member_id) FROM sales")
    assert price.status == 200, price.text
    assert "The noise in a count is at most" not in price.text
    accuracy, _ = price.text.split("How it is answered")
    assert "its sums carry noise of standard deviation" in accuracy
    answer = await ana.send((await ana.priced(sql="SELECT MEDIAN(price) FROM sales")).form("/answer"))
    assert answer.status == 200, answer.text
    assert "price_p50 all" in answer.text
