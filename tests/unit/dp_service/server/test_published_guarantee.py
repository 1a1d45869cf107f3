"""What a served policy has published counts towards every budget's guarantee, whether or not it is asked about."""

from __future__ import annotations

import hashlib
import hmac
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.accounting.composition import PublishedDomain, guarantee
from dp_service.queries.publications import Publication, policy_statement, publications_in
from dp_service.queries.published import DomainFile
from dp_service.releases.keys import KeySet, KeyUse
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from tests.support.dp_questions import KEY, Clock, Entropy, error_of, header, question, translated
from tests.support.dp_server import servicer_of, servicer_of_file, serving
from tests.support.publishing import HEADER, domain_file, policy_of, publication_text

DOMAINS = (domain_file("one", "5", "1e-9"), domain_file("other", "1/2", "1e-9", table="u"))
TABLES = "tables: {t: {member: m, measures: {distinct_members: true}, columns: {c: {type: string}}}}"
WITHOUT = 33.78


async def described(policy: Path, **fields: Any) -> dp_pb2.DescribeGuaranteeResponse:
    """Return what the default budget is worth under a policy, with some fields changed."""
    request = dp_pb2.DescribeGuaranteeRequest(**({"information": 3000, "calls": 30} | fields))
    async with serving(servicer_of_file(policy)) as dp:
        response: dp_pb2.DescribeGuaranteeResponse = await dp.DescribeGuarantee(request)
        return response


def worth_with(*domains: tuple[str, str], information: int = 3000, calls: int = 30) -> Any:
    """Return what the default budget is worth with some published domains."""
    return guarantee(
        Fraction("0.15"),
        Fraction("1e-10"),
        information=information,
        calls=calls,
        slack=Fraction("1e-9"),
        domains=[PublishedDomain(Fraction(rho), Fraction(delta)) for rho, delta in domains],
    )


async def test_the_domains_of_the_served_policy_count(tmp_path: Path) -> None:
    """Of every table and column, each once: 33.78 would be too little."""
    found = await described(policy_of(tmp_path, *DOMAINS))
    expected = worth_with(("5", "1e-9"), ("1/2", "1e-9"))
    assert (expected.epsilon, expected.delta) == (found.worth.epsilon, found.worth.delta)
    assert found.worth.epsilon > WITHOUT + 10
    assert found.worth.delta == pytest.approx(9e-9)


async def test_nothing_that_is_published_costs_nothing(tmp_path: Path) -> None:
    """A domain that the policy lists was not found in the data, and costs nothing."""
    listed = tmp_path / "policy.yaml"
    listed.write_text(
        HEADER + "tables: {t: {member: m, measures: {distinct_members: true}, "
        "columns: {c: {type: string, group_by: true, domain: [a]}}}}\n"
    )
    found = await described(listed)
    assert (WITHOUT, 0) == (round(found.worth.epsilon, 2), found.worth.domain_count)


async def test_earlier_refreshes_count_once_each(tmp_path: Path) -> None:
    """Statements of the window's charges add what they list and the served policy does not, whichever lists it."""
    before = domain_file("one", "3", "1e-9", refresh=0)
    served, earlier = policy_of(tmp_path, *DOMAINS), policy_statement([parsed(before), parsed(DOMAINS[1])])
    found = await described(
        served, policy_statements=[earlier, policy_statement(map(parsed, DOMAINS)), earlier]
    )
    expected = worth_with(("5", "1e-9"), ("1/2", "1e-9"), ("3", "1e-9"))
    assert (expected.epsilon, expected.delta, 3) == (
        found.worth.epsilon,
        found.worth.delta,
        found.worth.domain_count,
    )
    more = await described(
        served,
        policy_statements=[earlier],
        domains=[dp_pb2.PublishedDomain(rho="1/10", delta="1/1000000000")],
    )
    expected = worth_with(("5", "1e-9"), ("1/2", "1e-9"), ("3", "1e-9"), ("0.1", "1e-9"))
    assert (expected.epsilon, expected.delta, 4) == (
        more.worth.epsilon,
        more.worth.delta,
        more.worth.domain_count,
    )


