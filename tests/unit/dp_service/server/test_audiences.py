"""Audiences at dp_service: what each is offered, and that everything else does not exist for it."""

from __future__ import annotations

import re
from typing import Any

import grpc
import pytest
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import parse_policy
from tests.support.dp_questions import translated
from tests.support.dp_server import servicer_of, serving

TABLES = """
epsilon_per: 1
delta: 1e-9
count_noise: gaussian
blocks: {name: country, values: [DE, FR]}
tables:
  ads:
    member: m
    block: country
    measures: {distinct_members: true}
    columns:
      campaign: {type: string, group_by: true, typical: 2, filter: [in, not_in]}
      country: {type: string, group_by: true, typical: 2, filter: [in, not_in], domain: [DE, FR, IT]}
      advertiser: {type: string, group_by: true, typical: 2, filter: [in, not_in], nulls: keep, null_value: nobody}
      tenant: {type: int64, filter: [in]}
      paid: {type: bool, filter: [in]}
    contributions: {bound: in_query, units: 5}
  secrets:
    member: m
    measures: {distinct_members: true}
    columns: {plan: {type: string, group_by: true, filter: [in]}}
"""
POLICY = (
    TABLES
    + """
audiences:
  everyone: {}
  germany: {tables: {ads: {columns: [campaign], where: {country: DE}}}}
  advertiser: {tables: {ads: {where: {advertiser: $who, tenant: [$tenant, 7]}}}}
"""
)
TOP = "SELECT campaign, COUNT(DISTINCT m) AS n FROM ads{} GROUP BY campaign ORDER BY n DESC LIMIT 5"


def asked(name: str | None, sql: str = TOP.format(""), **values: str) -> question_pb2.Question:
    """Return a question in SQL as an audience asks it; None: as none."""
    if name is None:
        return question_pb2.Question(sql=sql)
    given = [question_pb2.AudienceValue(name=each, value=value) for each, value in values.items()]
    return question_pb2.Question(sql=sql, audience=question_pb2.Audience(name=name, values=given))


async def refusal(dp: Any, question: question_pb2.Question) -> tuple[grpc.StatusCode, str]:
    """Return how a question is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as found:
        await translated(dp, question)
    return found.value.code(), found.value.details() or ""


async def test_what_is_forced_is_a_part_of_the_question() -> None:
    """The same question as with the condition in it, for the same blocks, in the engine's query; it is said."""
    async with serving(servicer_of(POLICY)) as dp:
        forced = await translated(dp, asked("germany"))
        stated = await translated(dp, asked("everyone", TOP.format(" WHERE country = 'DE'")))
        every = await translated(dp, asked("everyone"))
        assert (forced.query_id, forced.worst_case_cost) == (stated.query_id, stated.worst_case_cost)
        assert [each.sql for each in forced.engine_queries] == [each.sql for each in stated.engine_queries]
        assert len(forced.worst_case_cost.blocks) == 1
        assert forced.query_id != every.query_id
        assert forced.audience_rows != stated.audience_rows == every.audience_rows == ""
        price = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=asked("germany")))
        assert "rows.audience" in [each.code for each in price.estimate.statements]


async def test_values_are_literals_of_their_column() -> None:
    """Whatever a name's value holds it is one text; a number is one that a column of numbers can have."""
    async with serving(servicer_of(POLICY)) as dp:
        ids = set()
        for who, tenant in (("acme", "1"), ("acmecorp", "1"), ("o'hara' OR '1'='1", "1"), ("acme", "2")):
            plan = await translated(dp, asked("advertiser", who=who, tenant=tenant))
            ids.add((plan.query_id, plan.audience_rows))
            written = "'" + who.replace("'", "''") + "'"
            assert all(written in each.sql for each in plan.engine_queries if each.dialect == "duckdb")
        assert len(ids) == 4
        # Those that are no number leave the values that the policy states.
        (one,) = {
            (await translated(dp, asked("advertiser", who="acme", tenant=each))).query_id
            for each in ("x", "1e3", "01", "-0", "9" * 30, "7")
        }
        assert one not in {each for each, _ in ids}


async def test_nobody_is_the_audience_of_rows_without_a_value() -> None:
    """A value that stands for NULL in the column would be that of rows which belong to none."""
    async with serving(servicer_of(POLICY)) as dp:
        _, message = await refusal(dp, asked("advertiser", who="nobody", tenant="1"))
    assert "lists no table" in message


