"""Who may reach whom under NetworkPolicies, worked out from manifests alone.

A connection needs both its sides: the policies of the pod that begins it (Egress) and those of the pod that takes it
(Ingress). A pod that no policy selects in a direction is free in it; one that is selected may do what any of these
policies lists. Somebody outside the cluster is an address. What is not understood here is refused (ValueError or
KeyError) and never passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any, Literal

from deploy.kubernetes.validate import Manifest

Direction = Literal["Ingress", "Egress"]
Port = tuple[int, str]
"""Number and protocol."""

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
NOBODYS_PORT = 31337
"""A port that nothing listens on and no policy names: open only where every port is."""

_ANY: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Party:
    """Who connects: a pod with its namespace and labels, or an address outside, whose namespace is empty."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    address: str = "10.244.0.7"

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """What Kubernetes itself puts on every namespace."""
        return {NAMESPACE_LABEL: self.namespace}


@dataclass(frozen=True)
class Policy:
    """One NetworkPolicy."""

    namespace: str
    spec: Mapping[str, Any]

    def selects(self, party: Party, direction: Direction) -> bool:
        """Tell whether this policy decides about a party in a direction."""
        return (
            party.namespace == self.namespace
            and direction in self.spec["policyTypes"]
            and selected(self.spec["podSelector"], party.labels)
        )

    def listing(self, direction: Direction, other: Party) -> Iterator[Mapping[str, Any]]:
        """Yield the rules by which this policy lets its pods meet another party, on their ports."""
        side = {"Ingress": "from", "Egress": "to"}[direction]
        for rule in self.spec.get(direction.lower(), ()):
            if _listed(rule, side, lambda peer: self._is(peer, other)):
                yield rule

    def ports(self) -> Iterator[int]:
        """Yield the ports that are named, of a range both ends."""
        for rule in self._rules():
            for port in rule.get("ports", ()):
                yield from (_number(port[key]) for key in ("port", "endPort") if key in port)

    def networks(self) -> Iterator[str]:
        """Yield the networks outside that are named."""
        for rule in self._rules():
            peers = (*rule.get("from", ()), *rule.get("to", ()))
            yield from (peer["ipBlock"]["cidr"] for peer in peers if "ipBlock" in peer)

    def _rules(self) -> Iterator[Mapping[str, Any]]:
        for direction in ("ingress", "egress"):
            yield from self.spec.get(direction, ())

    def _is(self, peer: Mapping[str, Any], other: Party) -> bool:
        if not peer or set(peer) - {"podSelector", "namespaceSelector", "ipBlock"}:
            raise ValueError(f"a peer that is not understood: {peer}")
        if "ipBlock" in peer:
            return _within(peer["ipBlock"], other.address)
        if not other.namespace:
            return False
        if "namespaceSelector" in peer:
            near = selected(peer["namespaceSelector"], other.namespace_labels)
        else:
            near = other.namespace == self.namespace
        return near and selected(peer.get("podSelector", _ANY), other.labels)


def policies(manifests: Iterable[Manifest], namespace: str = "default") -> list[Policy]:
    """Return the NetworkPolicies among manifests; `namespace` is where those are put that name none."""
    return [
        Policy(each.content["metadata"].get("namespace", namespace), each.content["spec"])
        for each in manifests
        if each.content["kind"] == "NetworkPolicy"
    ]


def let_through(
    made: Sequence[Policy], direction: Direction, pairs: Iterable[tuple[Party, Party]]
) -> dict[tuple[str, str], set[Port]]:
    """Return on which ports one side of each connection lets it through: who takes it, or who begins it.

    Pairs are who begins and who takes it, in the result by their names; a party and itself are two replicas. Every port
    that a policy names is looked at, and one that none does; pairs that have none are left out.
    """
    numbers = {NOBODYS_PORT, *(number for policy in made for number in policy.ports())}
    ports = {(number, protocol) for number in numbers for protocol in ("TCP", "UDP", "SCTP")}
    deciding = cache(lambda party: [policy for policy in made if policy.selects(party, direction)])
    found = {}
    for source, target in pairs:
        party, other = (source, target) if direction == "Egress" else (target, source)
        rules = [rule for policy in deciding(party) for rule in policy.listing(direction, other)]
        found[source.name, target.name] = (
            {port for rule in rules for port in ports if _on(rule.get("ports"), port)}
            if deciding(party)
            else ports
        )
    return {names: open_ports for names, open_ports in found.items() if open_ports}


def selected(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a label selector selects something; an empty one selects everything."""
    if set(selector) - {"matchLabels", "matchExpressions"}:
        raise ValueError(f"a selector that is not understood: {selector}")
    pairs = selector.get("matchLabels", {}).items()
    return all(labels.get(key) == value for key, value in pairs) and all(
        _holds(each, labels) for each in selector.get("matchExpressions", ())
    )


def _listed(rule: Mapping[str, Any], side: str, matches: Callable[[Mapping[str, Any]], bool]) -> bool:
    # Without peers, or with an empty list of them, a rule is about everybody.
    return not rule.get(side) or any(matches(peer) for peer in rule[side])


def _within(block: Mapping[str, Any], address: str) -> bool:
    if set(block) != {"cidr"}:
        raise ValueError(f"a network that is not understood: {block}")
    return ip_address(address) in ip_network(block["cidr"])


def _on(ports: Iterable[Mapping[str, Any]] | None, port: Port) -> bool:
    return not ports or any(_protocol(each) == port[1] and _in_range(each, port[0]) for each in ports)


def _in_range(listed: Mapping[str, Any], number: int) -> bool:
    if "port" not in listed:
        return True
    first = _number(listed["port"])
    return first <= number <= _number(listed.get("endPort", first))


def _protocol(port: Mapping[str, Any]) -> str:
    return str(port.get("protocol", "TCP"))


def _number(port: object) -> int:
    if isinstance(port, int):
        return port
    raise ValueError(f"a port by its name is not understood: {port}")


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if expression["operator"] != "In":
        raise ValueError(f"an operator that is not understood: {expression['operator']}")
    return labels.get(expression["key"]) in expression["values"]
