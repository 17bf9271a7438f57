# SPDX-License-Identifier: Apache-2.0
"""The real kube-scheduler over simulated hosts: a day of a fleet, stock and with berth."""

from __future__ import annotations

import http.client
import json
import queue
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster import ADMIN, Cluster
from extender import Extender
from waiting import PATIENCE_S, until

PODS = "/api/v1/namespaces/default/pods"
HOST_CPUS = 32
HOST_MEMORY = "128Gi"
TAINT = "berth.org/no-schedule"
# Seconds until a pod counts as refused for which a node was to be made free.
NOMINATED_S = 20.0
# Seconds that a step takes here at most for each host, on two cores.
HOST_STEP_S = 0.008
# Before a watch that ended goes on.
RECONNECT_S = 0.1
# Jobs that the scheduler is asked about at a time.
GROUP = 16


@dataclass
class Way:
    """One way to run the fleet."""

    name: str
    berth: bool = False
    extender: bool = False
    overcommit: float = 1.0  # of the nodes' CPU, without berth


@dataclass
class Options:
    hosts: int = 100
    hours: float = 24
    seed: int = 1
    step_s: int = 300
    services: float = 0.5
    jobs: float = 0.6
    measure_every: int = 6
    count_from: float = 0  # hours
    clients: int = 6


@dataclass
class Result:
    way: Way
    figures: dict[str, Any]
    wall_s: float
    asked: int  # pods that the scheduler was asked about
    patches: int  # of nodes
    step_s: float
    waited: dict[str, float] = field(default_factory=dict)  # seconds, by what was waited for


class Requests:
    """Requests over connections that stay, one for each thread."""

    def __init__(self, cluster: Cluster, threads: int) -> None:
        self.cluster = cluster
        self.pool = ThreadPoolExecutor(threads)
        self.local = threading.local()

    def one(self, method: str, path: str, body: Any = None, kind: str = "application/json", allowed: tuple[int, ...] = ()) -> None:
        text = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind}
        for attempt in range(3):
            connection = getattr(self.local, "connection", None)
            if connection is None:
                connection = http.client.HTTPSConnection("127.0.0.1", self.cluster.port, context=self.cluster.context, timeout=60)
                self.local.connection = connection
            try:
                connection.request(method, path, text, headers)
                answer = connection.getresponse()
                said = answer.read()
            except (OSError, http.client.HTTPException):
                self.local.connection = None
                connection.close()
                if attempt == 2:
                    raise
                continue
            # An attempt that was cut off may have been carried out.
            if 200 <= answer.status <= 299 or answer.status in allowed or (attempt > 0 and answer.status in (404, 409)):
                return
            raise AssertionError(f"{method} {path}: {answer.status} {said[:300]!r}")

    def many(self, calls: list[tuple[Any, ...]]) -> None:
        for done in [self.pool.submit(self.one, *call) for call in calls]:
            done.result()


class Watch:
    """What the API server says of pods, as it happens."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.events: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue()
        self.is_over = False  # the next event ends it
        self.version = cluster.good("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """The API server ends a watch whose reader is slow for a moment. It goes on where it ended."""
        try:
            while self._read_one():
                pass
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass
        finally:
            self.events.put(None)

    def _read_one(self) -> bool:
        """False when nothing more comes."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.cluster.port, context=self.cluster.context, timeout=PATIENCE_S * 30)
        path = f"{PODS}?watch=1&resourceVersion={self.version}&timeoutSeconds=86400"
        connection.request("GET", path, headers={"Authorization": f"Bearer {ADMIN}"})
        answer = connection.getresponse()
        if answer.status != 200:
            self.events.put(("ERROR", json.loads(answer.read())))
            return False
        while not self.is_over and (line := answer.readline()):
            event = json.loads(line)
            self.events.put((event["type"], event["object"]))
            if event["type"] == "ERROR":
                return False
            self.version = event["object"]["metadata"]["resourceVersion"]
        connection.close()
        time.sleep(RECONNECT_S)
        return not self.is_over

    def next(self, patience_s: float = PATIENCE_S) -> tuple[str, dict[str, Any]]:
        """Error: queue.Empty if nothing happens for so long."""
        event = self.events.get(timeout=patience_s)
        assert event is not None and event[0] != "ERROR", f"the watch of pods ended: {event}"
        return event


def covers(pod: dict[str, Any], refused: dict[str, Any]) -> bool:
    """The pod needs no less than the refused one."""
    return bool(pod["cores"] >= refused["cores"] and pod["memory_bytes"] >= refused["memory_bytes"])


