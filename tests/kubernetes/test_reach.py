"""Who reaches what, and with which rights."""

from __future__ import annotations

import json

import pytest

from tests.kubernetes.cluster import KubectlError, Namespace

PORTS = {
    "dp-service": (50051, 9464, 9465),
    "budget-service": (50052, 50053, 9464, 9465),
    "gateway": (50054, 9464),
    "redis": (6379,),
    "pinot": (9000, 8000),
}
# What an application needs, and nothing else.
APPLICATION = {("dp-service", 50051), ("budget-service", 50052), ("pinot", 9000), ("pinot", 8000)}

_CONNECT = """
import json, socket, sys
def connects(host, port):
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True
print(json.dumps([connects(*each.split(":")) for each in sys.argv[1:]]))
"""
_RIGHTS = """
import json, os
print(json.dumps({"user": os.getuid(), "token": os.path.exists("/var/run/secrets/kubernetes.io"),
    "writable": [folder for folder in ("/", "/etc", "/opt/gris/lib") if os.access(folder, os.W_OK)],
    "environment": sorted(name for name in os.environ if "SERVICE" in name and not name.startswith("KUBERNETES_"))}))
"""


def reached(gris: Namespace, asking: Namespace, pod: str) -> set[tuple[str, int]]:
    """Return what a pod can connect to, by the addresses of pods: names are another thing that can be refused."""
    wanted = [(name, port) for name, ports in PORTS.items() for port in ports]
    addresses = {name: gris.pods(name)[0]["status"]["podIP"] for name in PORTS}
    reported = asking.python(pod, "-c", _CONNECT, *(f"{addresses[name]}:{port}" for name, port in wanted))
    return {each for each, connects in zip(wanted, json.loads(reported), strict=True) if connects}


def test_an_application_reaches_services_and_data_but_no_store(gris: Namespace, application: str) -> None:
    """Nor the administrator's service."""
    assert reached(gris, gris, application) == APPLICATION


def test_an_analyst_reaches_the_gateway_alone(gris: Namespace, analyst: str) -> None:
    """No service, no data, and no metrics."""
    assert reached(gris, gris, analyst) == {("gateway", 50054)}


def test_a_gateway_reaches_what_an_application_reaches(gris: Namespace) -> None:
    """Services and data, and neither the store nor the administrator's service."""
    pod = gris.pods("gateway")[0]["metadata"]["name"]
    assert reached(gris, gris, pod) - {("gateway", port) for port in PORTS["gateway"]} == APPLICATION


def test_a_stranger_reaches_nothing(gris: Namespace, stranger: str, outsider: Namespace) -> None:
    """Neither a pod of the same namespace, nor one of another namespace that calls itself an application."""
    assert reached(gris, gris, stranger) == set()
    assert reached(gris, outsider, "outsider") == set()


@pytest.mark.parametrize("name", ["dp-service", "budget-service"])
def test_a_service_reaches_only_its_store(gris: Namespace, name: str) -> None:
    """dp_service reaches nothing at all."""
    pod = gris.pods(name)[0]["metadata"]["name"]
    own = {(name, port) for port in PORTS[name]}
    store = {("redis", 6379)} if name == "budget-service" else set()
    assert reached(gris, gris, pod) - own == store


@pytest.mark.parametrize("name", ["dp-service", "budget-service", "gateway"])
def test_a_service_has_no_rights(gris: Namespace, name: str) -> None:
    """No user, no token for the API server, no file system to write to, nobody's addresses in its environment."""
    pod = gris.pods(name)[0]["metadata"]["name"]
    reported = json.loads(gris.python(pod, "-c", _RIGHTS))
    assert reported == {"user": 10001, "token": False, "writable": [], "environment": []}
    account = f"system:serviceaccount:{gris.name}:{name}"
    with pytest.raises(KubectlError):
        gris.kubectl("auth", "can-i", "get", "secrets", f"--as={account}")


def test_the_namespace_refuses_a_pod_that_could_have_rights(gris: Namespace) -> None:
    """The namespace holds all pods to Kubernetes' standard `restricted`: what a pod does not give up, it has."""
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        gris.kubectl("run", "of-any-kind", "--image=none")
