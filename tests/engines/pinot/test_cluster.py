"""The launcher says what is missing, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.pinot.__main__ import main
from deploy.pinot.cluster import ClusterError, PinotCluster, Ports, collect_jars


def test_fixed_ports_are_those_that_pinot_users_know() -> None:
    """Controller, broker and the first server listen where Pinot's own documentation says."""
    ports = Ports.fixed(servers=2)
    assert (ports.controller, ports.broker) == (9000, 8099)
    assert [server.query for server in ports.servers] == [8098, 8198]


def test_free_ports_are_all_different() -> None:
    """No two roles get one port."""
    ports = Ports.free(servers=3)
    numbers = [ports.zookeeper, ports.controller, ports.broker]
    numbers += [number for server in ports.servers for number in (server.query, server.admin, server.grpc)]
    assert len(set(numbers)) == 12


@pytest.mark.usefixtures("starts_pinot")
def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="openjdk-17"):
        PinotCluster(directory=tmp_path).start()


def test_a_missing_maven_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ClusterError, match="install maven"):
        collect_jars("0.11.0")


@pytest.mark.usefixtures("starts_processes")
def test_a_failed_collection_leaves_no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run starts anew instead of taking half of the jars for all."""
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\nexit 1\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ClusterError, match="Maven could not"):
        collect_jars("0.11.0")
    assert list((tmp_path / "cache" / "gris" / "pinot").iterdir()) == []


def test_jars_that_are_there_are_not_collected_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second start needs no Maven."""
    jars = tmp_path / "gris" / "pinot" / "0.11.0"
    jars.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert collect_jars("0.11.0") == jars


@pytest.mark.usefixtures("starts_pinot")
def test_a_role_that_ends_at_once_is_named_and_everything_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting does not wait for what has ended, and leaves no process and no state behind."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    cluster = PinotCluster(directory=tmp_path / "data", ports=Ports.free(servers=1), jars=tmp_path)
    with pytest.raises(ClusterError, match="zookeeper did not start"):
        cluster.start()
    assert cluster.status() == {}
    assert not (tmp_path / "data" / "cluster.json").exists()


@pytest.mark.usefixtures("starts_pinot")
def test_another_program_under_an_old_number_is_not_taken_for_a_role(tmp_path: Path) -> None:
    """Stopping a cluster that ended long ago kills nobody else."""
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ports = {"zookeeper": 1, "controller": 2, "broker": 3, "servers": []}
    state = {"version": "0.11.0", "ports": ports, "processes": {"broker": bystander.pid}}
    (tmp_path / "cluster.json").write_text(json.dumps(state))
    PinotCluster.started_in(tmp_path).stop()
    assert bystander.poll() is None
    bystander.communicate(b"\n")


def test_a_cluster_that_was_never_started_is_not_found(tmp_path: Path) -> None:
    """The command line says so and fails."""
    with pytest.raises(SystemExit, match="no cluster was started"):
        main(["stop", "--directory", str(tmp_path)])


def test_a_running_cluster_is_found_by_its_directory(pinot_cluster: PinotCluster) -> None:
    """Another run of the launcher sees the roles that this one started, and does not start them twice."""
    found = PinotCluster.started_in(pinot_cluster.directory)
    assert found.ports == pinot_cluster.ports
    assert set(found.status()) == {"zookeeper", "controller", "broker", "server-0", "server-1"}
    assert all(found.status().values())
    with pytest.raises(ClusterError, match="already"):
        PinotCluster(directory=pinot_cluster.directory).start()