class Fleet:
    def __init__(self, cluster: Cluster, build: Path, way: Way, options: Options, scratch: Path) -> None:
        self.cluster, self.way, self.options = cluster, way, options
        self.requests = Requests(cluster, options.clients)
        self.snapshots = scratch / "snapshots"
        # Steps last seconds here, and minutes in the simulation. A placed pod counts for a step: the next one's snapshots show it.
        hold_s = max(1, round(options.hosts * HOST_STEP_S))
        self.extender = Extender(build, "--max-age", "86400", "--hold", str(hold_s)) if way.extender else None
        words = [str(build / "tests/fleet/fleet-simulation")]
        settings: dict[str, Any] = {"hosts": options.hosts, "seed": options.seed, "step": options.step_s, "services": options.services, "jobs": options.jobs}
        settings |= {"measure-every": options.measure_every, "count-from": options.count_from, "berth": int(way.berth)}
        if self.extender:
            settings["snapshots"] = self.snapshots
        for name, value in settings.items():
            words += [f"--{name}", str(value)]
        self.simulation = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.watch: Watch | None = None
        self.running: set[str] = set()  # pods that are bound
        # Of this step: node and UID by pod, and pods that are still in the cluster.
        self.bound: dict[str, list[str]] = {}
        self.refused: set[str] = set()
        self.gone: list[str] = []  # pods that the scheduler preempted; the next answers name them
        self.closed: dict[str, str] = {}  # the taint, by node
        self.asked = self.patches = 0
        self.waited: Counter[str] = Counter()

    def _simulate(self, answers: dict[str, Any] | None) -> dict[str, Any]:
        assert self.simulation.stdin and self.simulation.stdout
        if answers is None:
            self.simulation.stdin.close()
        else:
            self.simulation.stdin.write(json.dumps(answers) + "\n")
            self.simulation.stdin.flush()
        line = self.simulation.stdout.readline()
        assert line, "the simulation ended"
        return dict(json.loads(line))

    def _make_nodes(self) -> None:
        cpu = str(round(HOST_CPUS * self.way.overcommit))
        amounts = {"cpu": cpu, "memory": HOST_MEMORY, "pods": "250"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        calls: list[tuple[Any, ...]] = []
        for number in range(self.options.hosts):
            name = f"n{number:04}"
            calls.append(("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "status": status}))
        self.requests.many(calls)
        made = {"metadata": {"name": "services"}, "value": 1000}
        self.requests.one("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", made, allowed=(409,))

    def _body(self, pod: dict[str, Any]) -> dict[str, Any]:
        memory = str(pod["memory_bytes"])
        if pod["latency_sensitive"]:
            amounts = {"cpu": str(pod["cores"]), "memory": memory}
            resources: dict[str, Any] = {"requests": amounts, "limits": amounts}
        elif self.way.berth:
            amounts = {"berth.org/be-cpu": str(1000 * pod["cores"]), "berth.org/be-memory": memory}
            resources = {"requests": amounts, "limits": amounts}
        else:
            resources = {"requests": {"cpu": str(pod["cores"]), "memory": memory}}
        # No kubelet ends a pod, so it goes at once.
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "none", "resources": resources}], "terminationGracePeriodSeconds": 0}
        if pod["latency_sensitive"]:
            spec["priorityClassName"] = "services"
        return {"metadata": {"name": pod["name"]}, "spec": spec}

    def _patch_nodes(self, changes: list[dict[str, Any]]) -> None:
        calls: list[tuple[Any, ...]] = []
        for change in changes:
            path, kind = f"/api/v1/nodes/{change['node']}", "application/merge-patch+json"
            calls.append(("PATCH", f"{path}/status", change["status"], kind))
            closed = self.closed.get(change["node"], "")
            if change["closed"] != closed:
                taints = [{"key": TAINT, "value": change["closed"], "effect": "NoSchedule"}] if change["closed"] else []
                calls.append(("PATCH", path, {"spec": {"taints": taints}}, kind))
                self.closed[change["node"]] = change["closed"]
        self.patches += len(calls)
        self.requests.many(calls)

    def _push_snapshots(self) -> None:
        if not self.extender:
            return
        with self.snapshots.open() as lines:
            for line in lines:
                status, answer = self.extender.post("/snapshots", line)
                assert status == 200, answer

    def place(self, pods: list[dict[str, Any]]) -> dict[str, Any]:
        """Asks the scheduler about each pod: all services first, then the jobs in their order, in groups. Nothing becomes free meanwhile, so a job
        that needs no less than one that was just refused would be refused, too. The scheduler is not asked about it."""
        jobs = [pod for pod in pods if not pod["latency_sensitive"]]
        groups = [[pod for pod in pods if pod["latency_sensitive"]], *(jobs[at : at + GROUP] for at in range(0, len(jobs), GROUP))]
        refused: list[dict[str, Any]] = []  # jobs
        for group in groups:
            asked = [pod for pod in group if not any(covers(pod, other) for other in refused)]
            self.requests.many([("POST", PODS, self._body(pod)) for pod in asked])
            self.asked += len(asked)
            self._settle({pod["name"] for pod in asked}, set())
            if group is not groups[0]:
                refused += [pod for pod in asked if pod["name"] in self.refused]
        return {"bound": self.bound, "gone": self.gone}

    def _settle(self, created: set[str], removed: set[str]) -> None:
        """Waits until the scheduler has bound or refused each pod that was created, and the others are gone."""
        assert self.watch
        open_pods, open_removals = set(created), set(removed)
        nominated: set[str] = set()
        while open_pods or open_removals:
            only_nominated = not open_removals and open_pods <= nominated
            try:
                kind, pod = self.watch.next(NOMINATED_S if only_nominated else PATIENCE_S)
            except queue.Empty:
                assert only_nominated, f"the scheduler says nothing of {sorted(open_pods | open_removals)[:5]}"
                self.refused |= open_pods
                break
            name = pod["metadata"]["name"]
            if kind == "DELETED":
                open_removals.discard(name)
                open_pods.discard(name)
                if name in self.running:
                    # The scheduler preempted it. A pod of this very step just waits again.
                    self.running.discard(name)
                    if self.bound.pop(name, None) is None:
                        self.gone.append(name)
                continue
            if name not in open_pods and name not in self.refused:
                continue
            if node := pod["spec"].get("nodeName"):
                self.bound[name] = [node, pod["metadata"]["uid"]]
                self.running.add(name)
                self.refused.discard(name)
                open_pods.discard(name)
                continue
            conditions = pod["status"].get("conditions", [])
            if any(it["type"] == "PodScheduled" and it["status"] == "False" for it in conditions):
                # A node is made free for a nominated pod, and it is bound soon.
                if pod["status"].get("nominatedNodeName"):
                    nominated.add(name)
                else:
                    nominated.discard(name)
                    open_pods.discard(name)
                    self.refused.add(name)

    def begin(self) -> None:
        self._make_nodes()
        self.watch = Watch(self.cluster)
        self.cluster.start_scheduler(self.extender.url if self.extender else None, fast=True)

    def run(self) -> Result:
        began = time.monotonic()
        self.begin()
        orders = self._simulate({})
        for _ in range(round(self.options.hours * 3600 / self.options.step_s)):
            at = time.monotonic()
            removed = set(orders["remove"])
            self.running -= removed
            # Refused pods go first, so that they do not take what becomes free. A pod of the same name may come again.
            names = [*self.refused, *removed]
            self.bound, self.refused = {}, set()
            self.requests.many([("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0", None, "application/json", (404,)) for name in names])
            self._patch_nodes(orders["nodes"])
            self._push_snapshots()
            self._settle(set(), set(names))
            at = self._count("nodes and removals", at)
            answers = self.place(orders["create"])
            at = self._count("the scheduler", at)
            orders = self._simulate(answers)
            self.gone = []
            self._count("the simulation", at)
        return Result(self.way, self._simulate(None), time.monotonic() - began, self.asked, self.patches, self.options.step_s, dict(self.waited))

    def _count(self, what: str, since: float) -> float:
        now = time.monotonic()
        self.waited[what] += now - since
        return now

    def stop(self) -> None:
        self.simulation.kill()
        self.simulation.wait()
        if self.extender:
            self.extender.stop()
        self.requests.pool.shutdown()
        self.cluster.end("kube-scheduler")
        if self.watch:
            self.watch.is_over = True
        self._clear()

    def _clear(self) -> None:
        self.cluster.good("DELETE", f"{PODS}?gracePeriodSeconds=0")
        until(lambda: not self.cluster.good("GET", f"{PODS}?limit=1")["items"], "empty namespace")
        self.cluster.good("DELETE", "/api/v1/nodes")


