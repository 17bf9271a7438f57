# SPDX-License-Identifier: Apache-2.0
"""One round: applications start one after the other, some of their executors are killed at once, and all go on to their end."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sparklib import Application, Berthd, Cluster, Groups, until

from .choose import NOTHING, POLICIES, memory_of, order_of, spark_workloads, victims_of
from .losses import Work, work_of
from .scenario import WARM_UP_STAGES, Shape

APP = Path(__file__).resolve().parent.parent / "app.py"
SERVICE = Path(__file__).resolve().parent.parent / "service.py"
# Only executors can be evicted. A killed driver loses all of its application, and no rival here is made to do that.
CONFIG = f"""[sampling]
interval = 1.0
[spark]
interval = 1.0
[[workload]]
match = "{Groups.NAME}/executor-*"
class = "best-effort"
[[workload]]
match = "{Groups.NAME}/service"
class = "latency-sensitive"
"""
# The service's latencies count from the kill for so long.
JUDGED_S = 20
# The service comes before batch work, as far as this host's scheduler lets it.
SERVICE_NICE = "-10"


@dataclass(frozen=True)
class Round:
    """One kill, and what it cost."""

    seed: int
    policies: list[str]  # the orders that choose these executors; the first one was played
    lost_s: float  # CPU seconds
    again_s: float
    failed_s: float
    useful_s: float
    killed_at_s: float  # from the start of the first application
    last_s: float  # from the kill until the last application was done
    p99_before_s: float  # the service's latency
    p99_s: float
    victims: list[str]
    freed_bytes: int
    need_bytes: int

    def as_json(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Kill:
    policies: list[str]
    victims: list[str]
    freed_bytes: int
    need_bytes: int


def resident_bytes(pids: list[int]) -> int:
    """Their share of the memory in use: forked Python workers have much in common."""
    total = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return total


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found += family(int(child))
    return found


def with_tasks(snapshot: dict) -> list[str]:
    """Applications of whose real work berthd knows some."""
    return [
        app["id"] for app in snapshot["spark_apps"] if any(stage["tasks"] and stage["id"] >= WARM_UP_STAGES for stage in app["stages"])
    ]


def p99(latencies: list[float]) -> float:
    return sorted(latencies)[math.ceil(0.99 * len(latencies)) - 1]


class Running:
    """An application of the round, and the cgroups of its executors."""

    def __init__(self, shape: Shape, application: Application, round_number: int) -> None:
        self.shape, self.application = shape, application
        self.prefix = f"executor-{round_number}-{shape.name}"
        self.names: dict[str, str] = {}  # of cgroups, by workload

    def place(self, groups: Groups) -> bool:
        """Gives each executor a cgroup of its own. False as long as the application is not ready."""
        if self.names:
            return True
        if not re.search("^ready$", self.application.out.read_text(), re.MULTILINE):
            if self.application.process.poll() is not None:
                raise RuntimeError(f"{self.application.log}: exit {self.application.process.returncode}")
            return False
        executors = self.application.executor_pids()
        if len(executors) != self.shape.executors:
            raise RuntimeError(f"{self.shape.name} has executors {sorted(executors)}, wanted {self.shape.executors}")
        for executor, pid in executors.items():
            name = f"{self.prefix}-{executor}"
            for process in family(pid):
                try:
                    groups.move(name, process)
                except ProcessLookupError:  # a Python worker that has ended since
                    if process == pid:
                        raise
            self.names[groups.workload(name)] = name
        return True

    def finish(self, logs: Path) -> Work:
        """Waits for its end, and checks its result."""
        total = int(self.application.says(r"^total (\d+)", 900))
        if total != self.shape.total():
            raise RuntimeError(f"{self.shape.name} came to {total}, not to {self.shape.total()}")
        if self.application.process.wait(timeout=120) != 0:
            raise RuntimeError(f"{self.application.log}: exit {self.application.process.returncode}")
        return work_of(logs / self.application.id, self.shape.task_cpu_s)


class Stage:
    """A cluster on which rounds are played one after the other."""

    def __init__(self, home: Path, directory: Path, groups: Groups, build: Path, cores: int) -> None:
        self.directory, self.groups, self.build = directory, groups, build
        self.cluster = Cluster(home, directory, groups, cores=cores, memory="16g")
        self.played = 0

    def play(self, seed: int, policy: str, shapes: list[Shape], kill_at_s: float, share: float) -> Round:
        self.played += 1
        place = self.directory / f"round{self.played}"
        logs = place / "events"
        logs.mkdir(parents=True)
        service = subprocess.Popen(
            ["nice", "-n", SERVICE_NICE, sys.executable, str(SERVICE), str(place / "latencies")], preexec_fn=self.groups.enter("service")
        )
        try:
            berthd = Berthd(self.build, place, CONFIG)
            try:
                begun = time.monotonic()
                apps = self._start(shapes, logs, begun + kill_at_s)
                names = {workload: name for app in apps for workload, name in app.names.items()}
                # berthd looks for processes every 10 s.
                until("berthd knows every executor", lambda: len(spark_workloads(self._snapshot(berthd))) == len(names), 60)
                until("berthd knows what each has done", lambda: len(with_tasks(self._snapshot(berthd))) == len(shapes), 120)
                if done := [app.shape.name for app in apps if "\ntotal " in app.application.out.read_text()]:
                    raise RuntimeError(f"seed {seed}: {', '.join(done)} ended before the kill")
                kill = self._kill(berthd, policy, seed, share, names)
                killed = time.monotonic()
            finally:
                berthd.stop()
            works = [app.finish(logs) for app in apps]
            ended = time.monotonic()
            until("the service has served for long enough", lambda: time.monotonic() > killed + JUDGED_S)
        finally:
            service.terminate()
            service.wait()
        latencies = [tuple(float(word) for word in line.split()) for line in (place / "latencies").read_text().splitlines()]
        return Round(
            seed=seed,
            **asdict(kill),
            killed_at_s=killed - begun,
            last_s=ended - killed,
            p99_before_s=p99([latency for came, latency in latencies if killed - JUDGED_S <= came < killed]),
            p99_s=p99([latency for came, latency in latencies if killed <= came < killed + JUDGED_S]),
            **summed(works),
        )

    def _start(self, shapes: list[Shape], logs: Path, kill_at: float) -> list[Running]:
        """Starts each application when its age wants it. Returns once all are ready and the time of the kill has come."""
        apps: list[Running] = []
        waiting = sorted(shapes, key=lambda shape: -shape.age_s)
        while waiting or not all([app.place(self.groups) for app in apps]) or time.monotonic() < kill_at:
            if waiting and time.monotonic() >= kill_at - waiting[0].age_s:
                shape = waiting.pop(0)
                apps.append(Running(shape, self._submit(shape, logs), self.played))
            time.sleep(0.2)
        return apps

    def _submit(self, shape: Shape, logs: Path) -> Application:
        return self.cluster.submit(
            f"{shape.name}-{self.played}", shape.as_text(), cores=shape.executors, app=APP, wait=False,
            conf={
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.eventLog.dir": f"file://{logs}",
                "spark.executor.extraJavaOptions": f"{self.cluster.jvm} -Xms{shape.heap_mb}m -XX:+AlwaysPreTouch",
            },
        )

    @staticmethod
    def _snapshot(berthd: Berthd) -> dict:
        return json.loads(berthd.ctl("snapshot", "--json"))

    def _kill(self, berthd: Berthd, policy: str, seed: int, share: float, names: dict[str, str]) -> Kill:
        """Kills the first executors of the policy's order, and says which other orders would have killed the same ones."""
        snapshot = self._snapshot(berthd)
        executors = spark_workloads(snapshot)
        for workload in executors:
            # If the v2 tree has no memory controller, a cgroup's memory is not counted.
            workload["usage"][-1]["memory_bytes"] = resident_bytes(self.groups.pids(names[workload["id"]]))
        need = int(share * sum(memory_of(workload) for workload in executors))
        chosen = {
            name: victims_of(order_of(name, snapshot, seed, self.build / "cli" / "berthctl"), snapshot, need)
            for name in dict.fromkeys([policy, *POLICIES])
        }
        victims, freed = chosen[policy]
        same = [name for name, (others, _) in chosen.items() if sorted(others) == sorted(victims)]
        for workload in victims:
            (self.groups.path(names[workload]) / "cgroup.kill").write_text("1")
        return Kill(policies=[policy, *(name for name in same if name != policy)], victims=victims, freed_bytes=freed, need_bytes=0 if policy == NOTHING else need)


def summed(works: list[Work]) -> dict[str, float]:
    return {name: sum(getattr(work, name) for work in works) for name in ("lost_s", "again_s", "failed_s", "useful_s")}
