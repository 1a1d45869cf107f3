"""The service chooses how a question is answered where the policy lets it: from the policy and the question alone."""

from __future__ import annotations

import io
import json
import math
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gris_api.dp.v1 import dp_pb2, question_pb2
from rich.console import Console

from dp_service.mechanisms import Histogram, UnkGumb
from dp_service.mechanisms.bounded import BoundGauss, TwoLooks
from dp_service.noise.source import KeyedNoise
from dp_service.noise.stream import KeyedStream
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import PolicyError, QuestionError, RefusedByPolicyError
from dp_service.queries.filters import Filter, In
from dp_service.queries.policy import parse_policy
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.choosing import Alternative, chosen
from dp_service.releases.kinds import kind_of
from dp_service.terms import Answering, MechanismName
from gris_cli.alternatives import alternatives_table
from gris_cli.catalog_tables import print_catalog
from pinot_connector.catalog import catalog_of
from pinot_connector.parameters import Mechanism
from pinot_connector.results import explanation_of
from tests.support.dp_questions import translated
from tests.support.dp_server import servicer_of_file, serving

POLICY = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  t:
    member: m
    contributions:
      bound: in_query
      delta_0: 8
      units: 20
      names: {delta_1: 4, share: 0.35, max_names: 75}
      choose:
        among: [unbounded, one_look, two_looks]
        units: [5, 10]
        kept: 0.8
        kept_names: 1/2
        expected:
          page: [{rank: 3, count: 2000}, {rank: 10, count: 900}, {rank: 50, count: 130}, {rank: 900, count: 20}]
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    columns:
      m: {type: string}
      page: {type: string, group_by: true, filter: [in]}
      other: {type: string, group_by: true}
      score: {type: int64, group_by: true, domain: [-1, 0, 1]}
