"""The owner's pages: accounts and limits, usage, guarantees, parameters and policies."""

from __future__ import annotations

import pytest

from tests.console.people import Person, Visitors
from tests.console.stage import POLICY

FAULTY = POLICY.replace("type: string, group_by: true, delta: 1}", "type: text, group_by: true, delta: 1}")


async def test_analysts_see_no_owners_page(ana: Person) -> None:
    """Neither in the navigation nor by its address, nor by sending its form."""
    assert "/owner/" not in (await ana.get("/ask")).html
    for path in (
        "/owner/accounts",
        "/owner/requests",
        "/owner/usage",
        "/owner/guarantee",
        "/owner/plan",
        "/owner/policy",
    ):
        page = await ana.get(path)
        assert page.status == 403
        assert "for owners" in page.text
    key = await ana.form_key()
    limit = [
        ("form_key", key),
        ("account", "acme"),
        ("information", "1"),
        ("calls", "1"),
        ("period", "month"),
    ]
    assert (await ana.post("/owner/limit", [*limit, ("mode", "enforce"), ("request_id", "x")])).status == 403


async def test_a_console_without_services_for_owners_has_none(visitors: Visitors) -> None:
    """The claim alone opens nothing."""
    configuration = visitors.stage.configuration()
    plain = Visitors(visitors.stage, owner=None, identity=configuration["identity"] | {"owners": None})
    somebody = await plain.analyst(owner=True)
    assert (await somebody.get("/owner/accounts")).status == 403
    await plain.close()


async def test_an_owner_sees_who_spent_a_budget(visitors: Visitors, owner: Person) -> None:
    """The page has the limits, what is left, and each account's charges of the window."""
    lea = await visitors.analyst("lea")
    assert (await lea.send((await lea.priced()).form("/answer"))).status == 200
    page = await owner.send((await owner.get("/owner/accounts")).form("/owner/accounts"), account="acme")
    assert page.status == 200, page.text
    assert "acme/lea" in page.text
    assert "of 1,000,000 left" in page.text
    assert "question" in page.text


async def test_a_limit_is_set_once_however_often_its_form_is_sent(visitors: Visitors, owner: Person) -> None:
    """It holds at once for the account, and removing it brings the configuration back."""
    mia = await visitors.analyst("mia")
    assert (await mia.left()) == 3000
    shown = await owner.send((await owner.get("/owner/accounts")).form("/owner/accounts"), account="acme/mia")
    form = shown.form("/owner/limit")
    said = await owner.send(form, information="40", calls="4", period="month", mode="enforce", zone="UTC")
    assert said.status == 200, said.text
    assert "The limit is set" in said.text
    assert await mia.left() == 40
    again = await owner.send(form, information="40", calls="4", period="month", mode="enforce", zone="UTC")
    assert again.status == 200
    reused = await owner.send(form, information="50", calls="4", period="month", mode="enforce", zone="UTC")
    assert reused.status == 422
    assert "request_id" in reused.text
    assert "removed" in (await owner.send(said.form("/owner/limit", 1))).text
    assert await mia.left() == 3000


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"information": "-1", "calls": "1"}, "information"),
        ({"information": "1", "calls": "x"}, "calls"),
        ({"information": "1", "calls": "1", "period": "fortnight"}, "period"),
        ({"information": "1", "calls": "1", "period": "sliding", "sliding_days": "1"}, "period"),
        ({"information": "1", "calls": "1", "mode": "maybe"}, "mode"),
        ({"information": "1", "calls": "1", "zone": "Moon/Base"}, "zone"),
        ({"information": "1", "calls": "1", "until": "tomorrow"}, "until"),
        ({"information": "1", "calls": "1", "until": "2020-01-01"}, "should hold is over"),
        ({"information": "1", "calls": "1", "reason": "why? " * 60}, "reason"),
        ({"remove": "yes", "reason": "why? " * 60}, "reason"),
    ],
)
async def test_wrong_limits_are_named(owner: Person, fields: dict[str, str], said: str) -> None:
    """The page says which field is wrong, and keeps what was filled in."""
    form = (
        await owner.send((await owner.get("/owner/accounts")).form("/owner/accounts"), account="acme")
    ).form("/owner/limit")
    page = await owner.send(form, **{"period": "month", "mode": "enforce", "zone": "UTC", **fields})
    assert page.status == 422, page.text
    assert said in page.text


async def test_usage_shows_how_many_accounts_would_have_used_up_a_limit(
    visitors: Visitors, owner: Person
) -> None:
    """As curves, and as a table with the same numbers."""
    nils = await visitors.analyst("nils")
    assert (await nils.send((await nils.priced()).form("/answer"))).status == 200
    form = (await owner.get("/owner/usage")).form("/owner/usage")
    page = await owner.send(form, account="acme", information="1, 100000", calls="1")
    assert page.status == 200, page.text
    assert len([1 for tag, _ in page.tags if tag == "polyline"]) == 3
    assert "100,000" in page.text
    assert (await owner.send(form, account="acme", information="", calls="")).status == 422
    assert (await owner.send(form, account="acme", since="soon")).status == 422
    assert (await owner.send(form, account="acme", days="900")).status == 422