@pytest.mark.parametrize(
    "question",
    [
        asked(None),
        asked("strangers"),
        asked(""),
        asked("germany", who="acme"),
        asked("advertiser", who="acme"),
        asked("advertiser", who="acme", tenant="1", more="1"),
        question_pb2.Question(
            sql=TOP.format(""),
            audience=question_pb2.Audience(
                name="advertiser",
                values=[
                    question_pb2.AudienceValue(name=each, value="1") for each in ("tenant", "who", "who")
                ],
            ),
        ),
    ],
    ids=str,
)
async def test_no_audience_is_refused_in_the_same_words(question: question_pb2.Question) -> None:
    """None, an unknown one, one without its values, and one with others."""
    async with serving(servicer_of(POLICY)) as dp:
        found = await refusal(dp, question)
        catalog = dp_pb2.GetCatalogRequest(audience=question.audience)
        if not question.HasField("audience"):
            catalog.ClearField("audience")
        with pytest.raises(grpc.aio.AioRpcError) as listed:
            await dp.GetCatalog(catalog)
    expected = "the policy answers audiences alone, and the one that asks is of none that it knows"
    assert found == (grpc.StatusCode.PERMISSION_DENIED, expected)
    assert listed.value.details() == expected


async def test_a_policy_without_audiences_refuses_one() -> None:
    """A policy that has lost them must not answer everything."""
    async with serving(servicer_of(TABLES)) as dp:
        await translated(dp, asked(None))
        assert (await refusal(dp, asked("germany")))[0] is grpc.StatusCode.PERMISSION_DENIED


async def test_more_than_any_audience_has_is_refused() -> None:
    """What names an audience is kept, so it is short."""
    async with serving(servicer_of(POLICY)) as dp:
        for question in (asked("x" * 513), asked("germany", **{f"v{each}": "" for each in range(17)})):
            code, message = await refusal(dp, question)
            assert (code, message.split(":")[0]) == (grpc.StatusCode.INVALID_ARGUMENT, "audience")


async def test_what_is_not_offered_does_not_exist() -> None:
    """Tables, columns and listed values are refused as names are that nobody has, and are never suggested."""
    async with serving(servicer_of(POLICY)) as dp:
        for real, made_up in (
            (TOP.format("").replace("ads", "secrets"), TOP.format("").replace("ads", "secretz")),
            (TOP.format(" WHERE advertiser = 'a'"), TOP.format(" WHERE advertizer = 'a'")),
            (TOP.format(" WHERE tenants = 3"), TOP.format(" WHERE xxxxxxx = 3")),
            (TOP.format(" WHERE country = 'FR'"), TOP.format(" WHERE country = 'XX'")),
        ):
            (code, one), (_, other) = (
                await refusal(dp, asked("germany", real)),
                await refusal(dp, asked("germany", made_up)),
            )
            assert code is not grpc.StatusCode.INTERNAL
            assert one == other
            assert not re.search(r"secret|advertiser|tenant|\b(FR|IT)\b", one)


@pytest.mark.parametrize(
    ("tables", "question", "told"),
    [
        ("ads: {columns: [campaign], where: {country: DE}}", TOP.format(""), {"method.blocks"}),
        ("ads: {where: {tenant: 7}}", TOP.format(""), {"method.all_blocks"}),
        ("secrets: {}", "SELECT COUNT(DISTINCT m) FROM secrets", set()),
    ],
    ids=["its own block", "all of them", "a table of no block"],
)
async def test_statements_say_nothing_of_blocks_that_are_not_offered(
    tables: str, question: str, told: set[str]
) -> None:
    """The same with three more blocks as without, by the answer and by the price; to some not that there are blocks."""
    said = []
    for values in ("[DE, FR]", "[DE, FR, IT, ES, AT]"):
        policy = f"{TABLES}audiences: {{x: {{tables: {{{tables}}}}}}}".replace("[DE, FR]", values)
        async with serving(servicer_of(policy)) as dp:
            price = await dp.EstimateCost(dp_pb2.EstimateCostRequest(question=asked("x", question)))
            said.append([each for each in price.estimate.statements if "blocks" in each.code])
    assert told == {each.code for each in said[0]}
    assert said[0] == said[1]


async def test_the_catalogue_is_that_of_the_audience() -> None:
    """Its tables and columns; of the forced ones its own values alone, also among the blocks."""
    async with serving(servicer_of(POLICY)) as dp:
        page = await dp.GetCatalog(dp_pb2.GetCatalogRequest(audience=asked("germany").audience))
        (table,) = page.tables
        assert [each.name for each in table.columns] == ["campaign", "country"]
        assert [each.domain.strings.values for each in table.columns] == [[], ["DE"]]
        assert page.blocks.values.strings.values == ["DE"]
        whole = await dp.GetCatalog(dp_pb2.GetCatalogRequest(audience=asked("everyone").audience))
        assert [each.name for each in whole.tables] == ["ads", "secrets"]
        assert whole.blocks.values.strings.values == ["DE", "FR"]
        assert (page.blocks.rest, page.blocks.all_may_pay) == ("", False)
        assert (bool(whole.blocks.rest), whole.blocks.all_may_pay) == (True, True)


