# SPDX-License-Identifier: Apache-2.0
"""A real Spark cluster in a guest. A service that needs memory gets it from the executor that costs the least, nobody else loses anything,
and each application ends with the right sum."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from berth import MIB, Berth
from conftest import absent, find
from guestlib import TOPOLOGIES, Guest
from sparkcluster import APPS, MASTER, PATIENCE, PLACE, PREPARATION, WORKER, StartedCluster, driver, prepare
from sparkdisk import SparkMissing, ensure_spark_disk

LS = "berth-test-ls-cache.service"
ROWS = 10_000
TOTAL = f"total {ROWS * (ROWS - 1) // 2}"
# A file has the MiB to hold. It adds 4 each half second.
SERVICE = f"""
import time
held = []
while True:
    wanted = int(open("{PLACE}/wanted").read())
    for _ in range(min(4, wanted - len(held))):
        held.append(b"x" * (1 << 20))
    del held[wanted:]
    time.sleep(0.5)
"""
BASE = 40
# How far the service may grow before anything is missing.
ROOM = 100
RULES = """
[[workload]]
match = "system.slice/berth-test-ls*.service"
class = "latency-sensitive"
vcpus = 1

[[workload]]
match = "system.slice/berth-test-be*.service"
class = "best-effort"
"""
HOLD = 50


# With these, what the published rule expects of a service that grows is little beside an executor.
BRIEF = 'eviction.forecast = "published"\neviction.window = 10\neviction.z = 1'


def settings(reserve: float = 0.05, evict: bool = False) -> str:
    """Only what is missing counts, not pressure."""
    return f"""
{BRIEF}
spark.watch = true
spark.interval = "1s"
eviction.psi_full = 100
eviction.grace = "120s"
eviction.hold = "{HOLD}s"
eviction.reserve = {reserve:.4f}
eviction.evict = {str(evict).lower()}
straggler.restore_hold = "2s"
straggler.restore_step = 1
safety.be_quota_rise = 1
"""


@dataclass(frozen=True)
class Executor:
    app: str
    number: int
    pid: int
    started: str
    place: str

    @property
    def apart(self) -> bool:
        return self.place == f"{workload(WORKER)}.berth-executor-{self.pid}-{self.started}.scope"


class Cluster(StartedCluster):
    """With what berthd and systemd know of it."""

    def __init__(self, berth: Berth) -> None:
        super().__init__(berth.guest)
        self.berth = berth

    def executors(self) -> list[Executor]:
        script = (
            f"for pid in $(pgrep -f '^{self.spark}/jre/bin/java .*CoarseGrainedExecutorBackend'); do "
            "cut -d' ' -f22 /proc/$pid/stat && sed -n s,^0::/,,p /proc/$pid/cgroup && tr '\\0' ' ' < /proc/$pid/cmdline && echo $pid; done"
        )
        text = self.guest.run(script, check=False).stdout
        found = []
        for started, place, words, pid in re.findall(r"^(\d+)\n(\S+)\n(.*) (\d+)$", text, re.MULTILINE):
            app, number = (re.search(rf"--{option} (\S+)", words)[1] for option in ("app-id", "executor-id"))
            found.append(Executor(app, int(number), int(pid), started, place))
        return found

    def executor(self, name: str) -> Executor | None:
        return next((executor for executor in self.executors() if executor.app == self.ids[name]), None)

    def scopes(self) -> list[str]:
        listed = self.guest.run("systemctl list-units --all --plain --no-legend '*.berth-executor-*'").stdout
        return sorted(f"system.slice/{line.split()[0]}" for line in listed.splitlines() if line.strip())

    def known(self) -> Any:
        return self.berth.json("list", "--spark")["spark"]

    def units(self) -> dict[str, str]:
        """Of each which process it is, and how often it was started."""
        names = (MASTER, WORKER, LS, *(driver(name) for name in APPS))
        shown = self.guest.run(f"systemctl show -p MainPID -p NRestarts -p ActiveEnterTimestampMonotonic {' '.join(names)}").stdout
        return dict(zip(names, shown.strip().split("\n\n"), strict=True))


def workload(unit: str) -> str:
    return f"system.slice/{unit}"


def want(guest: Guest, mib: int) -> None:
    guest.run(f"echo {mib} > {PLACE}/wanted.new && mv {PLACE}/wanted.new {PLACE}/wanted")


def reserve_that_leaves(berth: Berth, mib: int) -> float:
    """The part of the memory that must be kept free, so that a service may take so much more."""
    berth.settled_memory_in_use()
    memory = {name: int(kib) << 10 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB", berth.guest.read_file("/proc/meminfo"), re.MULTILINE)}
    return (memory["MemAvailable"] - mib * MIB) / memory["MemTotal"]


def evictions(berth: Berth) -> list[tuple[str, str, str]]:
    return [(e["workload"], e["attribute"], e["new"]) for e in berth.logged("evict")]


@pytest.fixture(scope="module")
def spark_guest() -> Iterator[Guest]:
    """A guest with memory for a Spark cluster, in which one runs: six JVMs take minutes to start where they are emulated.

    BERTH_SPARK_GUEST names one that runs already, without a cluster.
    """
    if name := os.environ.get("BERTH_SPARK_GUEST"):
        guest = Guest.attach(name)
        prepare(guest)
        yield guest
        return
    staging = os.environ.get("BERTH_STAGING")
    if not staging:
        pytest.skip("no berth for a guest of its own; give tests/vm/run --staging")
    try:
        disk = ensure_spark_disk()
    except SparkMissing as reason:
        absent(str(reason))
    with Guest.boot(f"spark-{os.getpid()}", topology=TOPOLOGIES["roomy"], disks=[disk], preparation=PREPARATION) as booted:
        booted.install(Path(staging))
        yield booted


@pytest.fixture
def berth(spark_guest: Guest) -> Berth:
    return find(spark_guest)


@pytest.fixture
def cluster(berth: Berth) -> Iterator[Cluster]:
    """Two applications that wait, and a service of BASE MiB."""
    cluster = Cluster(berth)
    cluster.wait_ready()
    if not berth.main_pids(LS)[LS]:
        want(berth.guest, BASE)
        berth.guest.write_file(f"{PLACE}/service.py", SERVICE)
        berth.start_unit(LS, f"python3 {PLACE}/service.py")
        berth.wait_held(LS, BASE)
    yield cluster
    if not berth.guest.silent:
        print(berth.guest.run(f"tail -n 12 {PLACE}/*.log {PLACE}/apps/*/*/stderr", check=False).stdout)


def test_a_service_gets_its_memory_from_the_cheapest_executor_alone(cluster: Cluster, berth: Berth) -> None:
    guest = berth.guest
    berth.start("enforce", settings(), RULES)

    # Each executor in a cgroup of its own, and both applications known.
    guest.poll(lambda: all(e.apart for e in cluster.executors()), PATIENCE, interval=1, what="a scope for each executor")
    cheap, dear = cluster.executor("cheap"), cluster.executor("dear")
    assert cheap and dear and cluster.scopes() == sorted([cheap.place, dear.place])
    wanted = {cheap.place: "executor", dear.place: "executor", **{workload(driver(name)): "driver" for name in APPS}}

    def known() -> Any:
        found = cluster.known()
        kinds = {id_: candidate["kind"] for id_, candidate in found["candidates"].items()}
        # A scope's memory is read a tick after the scope is made; until then its executor comes last.
        measured = all(candidate["frees_bytes"] > 0 for candidate in found["candidates"].values())
        return found if set(found["apps"]) == set(cluster.ids.values()) and kinds == wanted and measured else None

    found = guest.poll(known, PATIENCE, interval=1, what="berthd to know both applications, and the memory of each executor")
    assert {workload(MASTER), workload(WORKER)} <= set(found["spared"])
    assert found["order"][:2] == [cheap.place, dear.place], found["candidates"]
    assert set(found["order"][2:]) == {workload(driver(name)) for name in APPS}
    assert found["candidates"][cheap.place]["lost"] >= 2 and found["candidates"][dear.place]["lost"] >= 12, found["candidates"]
    size = found["candidates"][cheap.place]["frees_bytes"]
    assert size >= 100 * MIB, "though it was allocated in the Worker's cgroup"
    before = cluster.units()

    # So much is kept in reserve that the service runs into it, and nobody runs out of memory.
    reserve = reserve_that_leaves(berth, ROOM)
    assert berth.configure("enforce", settings(reserve, evict=True), RULES).returncode == 0
    assert cluster.known()["need_bytes"] == 0
    goal = BASE + ROOM + round(0.3 * size / MIB)
    want(guest, goal)

    # It goes the way that any unit goes; nobody else does.
    guest.poll(lambda: (cheap.place, "end") in [step[:2] for step in evictions(berth)], PATIENCE, what="the cheapest one to go")
    assert [step[1:] for step in evictions(berth) if step[0] == cheap.place][0] == ("terminate", "StopUnit")
    first = next(e for e in berth.logged("evict"))
    assert first["workload"] == cheap.place and first["policy"] == "eviction" and "is missing" in first["reason"], first
    berth.wait_held(LS, goal)

    # The Master has another one started in its place, which berth finds in time, and holds.
    def replacement() -> Executor | None:
        now = cluster.executor("cheap")
        return now if now and now.apart and now.number > cheap.number else None

    new = guest.poll(replacement, PATIENCE, what="another one in its place, in a scope")

    def quota() -> str:
        return guest.run(f"cat /sys/fs/cgroup/{new.place}/cpu.max", check=False).stdout.strip()

    guest.poll(lambda: quota() == "10000 100000", HOLD, what="it to be held")
    assert new.place in cluster.known().get("held", {})
    held = [e for e in berth.logged("set-cpu-quota") if e["workload"] == new.place and e["policy"] == "eviction"]
    assert held and "it replaces an executor" in held[0]["reason"], held

    # Memory is there again: it gets on.
    want(guest, BASE)
    # systemd takes the controller away where nobody needs it any more, and the file goes with it.
    guest.poll(lambda: quota() in ("max 100000", ""), PATIENCE, interval=1, what="its quota to go back")
    assert {step[0] for step in evictions(berth)} == {cheap.place}, evictions(berth)
    assert cluster.units() == before
    assert [cluster.executor("dear"), cluster.executor("cheap")] == [dear, new]

    # All goes back where it was, and goes on there.
    berth.stop()
    assert {executor.place for executor in cluster.executors()} == {workload(WORKER)}
    guest.poll(lambda: cluster.scopes() == [], PATIENCE, what="the scopes to be collected")
    invocations = {name: guest.run(f"systemctl show -P InvocationID {driver(name)}").stdout.strip() for name in APPS}
    for name in APPS:
        guest.run(f"touch {cluster.go(name)}")
    for name in APPS:
        assert cluster.says(driver(name), "^total .*") == TOTAL
    for name, invocation in invocations.items():
        ended = f"journalctl -q INVOCATION_ID={invocation} -g 'Deactivated successfully'"
        guest.poll(ended, PATIENCE, interval=1, what=f"the driver of {name} to end well")
    after = cluster.units()
    assert [after[unit] for unit in (MASTER, WORKER, LS)] == [before[unit] for unit in (MASTER, WORKER, LS)]