def run(cluster: Cluster, build: Path, way: Way, options: Options, scratch: Path) -> Result:
    fleet = Fleet(cluster, build, way, options, scratch)
    try:
        return fleet.run()
    finally:
        fleet.stop()


def ratio(a: float, b: float) -> float:
    return a / b if b else float("nan")


def measured(result: Result) -> list[tuple[str, dict[str, float]]]:
    """The measured interference: of the way, and without pins and with the jobs at idle priority. Each has the end of its rows' names."""
    return [("", result.figures["interference"]), (", jobs idle anywhere", result.figures["idle_anywhere"])]


def extra_cpu(result: Result, found: dict[str, float]) -> float:
    return ratio(found["service_cores"], result.figures["service_cores_alone"]) - 1


def kept(result: Result) -> float:
    """Cores that jobs used and that no eviction threw away, mean a host."""
    it = result.figures
    return ratio(it["job_core_s"] - it["lost_core_s"], it["host_steps"] * result.step_s)


def capacity(result: Result, found: dict[str, float]) -> float:
    """The work that was done on these, in cores that a job has without neighbours."""
    return kept(result) * ratio(found["job_work"], result.figures["job_cores"])


def shortages(result: Result) -> float:
    return ratio(result.figures["short_of_cpu"] + result.figures["short_of_memory"], result.figures["host_steps"])