async def test_a_policy_without_domains_still_counts_what_was_published_before(tmp_path: Path) -> None:
    """As the statements of the window's charges say."""
    served = policy_of(tmp_path, DOMAINS[0])
    served.write_text(HEADER + "tables: {t: {member: m, measures: {distinct_members: true}, columns: {}}}\n")
    found = await described(served, policy_statements=[policy_statement([parsed(DOMAINS[0])]), ""])
    assert (worth_with(("5", "1e-9")).epsilon, 1) == (found.worth.epsilon, found.worth.domain_count)


async def test_a_shared_budget_is_told_beside_the_accounts_own(tmp_path: Path) -> None:
    """By its own units, with what its window's charges and the account's list."""
    before = domain_file("one", "3", "1e-9", refresh=0)
    shared = dp_pb2.SharedBudget(
        information=9000, calls=90, policy_statements=[policy_statement([parsed(before)])]
    )
    found = await described(policy_of(tmp_path, *DOMAINS), shared=shared)
    own = worth_with(("5", "1e-9"), ("1/2", "1e-9"))
    everyones = worth_with(("5", "1e-9"), ("1/2", "1e-9"), ("3", "1e-9"), information=9000, calls=90)
    assert (own.epsilon, own.delta, 2) == (found.worth.epsilon, found.worth.delta, found.worth.domain_count)
    reported = found.shared
    assert (everyones.epsilon, everyones.delta, 3) == (
        reported.epsilon,
        reported.delta,
        reported.domain_count,
    )
    assert not (await described(policy_of(tmp_path, *DOMAINS))).HasField("shared")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"policy_statements": ["", "x"]}, "policy_statements[1]"),
        ({"policy_statements": [""] * 1001}, "policy_statements"),
        ({"policy_statements": [f"{0:016x}:2/4:1/2"]}, "policy_statements[0]"),
        ({"shared": dp_pb2.SharedBudget(information=-1)}, "shared.information"),
        ({"shared": dp_pb2.SharedBudget(calls=2**53 + 1)}, "shared.calls"),
        ({"shared": dp_pb2.SharedBudget(policy_statements=["x"])}, "shared.policy_statements[0]"),
        ({"domains": [dp_pb2.PublishedDomain(rho="1e999", delta="1e-9")]}, "domains[0].rho"),
        ({"domains": [dp_pb2.PublishedDomain(rho="0/1", delta="1e-9")]}, "domains[0].rho"),
        ({"domains": [dp_pb2.PublishedDomain(rho="1/0", delta="1e-9")]}, "domains[0].rho"),
    ],
)
async def test_what_cannot_be_is_refused_by_field(tmp_path: Path, fields: Any, named: str) -> None:
    """Nothing that was not understood is left out of a guarantee."""
    policy = policy_of(tmp_path, *DOMAINS)
    request = dp_pb2.DescribeGuaranteeRequest(information=1, calls=1, **fields)
    async with serving(servicer_of_file(policy)) as dp:
        code, reason, metadata = await error_of(dp.DescribeGuarantee(request))
    assert (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT") == (code, reason)
    assert named == metadata["field"]


@pytest.mark.slow
async def test_a_thousand_statements_of_awkward_numbers_are_added_up_in_time(tmp_path: Path) -> None:
    """Denominators without a common factor must not make sums of a million digits."""
    awkward = [
        f"{number:016x}:1/{10**59 + number}:1/{10**59 + 2 * number + 1}" for number in range(1, 20_000)
    ]
    statements = [",".join(awkward[start : start + 20]) for start in range(0, 9_900, 20)]
    started = time.monotonic()
    found = await described(policy_of(tmp_path, *DOMAINS), policy_statements=statements)
    assert 9_902 == found.worth.domain_count
    assert time.monotonic() - started < 20
    request = dp_pb2.DescribeGuaranteeRequest(
        policy_statements=[",".join(awkward[start : start + 20]) for start in range(0, 20_000, 20)]
    )
    async with serving(servicer_of(HEADER + TABLES)) as dp:
        _, _, metadata = await error_of(dp.DescribeGuarantee(request))
    assert "policy_statements" == metadata["field"]


async def test_the_catalogue_names_what_publishing_cost(tmp_path: Path) -> None:
    """For each column, exactly; and not the hash of the file, which says more than its elements."""
    policy = policy_of(tmp_path, domain_file("one", "1/10", "1e-9"))
    policy.write_text(policy.read_text() + "      plain: {type: string, group_by: true, domain: [a]}\n")
    async with serving(servicer_of_file(policy)) as dp:
        page = await dp.GetCatalog(dp_pb2.GetCatalogRequest())
    plain, published = sorted(page.tables[0].columns, key=lambda column: column.name, reverse=True)
    assert ("1/10", "1/1000000000") == (published.published.rho, published.published.delta)
    assert not plain.HasField("published")
    assert publication_text(domain_file("one", "1/10", "1e-9"))[:16] not in str(page)


async def test_a_release_carries_the_statement_of_the_policy_it_was_translated_under(tmp_path: Path) -> None:
    """Also where the policy is another one by then; both go with the plan; ids and noise stay."""
    policy = policy_of(tmp_path, *DOMAINS)
    served = ServedPolicy(usable_policy(policy.read_bytes(), str(policy), KEY))
    async with serving(DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()))) as dp:
        plan = await translated(dp, question("one", table="t", k=2))
        listed = policy.read_text().split("domain: ")[0] + "domain: [a, b, c]}\n"
        served.replace(usable_policy(listed.encode(), "policy", KEY))
        released = (await dp.AddNoiseUnary(unary(plan))).release.bill
        unstated = (
            await dp.AddNoiseUnary(unary(await translated(dp, question("one", table="t", k=2))))
        ).release.bill
    assert policy_statement(map(parsed, DOMAINS)) == released.policy_statement
    assert released.charge_ticket == ticket_of(released)
    assert ("", unstated.charge_ticket) == (unstated.policy_statement, ticket_of(unstated))
    assert (released.query_id, released.release_id) == (unstated.query_id, unstated.release_id)


