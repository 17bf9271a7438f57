# SPDX-License-Identifier: Apache-2.0
"""Pods that berth ends, and pods that should run elsewhere, beside the real API server and the real scheduler."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent import Agent
from berthstate import GIB, departure
from cluster import Cluster
from fakehost import EVICTING, FakeHost
from waiting import PATIENCE_S, until

MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
# Beside rules for other cgroups alone, berthd leaves pods alone.
PODS_COUNT = """
[[workload]]
match = "kubepods/**"
"""
EVENTS = "/api/v1/namespaces/default/events"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def uid_of(cluster: Cluster, pod: str) -> str:
    return str(cluster.good("GET", f"{PODS}/{pod}")["metadata"]["uid"])


def workload_of(cluster: Cluster, pod: str) -> str:
    """The group of its container, as kubelet and containerd make it."""
    uid = uid_of(cluster, pod).replace("-", "_")
    return f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice/cri-containerd-0123456789ab.scope"


def events_of(cluster: Cluster, uid: str) -> list[dict[str, Any]]:
    """Those of berth-kube; the scheduler makes some, too."""
    return list(cluster.good("GET", f"{EVENTS}?fieldSelector=source%3Dberth-kube,involvedObject.uid%3D{uid}")["items"])


def is_gone(cluster: Cluster, pod: str) -> bool:
    return cluster.request("GET", f"{PODS}/{pod}")[0] == 404


@pytest.fixture
def eviction_right(cluster: Cluster) -> Iterator[Callable[[], None]]:
    """Gives berth-kube the right to evict pods of the namespace, as docs/clusters.md says."""

    def give() -> None:
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:berth-kube"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "berth-kube-evict"}
        cluster.good("POST", BINDINGS, {"metadata": {"name": "berth-kube-evict"}, "roleRef": role, "subjects": [subject]})

    yield give
    cluster.request("DELETE", f"{BINDINGS}/berth-kube-evict")


def test_an_eviction_is_an_event_of_the_pod(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    cluster.add_node("n1")
    # More than a part of the list has room for.
    cluster.many(lambda number: cluster.add_pod(f"p{number}", nodeName="n1"), range(120))
    first, second = workload_of(cluster, "p7"), workload_of(cluster, "p119")
    uid = uid_of(cluster, "p7")
    ended = departure(first, reason="the host lacks 0.8 GiB")
    agent = agent_of("n1")
    agent.say(departures=[ended, departure("system.slice/batch.service")])
    agent.start()
    until(lambda: events_of(cluster, uid), "event")
    event = events_of(cluster, uid)[0]
    assert event["reason"] == "EvictedByBerth" and event["type"] == "Warning"
    assert event["message"] == f"berth ends {first} (d-1): the host lacks 0.8 GiB"
    assert event["involvedObject"]["name"] == "p7" and event["source"] == {"component": "berth-kube", "host": "n1"}
    # berth-kube starts again, and tells only of the new one.
    assert agent.stop() == 0
    agent.say(departures=[departure(second, decision="d-2"), ended])
    agent.start()
    until(lambda: events_of(cluster, uid_of(cluster, "p119")), "second event")
    assert len(events_of(cluster, uid)) == 1
    assert cluster.places()["n1"] == 120


def test_a_pod_that_a_real_berthd_ends(cluster: Cluster, agent_of: Callable[..., Agent], build: Path, tmp_path: Path) -> None:
    cluster.add_node("n1")
    cluster.add_pod("batch", nodeName="n1")
    uid = uid_of(cluster, "batch")
    agent = agent_of("n1")
    host = FakeHost(tmp_path / "host", agent.state_file.parent)
    container = subprocess.Popen(["sleep", "infinity"])
    try:
        files = {"cgroup_procs": str(container.pid), "cgroup_kill": "", "memory_current": str(GIB)}
        host.add_group(f"kubepods/besteffort/pod{uid}/{'0123456789abcdef' * 4}", **files)
        host.use_memory(1)
        host.start(build / "daemon/berthd", EVICTING + PODS_COUNT)
        assert container.wait(PATIENCE_S) == -signal.SIGTERM
        agent.start()
        until(lambda: events_of(cluster, uid), "event")
        event = events_of(cluster, uid)[0]
        assert event["reason"] == "EvictedByBerth" and event["message"].startswith(f"berth ends kubepods/besteffort/pod{uid}/")
    finally:
        container.kill()
        host.stop(signal.SIGKILL)


def test_a_pod_that_should_run_elsewhere_is_placed_elsewhere(
    cluster: Cluster, agent_of: Callable[..., Agent], eviction_right: Callable[[], None]
) -> None:
    amounts = {"berth.org/be-cpu": "8000"}
    cluster.add_node("n1")
    cluster.start_scheduler()
    agent = agent_of("n1", "--relocate", "evict", "--relocate-after", "1")
    agent.say()
    agent.start()
    cluster.add_pod("task", {"berth.org/be-cpu": "4000"}, terminationGracePeriodSeconds=0)
    until(lambda: cluster.place("task") == "n1", "pod")
    uid = uid_of(cluster, "task")
    late = departure(workload_of(cluster, "task"), "relocate", wanted=True, reason="this node lacks 2.00 cores that it needs to finish in time")
    agent.say(state="no-schedule", departures=[late])
    until(lambda: events_of(cluster, uid), "event")
    assert events_of(cluster, uid)[0]["reason"] == "RelocationNeeded"
    # Without the right nothing happens, and berth-kube says which right.
    until(
        lambda: agent.writes(state="no-schedule", departures=[late]) and agent.has_said("create rolebinding berth-kube-evict"),
        "the missing right",
    )
    agent.says("to evict pods of this namespace: kubectl -n default create rolebinding berth-kube-evict")
    assert cluster.place("task") == "n1"
    eviction_right()
    until(lambda: agent.writes(state="no-schedule", departures=[late]) and is_gone(cluster, "task"), "eviction")
    agent.says("evicted the pod default/task")
    # Its controller, which does not run here, makes it again.
    cluster.add_node("n2", extended=amounts)
    cluster.add_pod("task", {"berth.org/be-cpu": "4000"})
    until(lambda: cluster.place("task") == "n2", "pod on the other node")
    # The departure is still told, but the pod of that name is another one.
    agent.say(cpu=7, departures=[late])
    until(lambda: cluster.amount("n1") == "7k", "publication")
    assert cluster.place("task") == "n2"


def test_a_pod_that_a_real_berthd_cannot_help_is_evicted(
    cluster: Cluster, agent_of: Callable[..., Agent], eviction_right: Callable[[], None], build: Path, tmp_path: Path
) -> None:
    """From a straggler that this host is too small for to the Eviction API."""
    cluster.add_node("n1")
    cluster.add_pod("task", nodeName="n1", terminationGracePeriodSeconds=0)
    uid = uid_of(cluster, "task")
    eviction_right()
    agent = agent_of("n1", "--relocate", "evict", "--relocate-after", "1")
    host = FakeHost(tmp_path / "host", agent.state_file.parent)
    progress = tmp_path / "progress"
    late = f"""
