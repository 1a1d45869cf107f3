"""Who reaches whom once the chart is installed with one of its examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args

import pytest
import yaml

from deploy.kubernetes.validate import FOLDER, Manifest
from tests.deploy.manifests import made_by
from tests.deploy.network import Direction, Party, Port, let_through, policies

pytestmark = pytest.mark.usefixtures("starts_processes")

GRIS, ELSEWHERE, PINOT = "gris", "elsewhere", "pinot"
DNS = {(53, "UDP"), (53, "TCP"), (5353, "UDP"), (5353, "TCP")}
STORE, ANALYSTS, HOME = "10.20.0.0/24", "10.30.0.0/16", "203.0.113.7/32"
ENVIRONMENT = (
    Party("store", address="10.20.0.5"),
    Party("beside the store", address="10.20.1.5"),
    Party("analysts' network", address="10.30.7.7"),
    Party("internet", address="203.0.113.9"),
    Party("home", address="203.0.113.7"),
    Party("dns", "kube-system", {"k8s-app": "kube-dns"}),
    Party("prometheus", "monitoring", {"app.kubernetes.io/name": "prometheus"}),
)
Reach = dict[tuple[str, str], set[Port]]


def tcp(*numbers: int) -> set[Port]:
    """Return ports of TCP."""
    return {(number, "TCP") for number in numbers}


def applications(pinot: str, *ports: int) -> Reach:
    """Return what an application reaches, of which the gateway is one."""
    return {
        (name, target): found
        for name in ("application", "gateway")
        for target, found in {
            "dp-service": tcp(50051),
            "budget-service": tcp(50052),
            pinot: tcp(*ports),
            "dns": DNS,
        }.items()
    }


IN_BOTH: Reach = {
    ("analyst", "gateway"): tcp(50054),
    ("analyst", "dns"): DNS,
    ("budget-service", "dns"): DNS,
}
EXPECTED: dict[str, Reach] = {
    "trial": {
        **IN_BOTH,
        **applications("pinot", 9000, 8000),
        ("budget-service", "redis"): tcp(6379),
    },
    "production": {
        **IN_BOTH,
        **applications("pinot", 9000, 8099),
        ("budget-service", "store"): tcp(5432),
        ("analysts' network", "gateway"): tcp(50054),
        **{("prometheus", name): tcp(9464) for name in ("dp-service", "budget-service", "gateway")},
    },
}
# They reach the database of their releases, which is on the store's network here, and an application does not.
EXPECTED["several-gateways"] = {**EXPECTED["production"], ("gateway", "store"): tcp(5432)}
# Programs that ask Apache Pinot or PostgreSQL have ports of their own.
EXPECTED["clients"] = EXPECTED["production"] | {
    (name, "gateway"): tcp(50054, 50057, 50058) for name in ("analyst", "analysts' network")
}
# Applications ask a region, as well as the home, which both regions ask; Prometheus asks all.
REGIONS = ("region-eu", "region-us")
EXPECTED["regions"] = {
    **EXPECTED["production"],
    **{(name, region): tcp(50052) for name in ("application", "gateway") for region in REGIONS},
    **{("prometheus", region): tcp(9464) for region in REGIONS},
    **{(region, "budget-service"): tcp(50052) for region in REGIONS},
    **{(region, "dns"): DNS for region in REGIONS},
}
# A region whose home is in another cluster: its ledger is in the place of budget-service.
EXPECTED["one-region"] = {
    pair: ports
    for pair, ports in EXPECTED["regions"].items()
    if not {"budget-service", "region-us"} & {*pair}
} | {("region-eu", "home"): tcp(50052)}
DIRECTIONS = pytest.mark.parametrize("direction", ["Ingress", "Egress"])
EXAMPLES = pytest.mark.parametrize("example", list(EXPECTED))


@pytest.fixture
def manifests() -> dict[str, list[Manifest]]:
    """What each example makes; where Pinot is in a namespace of its own, with the policy for that."""
    made = {example: made_by(example) for example in EXPECTED}
    access = yaml.safe_load((FOLDER / "pinot-access.yaml").read_text())
    access["metadata"]["namespace"] = PINOT
    for example in set(EXPECTED) - {"trial"}:
        made[example].append(Manifest("pinot-access.yaml", access))
    return made


def pods(manifests: list[Manifest]) -> Iterator[Party]:
    """Yield the pods that run: those of the example, and those that a user adds to try it."""
    for each in manifests:
        if each.content["kind"] == "Deployment":
            made = each.content["spec"]["template"]["metadata"]["labels"]
            yield Party(each.content["metadata"]["name"], GRIS, made)
    yield from added_pods()


@cache
def added_pods() -> tuple[Party, ...]:
    """Return those of an application and of an analyst."""
    added = (
        yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["metadata"]
        for name in ("application", "analyst")
    )
    return tuple(Party(each["name"], GRIS, each["labels"]) for each in added)


def pairs(manifests: list[Manifest], direction: Direction) -> Iterator[tuple[Party, Party]]:
    """Yield who might meet whom: Gris and Pinot, strangers beside them, others that look the same, the world outside.

    Only those of which the side that a direction asks about is ours to guard.
    """
    ours = [*pods(manifests), Party("stranger", GRIS)]
    guarded = list(ours)
    if "pinot" not in {each.name for each in ours}:
        # In production Pinot is at home elsewhere, and whom it asks itself is not for Gris to say.
        guarded.append(Party("pinot", PINOT, {"app": "pinot"}))
    strangers = [Party(f"stranger in {namespace}", namespace) for namespace in (PINOT, ELSEWHERE)]
    impostors = [Party(f"impostor of {each.name}", ELSEWHERE, each.labels) for each in guarded]
    everybody = [*guarded, *strangers, *impostors, *ENVIRONMENT]
    if direction == "Egress":
        yield from ((source, target) for source in ours for target in everybody)
    else:
        met = ((source, target) for source in everybody for target in guarded)
        yield from (
            pair for pair in met if {each.namespace for each in pair} != {PINOT} or pair[0] != pair[1]
        )


def expected(example: str, manifests: list[Manifest], direction: Direction) -> Reach:
    """Return what a direction should let through of what is listed."""
    asked = {(source.name, target.name) for source, target in pairs(manifests, direction)}
    return {pair: ports for pair, ports in EXPECTED[example].items() if pair in asked}


def found(manifests: list[Manifest], direction: Direction) -> Reach:
    """Return what a direction lets through."""
    return let_through(policies(manifests), direction, pairs(manifests, direction))


@EXAMPLES
@DIRECTIONS
def test_nobody_reaches_anybody_but_as_listed(
    example: str, direction: Direction, manifests: dict[str, list[Manifest]]
) -> None:
    """Applications the services and Pinot, the ledger its store, analysts the gateway, Prometheus the metrics.

    Each side alone refuses all the rest, so that one policy that is too wide opens nothing inside the namespace.
    """
    made = manifests[example]
    assert found(made, direction) == expected(example, made, direction)


@EXAMPLES
def test_what_is_listed_is_let_through_by_both_sides(
    example: str, manifests: dict[str, list[Manifest]]
) -> None:
    """Nothing of the list is left out because neither side is asked."""
    made = manifests[example]
    asked = {**expected(example, made, "Ingress"), **expected(example, made, "Egress")}
    assert asked == EXPECTED[example]


@EXAMPLES
def test_everything_in_the_namespace_is_refused_by_default(
    example: str, manifests: dict[str, list[Manifest]]
) -> None:
    """One policy selects every pod in both directions, and lists nothing."""
    (default,) = (each for each in manifests[example] if each.title.endswith(" NetworkPolicy default-deny"))
    assert default.content["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert default.content["metadata"]["namespace"] == GRIS


@EXAMPLES
def test_the_networks_outside_are_those_that_are_named(
    example: str, manifests: dict[str, list[Manifest]]
) -> None:
    """Of a wider one the addresses that are tried might not tell."""
    named = {each for policy in policies(manifests[example]) for each in policy.networks()}
    others = {"trial": set[str](), "one-region": {HOME, ANALYSTS}}
    assert named == others.get(example, {STORE, ANALYSTS})


def rule_of(manifests: list[Manifest], name: str, direction: str) -> dict[str, Any]:
    """Return the first rule of a policy, to be changed."""
    first: dict[str, Any] = spec_of(manifests, name)[direction][0]
    return first


def spec_of(manifests: list[Manifest], name: str) -> dict[str, Any]:
    """Return what a policy says, to be changed."""
    (found,) = (each.content for each in manifests if each.title.endswith(f" NetworkPolicy {name}"))
    spec: dict[str, Any] = found["spec"]
    return spec


def without(manifests: list[Manifest], name: str) -> None:
    """Take a policy away."""
    manifests[:] = [each for each in manifests if not each.title.endswith(f" NetworkPolicy {name}")]


APPLICATIONS = {"matchLabels": {"app.kubernetes.io/component": "application"}}
WIDER: dict[str, tuple[str, Callable[[list[Manifest]], object]]] = {
    "nothing is refused by default": ("trial", lambda made: without(made, "default-deny")),
    "a service on every port": ("trial", lambda made: rule_of(made, "dp-service", "ingress").pop("ports")),
    "a service on one more port": (
        "trial",
        lambda made: rule_of(made, "budget-service", "ingress")["ports"].append({"port": 50053}),
    ),
    "a service on a range of ports": (
        "trial",
        lambda made: rule_of(made, "dp-service", "ingress")["ports"][0].update(endPort=50053),
    ),
    "a service for everybody": ("trial", lambda made: rule_of(made, "dp-service", "ingress").pop("from")),
    "a service for every pod beside it": (
        "trial",
        lambda made: rule_of(made, "dp-service", "ingress").update({"from": [{"podSelector": {}}]}),
    ),
    "a service for applications of every namespace": (
        "production",
        lambda made: rule_of(made, "dp-service", "ingress").update(
            {"from": [{"namespaceSelector": {}, "podSelector": APPLICATIONS}]}
        ),
    ),
    "the store for all of Gris": (
        "trial",
        lambda made: rule_of(made, "redis", "ingress").update(
            {"from": [{"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "gris"}}}]}
        ),
    ),
    "the database of releases for every application": (
        "several-gateways",
        lambda made: spec_of(made, "gateway-to-releases").update(podSelector=APPLICATIONS),
    ),
    "a home for whatever calls itself of a region": (
        "regions",
        lambda made: rule_of(made, "regions-to-home", "ingress").update(
            {"from": [{"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "gris"}}}]}
        ),
    ),
    "a region to every pod beside it": (
        "regions",
        lambda made: rule_of(made, "region", "egress").update({"to": [{"podSelector": {}}]}),
    ),
    "Pinot for every pod of Gris": (
        "production",
        lambda made: made[-1].content["spec"]["ingress"][1]["from"][0].pop("podSelector"),
    ),
    "an application to the whole world": (
        "production",
        lambda made: rule_of(made, "application-to-pinot", "egress").update(
            {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}
        ),
    ),
    "metrics for every namespace": (
        "production",
        lambda made: rule_of(made, "prometheus-to-metrics", "ingress").update(
            {"from": [{"namespaceSelector": {}}]}
        ),
    ),
}


@pytest.mark.parametrize("widened", list(WIDER))
def test_a_policy_that_is_widened_is_noticed(widened: str, manifests: dict[str, list[Manifest]]) -> None:
    """On the side where it was widened, whatever the other side says."""
    example, widen = WIDER[widened]
    made = copy.deepcopy(manifests[example])
    widen(made)
    more = [found(made, side) != expected(example, made, side) for side in get_args(Direction)]
    assert any(more)
