# SPDX-License-Identifier: Apache-2.0
"""The real scheduler asks `berthctl serve`."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from extender import Extender, snapshot
from fakehost import FakeHost
from waiting import PATIENCE_S, until

# As berth-kube publishes it of an empty host.
EMPTY = {"berth.org/be-cpu": "8000", "berth.org/be-memory": "64Gi"}
ONE_CORE = {"berth.org/be-cpu": "1000"}


@pytest.fixture
def extender(build: Path) -> Iterator[Extender]:
    made = Extender(build)
    yield made
    made.stop(signal.SIGKILL)


def test_the_extender_decides(cluster: Cluster, extender: Extender) -> None:
    for node in ("n1", "n2", "n3"):
        cluster.add_node(node, extended=EMPTY)
    extender.push(snapshot("n1", busy=6), snapshot("n2", busy=1), snapshot("n3", busy=7))
    cluster.start_scheduler(extender.url)
    cluster.add_pod("first", ONE_CORE)
    until(lambda: cluster.place("first") == "n2", "pod on the emptiest host")
    # Amounts in the node objects fit everywhere; what berth sees does not.
    cluster.add_pod("large", {"berth.org/be-cpu": "6000"})
    until(lambda: cluster.place("large") == "n2", "large pod on the only host that holds it")
    cluster.add_pod("second", {"berth.org/be-cpu": "5000"})
    until(lambda: cluster.is_refused("second"), "refusal")
    events = cluster.good("GET", "/api/v1/namespaces/default/pods/second")["status"]["conditions"]
    assert any("berth: fits in no NUMA node" in it.get("message", "") for it in events), events
    extender.push(snapshot("n1", busy=0))
    # The scheduler tries again when something changes in the cluster.
    cluster.good("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"changed": "yes"}}}, "application/merge-patch+json")
    until(lambda: cluster.place("second") == "n1", "second pod")


def test_three_berthd_and_the_extender(cluster: Cluster, extender: Extender, build: Path, tmp_path: Path) -> None:
    """Each host's snapshot is of a real berthd, and comes by berthctl."""
    hosts: dict[str, FakeHost] = {}

    def ask(host: FakeHost) -> subprocess.CompletedProcess[str]:
        return subprocess.run([build / "cli/berthctl", "snapshot"], env=os.environ | host.environment, capture_output=True, text=True)

    def push() -> None:
        for host in hosts.values():
            shown = ask(host)
            assert shown.returncode == 0, shown.stderr
            extender.push(json.loads(shown.stdout))

    def lists(host: FakeHost, workloads: int) -> bool:
        shown = ask(host)
        return shown.returncode == 0 and len(json.loads(shown.stdout)["workloads"]) == workloads

    try:
        # n1 and n3 have services on six of eight vCPUs; n2 has one on three.
        for node, services in (("n1", 2), ("n2", 1), ("n3", 2)):
            cluster.add_node(node, extended=EMPTY)
            hosts[node] = host = FakeHost(tmp_path / node, tmp_path / f"run-{node}")
            for number in range(services):
                host.add_group(f"web/{number}.service")
            host.start(build / "daemon/berthd", name=node)
            until(lambda host=host, services=services: lists(host, services), f"berthd of {node}")
        push()
        assert extender.health()["hosts"] == 3
        cluster.start_scheduler(extender.url)
        cluster.add_pod("first", {"berth.org/be-cpu": "4000"})
        until(lambda: cluster.place("first") == "n2", "pod on the host with the most left")
        # The services of n1 end, and others come to n2: the next pod goes where its berthd says.
        for number in range(2):
            hosts["n1"].remove_group(f"web/{number}.service")
        until(lambda: lists(hosts["n1"], 0), "the end of the services")
        push()
        cluster.add_pod("second", {"berth.org/be-cpu": "5000"})
        until(lambda: cluster.place("second") == "n1", "pod on the host that became empty")
    finally:
        for host in hosts.values():
            host.stop(signal.SIGKILL)


def test_a_snapshot_ends_an_assumption(cluster: Cluster, extender: Extender) -> None:
    cluster.add_node("n1", extended=EMPTY)
    extender.push(snapshot("n1"))
    cluster.start_scheduler(extender.url)
    cluster.add_pod("first", ONE_CORE)
    until(lambda: cluster.place("first") == "n1", "pod")
    assert extender.health()["assumed_pods"] == 1
    uid = cluster.good("GET", "/api/v1/namespaces/default/pods/first")["metadata"]["uid"]
    extender.push(snapshot("n1", pods=[uid]))
    assert extender.health()["assumed_pods"] == 0