def evictions(result: Result) -> float:
    return float(result.figures["evicted_for_room"] + result.figures["evicted_for_memory"])


def rows(result: Result) -> list[tuple[str, float, str]]:
    """The figures of one way: name, value, format."""
    it = result.figures
    steps = it["host_steps"]
    hours = 3600.0
    out = []
    for end, found in measured(result):
        out += [
            ("violations: services whose p99 is above 1.5 times that alone" + end, found["violations"], "{:.2%}"),
            ("p99 of services over that alone, median" + end, found["p99"], "{:.2f}"),
            ("extra CPU of services, share of their own" + end, extra_cpu(result, found), "{:.2%}"),
            ("capacity: work of jobs that is kept, in cores without neighbours, mean a host" + end, capacity(result, found), "{:.2f}"),
        ]
    return [
        *out,
        ("services, pods that came", it["services"], "{:.0f}"),
        ("services rejected", it["services_rejected"], "{:.0f}"),
        ("jobs that came", it["jobs"], "{:.0f}"),
        ("jobs rejected", it["jobs_rejected"], "{:.0f}"),
        ("jobs finished", it["jobs_finished"], "{:.0f}"),
        ("jobs late", it["jobs_late"], "{:.0f}"),
        ("evictions, by the scheduler for services", it["evicted_for_room"], "{:.0f}"),
        ("evictions, for memory", it["evicted_for_memory"], "{:.0f}"),
        ("cores asked for by services, mean a host", ratio(it["service_asked_core_s"], steps * result.step_s), "{:.2f}"),
        ("cores asked for by running jobs, mean a host", ratio(it["job_asked_core_s"], steps * result.step_s), "{:.2f}"),
        ("cores that jobs used and kept, mean a host", kept(result), "{:.2f}"),
        ("core hours lost by evictions", it["lost_core_s"] / hours, "{:.0f}"),
        ("host-steps in which jobs get less than 95 % of their CPU", ratio(it["short_of_cpu"], steps), "{:.2%}"),
        ("host-steps with more than 95 % of the memory in use", ratio(it["short_of_memory"], steps), "{:.2%}"),
        ("host-steps in which the host takes no work", ratio(it["closed"], steps), "{:.2%}"),
        ("advertised cores, mean a host", ratio(it["advertised_cores"], steps), "{:.1f}"),
        ("be-cpu in cores, mean a host", ratio(it["be_cores"], steps), "{:.1f}"),
        ("times that the scheduler was asked", result.asked, "{:.0f}"),
        ("patches of nodes", result.patches, "{:.0f}"),
        ("time of the run in seconds", result.wall_s, "{:.0f}"),
    ]


def markdown(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def table(results: list[Result]) -> str:
    """All ways side by side, as Markdown."""
    names: list[str] = []
    cells: list[dict[str, str]] = []
    for result in results:
        made = {name: form.format(value) for name, value, form in rows(result)}
        names += [name for name in made if name not in names]
        cells.append(made)
    return markdown(["", *(result.way.name for result in results)], [[name, *(made.get(name, "") for made in cells)] for name in names])


def rival(berth: Result, stock: list[Result]) -> Result | None:
    """The stock way of most capacity among those with no more violations than berth."""
    fair = [result for result in stock if result.figures["interference"]["violations"] <= berth.figures["interference"]["violations"]]
    return max(fair, key=lambda result: capacity(result, result.figures["interference"]), default=None)


def ratios(results: list[Result]) -> str:
    """Each way with berth against each stock way, as Markdown."""
    stock = [result for result in results if not result.way.berth]
    lines = []
    for berth in results:
        if not berth.way.berth:
            continue
        chosen = rival(berth, stock)
        here = berth.figures["interference"]
        for other in stock:
            there = other.figures["interference"]
            cells = [berth.way.name, other.way.name + (" (chosen)" if other is chosen else "")]
            cells += [f"{ratio(figure(berth, here), figure(other, there)):.2f}" for figure in (extra_cpu, capacity)]
            cells += [f"{here['p99']:.2f} / {there['p99']:.2f}", f"{here['violations']:.2%} / {there['violations']:.2%}"]
            cells += [f"{evictions(berth):.0f} / {evictions(other):.0f}", f"{shortages(berth):.2%} / {shortages(other):.2%}"]
            lines.append(cells)
    head = ["berth", "/ stock", "extra CPU", "capacity", "p99", "violations", "evictions", "shortages"]
    return markdown(head, lines) if lines else ""