"""


def asked(k: int | None = 10, by: str = "page", *filters: Filter, **more: Any) -> HistogramQuery:
    """Return a question for the largest k."""
    return HistogramQuery("t", (by,) if by else (), Measure.DISTINCT_MEMBERS, filters, k=k, **more)


def answered(query: HistogramQuery, policy: str = POLICY) -> tuple[str, int, bool | None]:
    """Return the mechanism, its price, and whether it is expected to find all."""
    found = chosen(query, parse_policy(policy), now=0)
    mechanism = kind_of(found.resolution.parameters).mechanism
    finds = next(
        each.finds_all for each in found.among if each.resolution.parameters == found.resolution.parameters
    )
    return type(mechanism).__name__, mechanism.worst_case_cost().information, finds


@pytest.mark.parametrize(("sigmas_above", "units"), [(0, 10), (1.5, 10), (1.8, 5)])
def test_an_element_is_expected_that_is_shown_with_95_in_100(sigmas_above: float, units: int) -> None:
    """1.64 standard deviations above the threshold; at the threshold it would be one in two."""
    among = "[one_look, unbounded]"
    policy = POLICY.replace("[unbounded, one_look, two_looks]", among).replace("kept_names: 1/2", "")
    looks = [
        kind_of(each.resolution.parameters).mechanism
        for each in chosen(asked(50), parse_policy(policy), now=0).among
    ]
    (look,) = [each for each in looks if isinstance(each, BoundGauss) and each.units == 5]
    assert look.threshold is not None
    left = look.threshold + 1 + sigmas_above * math.sqrt(look.variance)
    of_rank = policy.replace("count: 130", f"count: {math.ceil(left / 0.8)}")
    assert answered(asked(50), of_rank)[:2] == ("BoundGauss", units)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        # Seven units at most for three elements, which is more than five for one look.
        (1, ("UnkGumb", 3, True)),
        (3, ("BoundGauss", 5, True)),
        (10, ("BoundGauss", 5, True)),
        # 104 of 130 are left in one look; that of 5 units hides them.
        (50, ("BoundGauss", 10, True)),
        # Nothing is expected to find these: the answer is as the policy states it.
        (70, ("TwoLooks", 20, False)),
    ],
)
def test_the_cheapest_that_is_expected_to_find_all_is_chosen(k: int, expected: tuple[str, int, bool]) -> None:
    """A larger k needs more, and beyond what is expected it is what the policy states."""
    assert answered(asked(k)) == expected


@pytest.mark.slow
def test_what_is_chosen_finds_nearly_all_where_expectations_are_true() -> None:
    """Each alternative is run on counts of just the expected heights; a verdict of yes is true, of no too cautious."""
    among = [each for k in (1, 3, 10, 50) for each in chosen(asked(k), parse_policy(POLICY), now=0).among]
    assert {True, False} == {each.finds_all for each in among}
    for each in among:
        k = each.resolution.parameters.k
        assert k is not None
        if each.finds_all:
            assert _found(each, k) >= 0.9 * k


def _found(alternative: Alternative, k: int, runs: int = 30) -> float:
    """Return how many of k elements with the expected count of rank k are found on average; 900 others are lower."""
    height = {1: 2000, 3: 2000, 10: 900, 50: 130}[k]
    mechanism = kind_of(alternative.resolution.parameters).mechanism
    kept = {"UnkGumb": 1.0, "BoundGauss": 0.8, "TwoLooks": 0.5}[type(mechanism).__name__]
    counts = np.array([math.floor(height * kept)] * k + [math.floor(20 * kept)] * 900, dtype=np.int64)
    found = 0
    for run in range(runs):
        noise = KeyedNoise(KeyedStream(run.to_bytes(32, "big")))
        histogram = Histogram.from_element_order(counts)
        match mechanism:
            case TwoLooks():
                names = mechanism.draw_names(histogram, noise)
            case BoundGauss():
                names = mechanism.run(histogram, noise).indices
            case UnkGumb():
                names = mechanism.run(histogram, noise).indices
            case _:
                raise AssertionError(mechanism)
        found += int(np.count_nonzero(names < k))
    return found / runs


@pytest.mark.parametrize(
    "query",
    [
        asked(10, "other"),
        asked(10, "page", In("page", ("a", "b"))),
        HistogramQuery("t", ("page",), Measure.EVENTS, k=10),
        HistogramQuery("t", ("page", "other"), Measure.DISTINCT_MEMBERS, k=10),
        asked(None),
    ],
)
def test_of_other_questions_nothing_is_expected(query: HistogramQuery) -> None:
    """Other columns, conditions, events, no k: the answer is as the policy states it, for its units."""
    assert answered(query) == ("TwoLooks", 20, None)


def test_of_a_known_domain_the_cheapest_is_chosen() -> None:
    """All of it is shown whatever counts are; a total costs one unit without a bound."""
    assert answered(asked(1, "score")) == ("KnownGumb", 2, True)
    assert answered(asked(3, "score")) == ("BoundGauss", 5, True)
    assert answered(asked(None, "")) == ("KnownLap", 1, True)


def test_a_release_is_that_of_a_policy_that_states_the_choice() -> None:
    """Nothing of the choice itself enters plan, price or ids: a policy that states it gives the same release."""
    policy = parse_policy(POLICY)
    found = chosen(asked(50), policy, now=0).resolution
    block = POLICY[POLICY.index("      names:") : POLICY.index("    measures")]
    alone = chosen(
        asked(50), parse_policy(POLICY.replace(block, "").replace("units: 20", "units: 10")), now=0
    )
    assert (found.parameters, found.query) == (alone.resolution.parameters, alone.resolution.query)
    assert alone.among == ()


def test_expectations_alone_decide_and_they_are_the_policys() -> None:
    """Lower ones lead to another way; none that is too high is made up between ranks."""
    lower = POLICY.replace("count: 900}", "count: 140}")
    assert answered(asked(10), lower)[1] > answered(asked(10))[1]
    # Between ranks 10 and 50 an element is expected to be as low as that of rank 50.
    assert answered(asked(11)) == answered(asked(50))


def test_a_refusal_is_that_of_the_policy() -> None:
    """What no way can answer is refused as it would be without a choice."""
    policy = parse_policy(POLICY)
    with pytest.raises(RefusedByPolicyError):
        chosen(asked(10, "m"), policy, now=0)
    with pytest.raises(QuestionError):
        chosen(HistogramQuery("t", ("score",), Measure.DISTINCT_MEMBERS, (In("page", ()),)), policy, now=0)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("among: [unbounded, one_look, two_looks]", "among: [one_look, one_look]", "each of them once"),
        ("bound: in_query", "bound: assumed", "unbounded: expected only with bound: in_query"),
        ("      names: {delta_1: 4, share: 0.35, max_names: 75}\n", "", "two_looks: expected names"),
        ("        kept_names: 1/2\n", "", "expected exactly with two_looks"),
        ("units: [5, 10]", "units: [5, 40]", "expected at most 20"),
        ("          page: [", "          score: [{rank: 1, count: 2}]\n          nobody: [", "nobody"),
        ("{rank: 3, count: 2000}", "{rank: 30, count: 2000}", "ascending ranks"),
        ("{rank: 3, count: 2000}", "{rank: 3, count: 20}", "do not rise"),
        ("kept: 0.8", "kept: 1.2", "kept"),
        ("among: [unbounded, one_look, two_looks]", "among: [one_look]", "among"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(old: str, new: str, problem: str) -> None:
    """By line and key, before anything is served."""
    assert old in POLICY
    with pytest.raises(PolicyError) as refused:
        parse_policy(POLICY.replace(old, new))
    assert problem in str(refused.value)


@pytest.fixture
async def dp(tmp_path: Path) -> AsyncIterator[Any]:
    """Give a service under the policy above."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    async with serving(servicer_of_file(tmp_path / "policy.yaml")) as stub:
        yield stub