def unary(plan: dp_pb2.TranslateQueryResponse) -> dp_pb2.AddNoiseUnaryRequest:
    """Return a small histogram of the column "one"."""
    column = histogram_pb2.ElementColumn(name="one", strings=histogram_pb2.StringValues(values=["a", "b"]))
    return dp_pb2.AddNoiseUnaryRequest(
        header=header(plan), histogram=histogram_pb2.Histogram(columns=[column], counts=[900, 600])
    )


def ticket_of(bill: dp_pb2.Bill) -> bytes:
    """Return the ticket as a ledger makes it from what a charge states: each part with its length before it."""
    secret = KEY.subkey(KeyUse.TICKET)
    cost = bill.cost
    units = [number.to_bytes(8, "big") for number in (cost.information, cost.calls)]
    texts = [bill.release_id, bill.query_id, cost.unit_id, bill.policy_statement, ""]
    encoded = [text.encode() for text in texts]
    parts = [b"gris/ticket/v1", *encoded[:2], *units, *encoded[2:]]
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    name = b"gris/ticket-key/v1"
    named = b"".join(len(part).to_bytes(8, "big") + part for part in (name, secret))
    return hashlib.sha256(named).digest()[:8] + hmac.digest(secret, message, "sha256")


def parsed(domain: DomainFile) -> Publication:
    """Return the publication of a domain."""
    (found,) = publications_in(publication_text(domain))
    return found
