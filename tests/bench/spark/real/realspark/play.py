# SPDX-License-Identifier: Apache-2.0
"""One round: applications start together, some of their executors are killed in the middle, all go on to their end."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sparklib import Berthd, Cluster, Groups, until

from .choose import NOTHING, memory_of, order_of, spark_workloads, victims_of
from .losses import Work, work_of
from .scenario import Shape

APP = Path(__file__).resolve().parent.parent / "app.py"
# Executors alone are anybody's victims: who kills a driver loses all of its application, which no rival here is made to do.
CONFIG = f"""[sampling]
interval = 0.5
[spark]
interval = 0.5
[[workload]]
match = "{Groups.NAME}/executor-*"
class = "best-effort"
"""


@dataclass(frozen=True)
class Round:
    seed: int
    policy: str
    lost_s: float
    again_s: float
    failed_s: float
    useful_s: float
    took_s: dict[str, float]  # of each application, from the start of the round
    victims: list[str]
    freed_bytes: int
    need_bytes: int

    @property
    def last_s(self) -> float:
        return max(self.took_s.values())

    @property
    def mean_s(self) -> float:
        return sum(self.took_s.values()) / len(self.took_s)

    def as_json(self) -> dict:
        return {**asdict(self), "last_s": self.last_s, "mean_s": self.mean_s}


def resident_bytes(pids: list[int]) -> int:
    """Their share of what is in memory: forked Python workers have much in common."""
    total = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return total


def with_tasks(snapshot: dict) -> list[str]:
    """Applications, all of whose stages there are have done something."""
    return [app["id"] for app in snapshot["spark_apps"] if app["stages"] and all(stage["tasks"] for stage in app["stages"])]


class Stage:
    """A cluster, berthd beside it, and rounds that are played there one after the other."""

    def __init__(self, home: Path, directory: Path, groups: Groups, build: Path, cores: int) -> None:
        self.directory, self.groups, self.build = directory, groups, build
        self.cluster = Cluster(home, directory, groups, cores=cores, memory="16g")
        self.played = 0

    def play(self, seed: int, policy: str, shapes: list[Shape], evict_at_s: float, share: float) -> Round:
        self.played += 1
        place = self.directory / f"round{self.played}"
        logs = place / "events"
        logs.mkdir(parents=True)
        go = place / "go"
        # All at once: starting takes longer than anything else.
        apps = {shape.name: self._submit(shape, go, logs) for shape in shapes}
        for shape in shapes:
            apps[shape.name].says("^(ready)", 180)
        names = {}
        for shape in shapes:
            executors = apps[shape.name].executor_pids()
            if len(executors) != shape.executors:
                raise RuntimeError(f"{shape.name} has executors {sorted(executors)}, wanted {shape.executors}")
            for executor, pid in executors.items():
                name = f"executor-{self.played}-{shape.name}-{executor}"
                self.groups.move(name, pid)
                names[self.groups.workload(name)] = name
        berthd = Berthd(self.build, place, CONFIG)
        try:
            # Its next look at the processes is no more than 10 s away: it is to see each where it is now.
            until("berthd knows every executor", lambda: len(spark_workloads(self._snapshot(berthd))) == len(names), 60)
            # Nor is a driver's web server, asked for the first time, to do its loading meanwhile.
            until("berthd knows what each has done", lambda: len(with_tasks(self._snapshot(berthd))) == len(shapes), 120)
            go.touch()
            time.sleep(evict_at_s)
            victims, freed, need = ([], 0, 0) if policy == NOTHING else self._evict(berthd, policy, seed, share, names, place)
        finally:
            berthd.stop()
        took = {}
        works = []
        for shape in shapes:
            app = apps[shape.name]
            took[shape.name] = float(app.says(r"^took (\S+)", 600))
            total = int(app.says(r"^total (\d+)"))
            if total != shape.total():
                raise RuntimeError(f"{shape.name} came to {total}, not to {shape.total()}")
            if app.process.wait(timeout=120) != 0:
                raise RuntimeError(f"{app.log}: exit {app.process.returncode}")
            works.append(work_of(logs / app.id))
        return Round(seed=seed, policy=policy, took_s=took, victims=victims, freed_bytes=freed, need_bytes=need, **summed(works))

    def _submit(self, shape: Shape, go: Path, logs: Path):
        return self.cluster.submit(
            f"{shape.name}-{self.played}", shape.as_text(), str(go), cores=shape.executors, app=APP, wait=False,
            conf={
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.eventLog.dir": f"file://{logs}",
                "spark.executor.extraJavaOptions": f"{Cluster.SMALL_JVM} -Xms{shape.heap_mb}m -XX:+AlwaysPreTouch",
            },
        )

    @staticmethod
    def _snapshot(berthd: Berthd) -> dict:
        return json.loads(berthd.ctl("snapshot", "--json"))

    def _evict(
        self, berthd: Berthd, policy: str, seed: int, share: float, names: dict[str, str], place: Path
    ) -> tuple[list[str], int, int]:
        snapshot = self._snapshot(berthd)
        executors = spark_workloads(snapshot)
        for workload in executors:
            # Where the v2 tree has no memory controller nobody counts for a cgroup.
            workload["usage"][-1]["memory_bytes"] = resident_bytes(self.groups.pids(names[workload["id"]]))
        (place / "snapshot.json").write_text(json.dumps(snapshot))
        need = int(share * sum(memory_of(workload) for workload in executors))
        order = order_of(policy, snapshot, seed, self.build / "cli" / "berthctl")
        if sorted(order) != sorted(workload["id"] for workload in executors):
            raise RuntimeError(f"{policy} orders {order}, of {sorted(names)}")
        victims, freed = victims_of(order, snapshot, need)
        for workload in victims:
            (self.groups.path(names[workload]) / "cgroup.kill").write_text("1")
        return victims, freed, need


def summed(works: list[Work]) -> dict[str, float]:
    return {
        name: sum(getattr(work, name) for work in works) for name in ("lost_s", "again_s", "failed_s", "useful_s")
    }