@pytest.mark.parametrize(
    ("where", "table", "values", "has_rest", "all_may_pay"),
    [
        ("DE", "", ["DE"], False, False),
        ("[DE, FR]", "", ["DE", "FR"], False, False),
        ("IT", "", [], True, False),
        ("[DE, IT]", "", ["DE"], True, False),
        # Columns may take it for the value of a block.
        ("de", "", ["DE"], True, False),
        ("[DE, FR, IT]", "", ["DE", "FR"], True, True),
        # Its rows are of no block.
        ("DE", "secrets: {}", ["DE"], False, True),
    ],
)
async def test_blocks_of_an_audience_are_those_that_may_pay(
    where: str, table: str, values: list[str], has_rest: bool, all_may_pay: bool
) -> None:
    """Those of its forced values, the rest among them; and whether it may ask what all pay for."""
    policy = f"{TABLES}audiences: {{some: {{tables: {{ads: {{where: {{country: {where}}}}}, {table}}}}}}}\n"
    policy = policy.replace(", domain: [DE, FR, IT]", "")
    async with serving(servicer_of(policy)) as dp:
        page = await dp.GetCatalog(dp_pb2.GetCatalogRequest(audience=asked("some").audience))
        found = page.blocks
        assert list(found.values.strings.values) == values
        assert (bool(found.rest), found.all_may_pay) == (has_rest, all_may_pay)
        # A question about all that it is offered of the table is paid for by all of them.
        paying = (await translated(dp, asked("some"))).worst_case_cost.blocks
        ids = {*found.ids, *filter(None, [found.rest])}
        assert {*paying} == (set() if all_may_pay and not table else ids)


async def test_what_all_blocks_pay_for_is_asked_of_one_table() -> None:
    """Of two tables with different blocks, which only together are too many to pay alone, neither question is."""
    more = (
        TABLES.replace(", domain: [DE, FR, IT]", "")
        + """  visits:
    member: m
    block: country
    measures: {distinct_members: true}
    columns: {country: {type: string, group_by: true, filter: [in]}}
audiences: {some: {tables: {ads: {where: {country: [DE, FR]}}, visits: {where: {country: IT}}}}}
"""
    )
    async with serving(servicer_of(more)) as dp:
        page = await dp.GetCatalog(dp_pb2.GetCatalogRequest(audience=asked("some").audience))
        assert (len(page.blocks.ids), bool(page.blocks.rest), page.blocks.all_may_pay) == (2, True, False)
        visits = asked("some", "SELECT country, COUNT(DISTINCT m) AS n FROM visits GROUP BY country LIMIT 5")
        assert list((await translated(dp, visits)).worst_case_cost.blocks) == [page.blocks.rest]


async def test_audiences_that_ask_the_same_at_the_same_time_get_their_own() -> None:
    """What is kept of a question is kept for its audience."""
    async with serving(servicer_of(POLICY)) as dp:
        for _ in range(2):
            found = [
                (await translated(dp, each)).query_id
                for each in (
                    asked("everyone"),
                    asked("germany"),
                    asked("advertiser", who="a", tenant="1"),
                    asked("advertiser", who="b", tenant="1"),
                )
            ]
            assert len(set(found)) == 4


@pytest.mark.parametrize(
    ("audiences", "key", "expected"),
    [
        ("{}", "audiences", "at least 1"),
        ("{x: {tables: {}}}", "audiences.x.tables", "at least 1"),
        ("{x: {tables: {adz: {}}}}", "audiences.x.tables.adz", "one of ads, secrets"),
        ("{x: {tables: {ads: {columns: [nope, country]}}}}", "columns.0", "a column that the policy lists"),
        # A key that says nothing must not offer everything.
        ("", "audiences", "keys and their values"),
        ("{x: {tables: }}", "audiences.x.tables", "keys and their values"),
        ("{x: {tables: {secrets: {columns: }}}}", "secrets.columns", "list"),
        ("{x: {tables: {ads: {columns: [campaign]}}}}", "ads.columns", "expected country too"),
        ("{x: {tables: {ads: {where: {country: De}}}}}", "where.country", "of the column's domain"),
        ("{x: {tables: {ads: {where: {m: a}}}}}", "where.m", "not that of the members"),
        ("{x: {tables: {ads: {where: {country: 3}}}}}", "where.country", "put it into quotes"),
        ("{x: {tables: {ads: {where: {country: []}}}}}", "where.country", "1 to 1000 values"),
        ("{x: {tables: {ads: {where: {tenant: $A}}}}}", "where.tenant", "$ and a name of small letters"),
        ("{x: {tables: {ads: {where: {paid: $a}}}}}", "where.paid", "string, int64 alone"),
        ("{x: {tables: {secrets: {where: {plan: [a, {}]}}}}}", "where.plan.1", "expected a text"),
        ("{'a b': {}}", "audiences", "ASCII letters"),
    ],
)
def test_faults_of_a_policy_are_named(audiences: str, key: str, expected: str) -> None:
    """Each with its key, and what was expected there."""
    with pytest.raises(PolicyError) as found:
        parse_policy(f"{TABLES}audiences: {audiences}\n")
    (problem,) = found.value.problems
    assert key in str(problem)
    assert expected in str(problem)