async def test_the_guarantee_of_the_current_limits_is_stated(owner: Person) -> None:
    """With epsilon, delta, and every way of adding up that holds."""
    form = (await owner.get("/owner/guarantee")).form("/owner/guarantee")
    page = await owner.send(form, account="acme/otto")
    assert page.status == 200, page.text
    assert "-differentially private for every member" in page.text
    assert "zcdp" in page.text
    assert "somebody who knows all else might tell almost surely" in page.text
    unknown = await owner.send(form, account="nobody/here")
    assert unknown.status == 404


async def test_the_planner_finds_parameters_within_a_guarantee(owner: Person) -> None:
    """What is left empty is computed, and an impossible wish is named."""
    form = (await owner.get("/owner/plan")).form("/owner/plan")
    page = await owner.send(form, epsilon="10", delta="1e-8", epsilon_per="0.15", calls="30")
    assert page.status == 200, page.text
    assert "Parameters within it" in page.text
    assert "0.15" in page.text
    wrong = await owner.send(form, epsilon="ten", delta="1e-8", epsilon_per="0.15", calls="30")
    assert wrong.status == 422
    assert "epsilon" in wrong.text


async def test_a_policy_is_checked_with_lines_and_keys(owner: Person) -> None:
    """A fault has its line, its key and its text; a sound policy has warnings and defaults; nothing is served."""
    form = (await owner.get("/owner/policy")).form("/owner/policy")
    faulty = await owner.send(form, policy=FAULTY)
    line = 1 + FAULTY.splitlines().index("      name: {type: text, group_by: true, delta: 1}")
    assert f"{line} tables.hostile.columns.name.type" in faulty.text
    assert dict(faulty.form("/owner/policy").fields)["policy"].strip() == FAULTY.strip()
    sound = await owner.send(form, policy=POLICY)
    assert "This policy is sound: 5 tables" in sound.text
    assert "needs a restart" not in sound.text
    assert "a promise that nothing checks" in sound.text
    other = await owner.send(form, policy=POLICY.replace("epsilon_per: 0.5", "epsilon_per: 0.25"))
    assert "needs a restart" in other.text


async def test_a_policy_with_markup_in_it_is_a_text(owner: Person) -> None:
    """Keys and lines are shown, and never become a part of the page."""
    form = (await owner.get("/owner/policy")).form("/owner/policy")
    page = await owner.send(form, policy="</textarea><script>alert(1)</script>: 1\n")
    assert page.status == 200
    assert "<script>" not in page.html


async def test_an_analyst_asks_for_more_and_an_owner_decides(visitors: Visitors, owner: Person) -> None:
    """By the page of the budget, or the one of a refusal; the owner sees why, and the limit holds at once."""
    zoe = await visitors.analyst("zoe")
    form = (await zoe.get("/budget")).form("/budget/request")
    asked = await zoe.send(form, information="4000", calls="40", reason="<b>audit</b>", level="acme/zoe")
    assert asked.status == 200, asked.text
    assert "waits for an administrator" in asked.text
    assert "as many requests" in (await zoe.send(form, information="5000", calls="1", reason="again")).text
    assert await zoe.left() == 3000
    page = await owner.get("/owner/requests")
    assert "<b>audit" not in page.html
    assert "sub:zoe" in page.text
    done = await owner.send(page.form("/owner/requests/decide"), decision="approve")
    assert "The limit is set" in done.text, done.text
    assert "No request waits" in done.text
    assert await zoe.left() == 4000
    late = await owner.send(page.form("/owner/requests/decide"), decision="approve")
    assert "no such request waits" in late.text


async def test_a_refusal_for_budget_has_the_form_too(visitors: Visitors, owner: Person) -> None:
    """Its levels are those that lack something; a wrong number is named, and the owner may refuse."""
    poor = await visitors.analyst("needy", org="poor")
    price = await poor.priced(table="feedback", by="score", k="3")
    form = (await poor.send(price.form("/answer"))).form("/budget/request")
    assert "poor/needy" == dict(form.fields)["level"]
    wrong = await poor.send(form, information="many", calls="1", reason="x")
    assert (422, True) == (wrong.status, "expected a whole number" in wrong.text)
    assert (await poor.send(form, information="30", calls="3", reason="please")).status == 200
    page = await owner.get("/owner/requests")
    refused = await owner.send(page.form("/owner/requests/decide"), decision="refuse", reason="no")
    assert "The request is refused" in refused.text
    missing = await owner.send(page.form("/owner/requests/decide"), decision="refuse", reason="")
    assert "reason" in missing.text