[[workload]]
match = "kubepods/*/*/*"
class = "latency-sensitive"
isolation = "vcpus"
vcpus = 2
deadline = "30s"
progress = {{file = "{progress}"}}
"""
    container = subprocess.Popen(["sleep", "infinity"])
    done = 0.0

    def reports_and_is_gone() -> bool:
        nonlocal done
        done += 1e-5
        fresh = progress.with_suffix(".new")
        fresh.write_text(f"{done:.6f}\n")
        fresh.rename(progress)
        return is_gone(cluster, "task")

    try:
        host.add_group(f"kubepods/besteffort/pod{uid}/{'0123456789abcdef' * 4}", cgroup_procs=str(container.pid))
        host.start(build / "daemon/berthd", late)
        agent.start()
        until(reports_and_is_gone, "eviction")
        agent.says("evicted the pod default/task")
        event = events_of(cluster, uid)[0]
        assert event["reason"] == "RelocationNeeded" and "to finish in time" in event["message"], event
    finally:
        container.kill()
        host.stop(signal.SIGKILL)


def test_a_disruption_budget_is_heeded(cluster: Cluster, agent_of: Callable[..., Agent], eviction_right: Callable[[], None]) -> None:
    cluster.add_node("n1")
    container = {"name": "c", "image": "none"}
    spec = {"nodeName": "n1", "terminationGracePeriodSeconds": 0, "containers": [container]}
    cluster.good("POST", PODS, {"metadata": {"name": "task", "labels": {"app": "task"}}, "spec": spec})
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.good("PATCH", f"{PODS}/task/status", {"status": running}, MERGE)
    budget = {"metadata": {"name": "task"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "task"}}}}
    cluster.good("POST", BUDGETS, budget)
    eviction_right()
    try:
        counts = {"observedGeneration": 1, "expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}
        cluster.good("PATCH", f"{BUDGETS}/task/status", {"status": counts}, MERGE)
        agent = agent_of("n1", "--relocate", "evict", "--relocate-after", "0")
        late = departure(workload_of(cluster, "task"), "relocate", wanted=True)
        agent.say(departures=[late])
        agent.start()
        until(lambda: agent.writes(departures=[late]) and agent.has_said("violate the pod's disruption budget"), "refusal")
        assert not is_gone(cluster, "task")
        cluster.good("PATCH", f"{BUDGETS}/task/status", {"status": {"desiredHealthy": 0, "disruptionsAllowed": 1}}, MERGE)
        until(lambda: agent.writes(departures=[late]) and is_gone(cluster, "task"), "eviction")
    finally:
        cluster.good("DELETE", f"{BUDGETS}/task")


def test_an_agent_speaks_for_its_own_node_alone(cluster: Cluster) -> None:
    token = cluster.node_token("n1")
    cluster.add_node("n1")
    cluster.add_pod("p", nodeName="n1")
    uid = uid_of(cluster, "p")

    def status(name: str, host: str = "n1", kind: str = "Pod", component: str = "berth-kube") -> int:
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": kind, "namespace": "default", "name": "p", "uid": uid},
            "reason": "EvictedByBerth",
            "type": "Warning",
            "source": {"component": component, "host": host},
        }
        return cluster.request("POST", EVENTS, body, token=token)[0]

    # The policy works some moments after it was made.
    numbers = iter(range(1000))
    until(lambda: status(f"other-{next(numbers)}", host="n2") == 422, "refusal by the policy")
    assert status("good") == 201
    assert status("kind", kind="ReplicaSet") == 422
    assert status("component", component="kubelet") == 422
    assert cluster.request("DELETE", f"{EVENTS}/good", token=token)[0] == 403
    # No right to evict without a binding in the namespace.
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"}}
    assert cluster.request("POST", f"{PODS}/p/eviction", body, token=token)[0] == 403


def test_a_berth_kube_without_these_rights_publishes(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    cluster.add_node("n1")
    cluster.add_pod("p", nodeName="n1")
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth-kube-pods"
    before = cluster.good("GET", binding)
    cluster.good("DELETE", binding)
    try:
        agent = agent_of("n1")
        agent.say(cpu=3, departures=[departure(workload_of(cluster, "p"))])
        agent.start()
        agent.says("to list pods, see the manifest rbac-pods.yaml")
        agent.say(cpu=4)
        until(lambda: cluster.amount("n1") == "4k", "publication")
        assert agent.stop(signal.SIGTERM) == 0
    finally:
        del before["metadata"]["resourceVersion"], before["metadata"]["uid"]
        cluster.good("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", before)