def test_the_scheduler_goes_on_without_snapshots_and_without_the_extender(cluster: Cluster, extender: Extender) -> None:
    for node in ("n1", "n2"):
        cluster.add_node(node, extended=EMPTY)
    cluster.start_scheduler(extender.url)
    cluster.add_pod("first", ONE_CORE)
    until(lambda: cluster.place("first"), "pod without snapshots")
    assert extender.stop() == 0
    cluster.add_pod("second", ONE_CORE)
    until(lambda: cluster.place("second"), "pod without the extender")


def spread(cluster: Cluster, nodes: list[str], pods: int) -> int:
    """The number of nodes that a burst of pods was spread over."""
    cluster.many(lambda node: cluster.add_node(node, extended=EMPTY), nodes)
    cluster.many(lambda number: cluster.add_pod(f"p{number}", ONE_CORE), range(pods))
    until(lambda: sum(cluster.places().values()) == pods, "burst")
    return len(cluster.places())


def burst(cluster: Cluster, extender: Extender, count: int, pods: int) -> tuple[int, int]:
    """The numbers of nodes without the extender, and with it."""
    nodes = [f"n{number}" for number in range(count)]
    cluster.start_scheduler()
    alone = spread(cluster, nodes, pods)
    cluster.end("kube-scheduler")
    cluster.clear()
    extender.push(*(snapshot(node, busy=number % 3) for number, node in enumerate(nodes)))
    cluster.start_scheduler(extender.url)
    return alone, spread(cluster, nodes, pods)


def test_a_burst_does_not_herd(cluster: Cluster, extender: Extender) -> None:
    alone, with_berth = burst(cluster, extender, 60, 40)
    print(f"40 pods over 60 nodes: on {alone} nodes without the extender, on {with_berth} with it")
    assert with_berth >= 0.8 * alone


def test_hostile_questions_are_refused(extender: Extender) -> None:
    status, answer = extender.post("/filter", "{")
    assert status == 200 and answer["Error"]
    assert "nodeCacheCapable" in extender.post("/filter", {"Pod": {"metadata": {"name": "p", "uid": "u"}, "spec": {}}, "Nodes": {}})[1]["Error"]
    assert extender.post("/prioritize", "[]")[0] == 400
    assert extender.post("/snapshots", {"schema": "berth.plan/1"})[0] == 400
    # One a request, so that no node keeps the scheduler waiting.
    assert extender.post("/snapshots", json.dumps(snapshot("n1")) + json.dumps(snapshot("n2")))[0] == 400
    assert extender.post("/bind", "{}")[0] == 404
    # Refused when it is announced.
    connection = http.client.HTTPConnection("127.0.0.1", extender.port, timeout=PATIENCE_S)
    connection.putrequest("POST", "/filter")
    connection.putheader("Content-Length", str(17 << 20))
    connection.endheaders()
    assert connection.getresponse().status == 413
    assert extender.health() == {"hosts": 0, "assumed_pods": 0, "snapshots": []}


def test_a_host_that_sends_too_often_is_refused(build: Path) -> None:
    extender = Extender(build, pause_s=3600)
    try:
        extender.push(snapshot("n1"), snapshot("n2"))
        status, answer = extender.post("/snapshots", snapshot("n1"))
        assert status == 429, answer
        assert "host n1 sends snapshots too often" in extender.log()
        assert extender.health()["hosts"] == 2
    finally:
        extender.stop()


def test_health_names_the_hosts(extender: Extender) -> None:
    extender.push(snapshot("n1"), snapshot("n2"))
    health = extender.health()
    assert health["hosts"] == 2
    assert [it["host"] for it in health["snapshots"]] == ["n1", "n2"]
    assert all(0 <= it["age_s"] < PATIENCE_S for it in health["snapshots"])


def test_failures_are_logged_once_a_minute(extender: Extender) -> None:
    for _ in range(20):
        extender.post("/snapshots", "{\x1b")
    assert extender.post("/bind", "{}")[0] == 404
    assert extender.post("/filter", "[]")[0] == 200
    lines = extender.log().splitlines()
    assert len(lines) == 3, lines
    assert all(line.startswith("berthctl: warning: 127.0.0.1:") for line in lines), lines
    assert "the snapshot is refused: " in lines[0]
    assert "the request is refused: /bind" in lines[1]
    assert "the scheduler's question cannot be read: " in lines[2]
    assert not [letter for letter in "".join(lines) if letter < " "], lines
