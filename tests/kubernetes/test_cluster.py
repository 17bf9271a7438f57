# SPDX-License-Identifier: Apache-2.0
"""berth-kube beside the real API server and the real scheduler."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent import Agent
from cluster import Cluster
from fakehost import FakeHost
from waiting import until

MERGE = "application/merge-patch+json"
NODES = ["n1", "n2", "n3"]


def test_growth_releases_a_pod_that_waits(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    cluster.add_node("n1")
    cluster.start_scheduler()
    agent = agent_of("n1")
    agent.say(cpu=2)
    agent.start()
    until(lambda: cluster.amount("n1") == "2k", "be-cpu")
    assert cluster.amount("n1", "be-memory") == "2Gi" or cluster.amount("n1", "be-memory") == str(2 << 30)
    cluster.add_pod("small", {"berth.org/be-cpu": "1500", "berth.org/be-memory": "1Gi"})
    until(lambda: cluster.place("small") == "n1", "small pod")
    cluster.add_pod("large", {"berth.org/be-cpu": "3000"})
    until(lambda: cluster.is_refused("large"), "refusal")
    agent.say(cpu=6)
    until(lambda: cluster.place("large") == "n1", "large pod")
    # Less than is in use is accepted, and nothing ends.
    agent.say(cpu=1)
    until(lambda: cluster.amount("n1") == "1k", "less")
    cluster.add_pod("late", {"berth.org/be-cpu": "500"})
    until(lambda: cluster.is_refused("late"), "refusal")
    assert cluster.place("small") == "n1"


def test_the_taint_diverts_pods(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    for node in ("n1", "n2"):
        cluster.add_node(node)
    cluster.good("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "other", "effect": "PreferNoSchedule"}]}}, MERGE)
    cluster.start_scheduler()
    agent = agent_of("n1")
    agent.say(state="no-schedule")
    agent.start()
    until(lambda: cluster.taint("n1") == "cpu", "taint")
    for number in range(6):
        cluster.add_pod(f"p{number}")
        until(lambda number=number: cluster.place(f"p{number}") == "n2", "pod")
    agent.say(state="schedule")
    until(lambda: cluster.taint("n1") is None, "end of the taint")
    assert [taint["key"] for taint in cluster.node("n1")["spec"]["taints"]] == ["other"]
    agent.say(state="no-schedule")
    until(lambda: cluster.taint("n1") == "cpu", "taint")
    assert agent.stop() == 0
    assert cluster.taint("n1") is None and cluster.amount("n1") is None
    assert [taint["key"] for taint in cluster.node("n1")["spec"]["taints"]] == ["other"]


def test_a_node_that_was_made_anew_is_published_to(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    agent = agent_of("n1")
    agent.say(cpu=3, state="no-schedule")
    agent.start()
    # It comes before the node.
    agent.says("is the node registered")
    cluster.add_node("n1")
    until(lambda: cluster.amount("n1") == "3k" and cluster.taint("n1") == "cpu", "publication")
    cluster.good("DELETE", "/api/v1/nodes/n1")
    cluster.add_node("n1")
    until(lambda: cluster.amount("n1") == "3k" and cluster.taint("n1") == "cpu", "publication to the new object")


def test_an_api_server_that_starts_again(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    cluster.add_node("n1")
    agent = agent_of("n1")
    agent.say(cpu=3)
    agent.start()
    until(lambda: cluster.amount("n1") == "3k", "publication")
    cluster.end("kube-apiserver")
    agent.say(cpu=5)
    agent.says("cannot publish")
    cluster.start_apiserver()
    until(lambda: cluster.amount("n1") == "5k", "publication after the return")
    agent.says("published again after")


def test_an_agent_has_its_own_node_alone(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    for node in ("n1", "n2"):
        cluster.add_node(node)
    before = cluster.node("n2")
    # The account of n1 for the node n2. The policy works some moments after it was made.
    agent = agent_of("n2", account="n1")
    agent.say(cpu=3, state="no-schedule")

    def refused() -> bool:
        done = agent.once()
        return done.returncode == 1 and "berth-kube may change its own node alone" in done.stderr

    until(refused, "refusal by the policy")
    after = cluster.node("n2")
    if after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]:
        assert after == before
    token = cluster.node_token("n1")

    def may(path: str, patch: dict[str, object], method: str = "PATCH") -> int:
        return cluster.request(method, path, patch, MERGE, token)[0]

    own = "/api/v1/nodes/n1"
    assert may(own, {"spec": {"taints": [{"key": "berth.org/no-schedule", "value": "cpu", "effect": "NoSchedule"}]}}) == 200
    # Nothing but its own members, and no other verb or resource.
    assert may(own, {"spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}}) == 422
    assert may(own, {"spec": {"unschedulable": True}}) == 422
    # With this effect, its own taint would evict every pod of the node.
    for effect in ("NoExecute", "PreferNoSchedule"):
        assert may(own, {"spec": {"taints": [{"key": "berth.org/no-schedule", "value": "cpu", "effect": effect}]}}) == 422, effect
    assert may(f"{own}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}) == 422
    forbidden: list[tuple[str, dict[str, object]]] = [
        (own, {"spec": {"providerID": "other"}}),
        (own, {"spec": {"podCIDR": "10.9.0.0/24"}}),
        # Labels that even a kubelet may not set, and what other agents believe of annotations.
        (own, {"metadata": {"labels": {"node-restriction.kubernetes.io/secret": "yes"}}}),
        (f"{own}/status", {"metadata": {"labels": {"node-restriction.kubernetes.io/secret": "yes"}}}),
        (own, {"metadata": {"annotations": {"flannel.alpha.coreos.com/public-ip": "10.9.9.9"}}}),
        # An owner that does not exist has the node deleted, and a finalizer keeps it.
        (own, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}),
        (own, {"metadata": {"finalizers": ["example.org/forever"]}}),
        # The API server would speak to another machine.
        (f"{own}/status", {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}}),
        (f"{own}/status", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 9999}}}}),
        (f"{own}/status", {"status": {"capacity": {"nvidia.com/gpu": "8"}}}),
        (f"{own}/status", {"status": {"allocatable": {"nvidia.com/gpu": "8"}}}),
        (f"{own}/status", {"status": {"allocatable": {"cpu": "1"}}}),
    ]
    for path, patch in forbidden:
        assert may(path, patch) == 422, patch
    amounts = {"berth.org/be-cpu": "3000", "berth.org/be-memory": "1Gi"}
    assert may(f"{own}/status", {"status": {"capacity": amounts, "allocatable": amounts}}) == 200
    assert may(f"{own}/status", {"status": {"capacity": dict.fromkeys(amounts), "allocatable": dict.fromkeys(amounts)}}) == 200
    assert may(own, {}, "DELETE") == 403
    assert cluster.request("GET", own, token=token)[0] == 403
    assert cluster.request("GET", "/api/v1/secrets", token=token)[0] == 403
    assert cluster.request("DELETE", "/api/v1/namespaces/default/pods/any", token=token)[0] == 403


def test_a_client_certificate_does_as_well(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    cluster.add_node("n1")
    agent = agent_of("n1")
    certificate, key = cluster.authority.issue("agent", "/O=berth-kube/CN=berth-kube:n1")
    lines = [line for line in agent.config.read_text().splitlines() if not line.startswith("token")]
    agent.config.write_text("\n".join([*lines, f'certificate = "{certificate}"', f'key = "{key}"']))
    agent.say(cpu=3)
    assert agent.once().returncode == 0
    assert cluster.amount("n1") == "3k"
    # An expired one is refused.
    cluster.authority.issue("agent", "/O=berth-kube/CN=berth-kube:n1", days=-1)
    done = agent.once()
    assert done.returncode == 1 and ("refused" in done.stderr or "certificate" in done.stderr), done.stderr


@pytest.fixture
def hosts(cluster: Cluster, agent_of: Callable[..., Agent], build: Path, tmp_path: Path) -> Iterator[dict[str, tuple[FakeHost, Agent]]]:
    """Three real berthd, each on a host that is made of files, and their berth-kube."""
    made = {}
    for node in NODES:
        cluster.add_node(node)
        agent = agent_of(node, "--max-age", "5")
        host = FakeHost(tmp_path / f"host-{node}", agent.state_file.parent)
        host.start(build / "daemon/berthd")
        agent.start()
        made[node] = (host, agent)
    yield made
    for host, _ in made.values():
        host.stop(signal.SIGKILL)


def test_three_berthd_steer_the_scheduler(cluster: Cluster, hosts: dict[str, tuple[FakeHost, Agent]], build: Path) -> None:
    cluster.start_scheduler()
    until(lambda: [cluster.amount(node) for node in NODES] == ["8k", "8k", "8k"], "publication of empty hosts")
    # Hosts without memory take no work.
    for node in ("n1", "n3"):
        hosts[node][0].use_memory(0.97)
    until(lambda: cluster.taint("n1") == "memory" and cluster.taint("n3") == "memory", "taints")
    cluster.add_pod("first", {"berth.org/be-cpu": "4000"})
    until(lambda: cluster.place("first") == "n2", "pod")
    hosts["n2"][0].use_memory(0.97)
    until(lambda: cluster.taint("n2") == "memory", "taint")
    cluster.add_pod("second", {"berth.org/be-cpu": "4000"})
    until(lambda: cluster.is_refused("second"), "refusal")
    hosts["n1"][0].use_memory(0.3)
    until(lambda: cluster.place("second") == "n1", "pod")
    # A latency-sensitive workload comes: less is left for best-effort work.
    hosts["n1"][0].add_group("web/a.service")
    until(lambda: cluster.amount("n1") == "5k", "less for best-effort work")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP], ids=["stopped", "killed", "hung"])
def test_an_ended_berthd_is_silent(cluster: Cluster, hosts: dict[str, tuple[FakeHost, Agent]], build: Path, number: signal.Signals) -> None:
    host = hosts["n1"][0]
    host.use_memory(0.97)
    until(lambda: cluster.taint("n1") == "memory" and cluster.amount("n1") == "8k", "publication")
    assert host.process is not None
    host.process.send_signal(number)
    until(lambda: cluster.amount("n1") == "0" and cluster.taint("n1") is None, "silence")
    until(lambda: cluster.amount("n2") == "8k", "the other host's amount")
    if number == signal.SIGSTOP:
        host.process.send_signal(signal.SIGCONT)
    else:
        host.process.wait()
        host.start(build / "daemon/berthd")
    until(lambda: cluster.taint("n1") == "memory" and cluster.amount("n1") == "8k", "berthd's return")