async def test_an_explanation_has_all_ways_and_the_one_that_is_reserved(dp: Any) -> None:
    """Price, mechanism and plan are those of the chosen one."""
    query = question_pb2.HistogramQuery(
        table="t", dimensions=["page"], measure=question_pb2.MEASURE_DISTINCT_MEMBERS, k=50
    )
    question = question_pb2.Question(structured=query)
    response: dp_pb2.EstimateCostResponse = await dp.EstimateCost(
        dp_pb2.EstimateCostRequest(question=question)
    )
    found = response.estimate
    (is_chosen,) = [each for each in found.alternatives if each.chosen]
    plan = await translated(dp, question)
    assert found.parameters == is_chosen.parameters == plan.parameters
    assert found.worst_case_cost == is_chosen.worst_case_cost == plan.worst_case_cost
    # UnkGumb for 101 units, one look and two for 5, 10 and 20.
    assert sorted(each.worst_case_cost.information for each in found.alternatives) == [
        5,
        5,
        10,
        10,
        20,
        20,
        101,
    ]
    assert found.statements[-1].text.startswith("This is the cheapest, of 7 ways")
    explanation = explanation_of(found)
    assert [each.chosen for each in explanation.alternatives] == [each.chosen for each in found.alternatives]
    assert len(json.loads(json.dumps(explanation.to_dict()))["alternatives"]) == 7
    table = alternatives_table(explanation)
    assert table is not None
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table)
    shown = [line.split("\u2502") for line in console.export_text().splitlines()[2:]]
    assert len(shown) == 7
    (line,) = [line for line in shown if line[0].strip() == "chosen"]
    assert [cell.strip() for cell in line[1:]] == [
        "one look, Delta 8",
        "10 information and 1 call",
        "102",
        "9.52",
        "yes",
    ]


async def test_the_catalogue_says_what_may_be_chosen(dp: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The ways, the units, and which mechanism may answer instead; nothing of what is expected."""
    page = await dp.GetCatalog(dp_pb2.GetCatalogRequest())
    assert "900" not in str(page)
    catalog = catalog_of([page])
    (table,) = catalog.tables
    assert table.choice is not None
    assert [each.value for each in table.choice.among] == ["unbounded", "one_look", "two_looks"]
    assert table.choice.units == (5, 10, 20)
    assert {column.name: column.other_mechanism for column in table.columns} == {
        "page": Mechanism.UNK_GUMB,
        "other": Mechanism.UNK_GUMB,
        "score": Mechanism.KNOWN_GUMB,
    }
    print_catalog(catalog, as_json=False)
    printed = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    assert "page string BoundGauss or UnkGumb" in printed
    assert "no bound, for a price that grows with k; one look for 5, 10, 20 information" in printed


async def test_the_catalogue_names_no_mechanism_that_may_not_be_chosen(tmp_path: Path) -> None:
    """Neither where the looks alone are among the ways, nor where nothing is chosen."""
    looks = POLICY.replace("[unbounded, one_look, two_looks]", "[one_look, two_looks]")
    block, rest = POLICY.split("      choose:\n")
    plain = block + rest[rest.index("    measures:") :]
    for text, has_choice in ((looks, True), (plain, False)):
        (tmp_path / "policy.yaml").write_text(text)
        async with serving(servicer_of_file(tmp_path / "policy.yaml")) as stub:
            (table,) = catalog_of([await stub.GetCatalog(dp_pb2.GetCatalogRequest())]).tables
        assert (table.choice is not None) is has_choice
        assert {column.other_mechanism for column in table.columns} == {None}
        assert {column.mechanism for column in table.columns} == {Mechanism.BOUND_GAUSS}


def test_names_of_ways_are_those_of_policies() -> None:
    """The three of them, and the mechanisms that they are."""
    among = chosen(asked(10), parse_policy(POLICY), now=0).among
    assert {Answering.UNBOUNDED, Answering.ONE_LOOK, Answering.TWO_LOOKS} == {
        each.answering for each in among
    }
    unbounded = [each for each in among if each.answering is Answering.UNBOUNDED]
    assert [MechanismName.UNK_GUMB] == [each.resolution.parameters.mechanism for each in unbounded]
    assert Fraction(3, 20) == unbounded[0].resolution.parameters.epsilon_per
