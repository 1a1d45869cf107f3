"""`gris guarantee`: what is promised for what an account is shown, for people and for programs."""

from __future__ import annotations

import json

import pytest

from gris_cli.__main__ import main
from gris_cli.budget_formatting import format_guarantee, format_own_guarantee
from pinot_connector.budgets import Cost
from pinot_connector.guarantees import AccountGuarantee, BudgetGuarantee, Guarantee, Sharing
from tests.support.command_line import run_json
from tests.support.world import World

OWN = BudgetGuarantee(("acme", "ana"), Cost(3000, 30, ""), Guarantee(33.781, 7e-9))
SHARED = BudgetGuarantee(("acme",), Cost(9000, 90, ""), Guarantee(69.6501, 2e-8, 2))
RECORDED = BudgetGuarantee(("acme",), None, None)
UNBOUNDED = BudgetGuarantee(("acme",), Cost(200, 5, ""), None)
FINE = BudgetGuarantee(("acme", "ana"), Cost(1, 1, ""), Guarantee(1.0, 1.234561e-08))
DP = "-differentially private for every member"


def reported_of(
    sharing: Sharing, shared: BudgetGuarantee | None, own: BudgetGuarantee = OWN
) -> AccountGuarantee:
    """Return a guarantee of ana's."""
    return AccountGuarantee(("acme", "ana"), own, shared, sharing)


@pytest.mark.parametrize(
    ("reported", "words", "own"),
    [
        (
            reported_of(Sharing.NONE, None),
            f"all that acme/ana is shown is (33.79, 7e-09){DP}, for 3000 information and 30 calls",
            "",
        ),
        (
            reported_of(Sharing.WORST_CASES, SHARED),
            f"all that acme/ana is shown is (69.66, 2e-08){DP}, with 2 published domains or bounds: it sees what "
            "others take from acme, of which 9000 information and 90 calls are counted; levels above count worst "
            "cases: a charge there does not show how a release ended, but how many questions others asked still shows",
            f"3000 information and 30 calls; its own results alone are (33.79, 7e-09){DP}",
        ),
        (
            reported_of(Sharing.COSTS, SHARED),
            f"all that acme/ana is shown is (69.66, 2e-08){DP}, with 2 published domains or bounds: it sees what "
            "others' results cost acme, of which 9000 information and 90 calls are counted",
            f"3000 information and 30 calls; its own results alone are (33.79, 7e-09){DP}",
        ),
        (
            reported_of(Sharing.COSTS, UNBOUNDED),
            "nothing bounds what acme/ana is shown: acme is refreshed too often while its own budget lasts, more was "
            "spent there than its limit allows, it had no limit at first, or one of other windows, or the previous "
            "currency counts there",
            f"3000 information and 30 calls; its own results alone are (33.79, 7e-09){DP}",
        ),
        (
            reported_of(Sharing.NONE, None, FINE),
            f"all that acme/ana is shown is (1.00, 1.23457e-08){DP}, for 1 information and 1 call",
            "",
        ),
        (
            reported_of(Sharing.COSTS, RECORDED),
            "nothing bounds what acme/ana is shown: the limit of acme is recorded but not enforced",
            f"3000 information and 30 calls; its own results alone are (33.79, 7e-09){DP}",
        ),
        (
            reported_of(Sharing.NONE, None, BudgetGuarantee(("acme", "ana"), None, None)),
            "nothing bounds what acme/ana is shown: the limit of acme/ana is recorded but not enforced",
            "",
        ),
        (
            reported_of(Sharing.COSTS, RECORDED, BudgetGuarantee(("acme", "ana"), None, None)),
            "nothing bounds what acme/ana is shown: the limit of acme is recorded but not enforced",
            "recorded but not enforced",
        ),
        (
            reported_of(Sharing.COSTS, UNBOUNDED, BudgetGuarantee(("acme", "ana"), FINE.limit, None)),
            "nothing bounds what acme/ana is shown: acme is refreshed too often while its own budget lasts, more was "
            "spent there than its limit allows, it had no limit at first, or one of other windows, or the previous "
            "currency counts there",
            "more was spent than its limit allows, it had none at first, or the previous currency counts",
        ),
    ],
)
def test_each_guarantee_is_labelled(reported: AccountGuarantee, words: str, own: str) -> None:
    """Which budget's it is, rounded up, and what the account's own pays for beside a shared one."""
    assert (words, own) == (format_guarantee(reported), format_own_guarantee(reported))


def test_it_is_told_for_people(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Which account, which budget, and domains that are added."""
    assert main(["guarantee", "--account", "t/told", "--dp", world.dp, "--budget", world.budget]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    assert "nothing bounds what t/told is shown: delta reaches 1 for" in " ".join(printed.split())
    assert "-differentially private for every member" in " ".join(printed.split())
    flags = [
        "--account",
        "t/told",
        "--dp",
        world.dp,
        "--budget",
        world.budget,
        "--domain",
        "1:1e-9",
        "--json",
    ]
    assert main(["guarantee", *flags]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (["t", "told"], ["t", "told"]) == (reported["account"], reported["own"]["path"])
    assert 1 == reported["own"]["guarantee"]["domain_count"]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ((), 2, "--account"),
        (("--account", "t/told", "--domain", "1"), 2, "RHO:DELTA"),
        (("--account", "t/told", "--domain", "1:2"), 2, "domains[0].delta"),
        (("--account", "t/told", "--domain", "\ud800:2"), 2, "surrogates"),
        (("--account", "nobody"), 2, "nobody has no budget"),
    ],
)
def test_wrong_use_is_told(
    world: World, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], code: int, said: str
) -> None:
    """By flag or field."""
    services = ("--dp", world.dp, "--budget", world.budget)
    assert said in run_json(capsys, "guarantee", *flags, *services, code=code)["error"]["message"]
