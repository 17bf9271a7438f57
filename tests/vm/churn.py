#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest. Keeps so many containers that come and go, presses the memory now and then, and notes what berthd holds.

Prints JSON at the end.

The process of a container sleeps. The container's name tells its class: ls-, job-, be-.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from container import ROOT, Container, allow_containers

PROGRESS = Path("/run/berth-test-churn")
# Of each kind so many at a time; all others are best-effort.
LATENCY_SENSITIVE, JOBS = 2, 1
# One in so many best-effort containers holds so much. berth ends none that frees less than 16 MiB.
LARGE_EACH, HELD_BYTES = 20, 24 << 20
# Of each period, so long, memory is in use up to this share of what berth may count on.
PRESS_PERIOD_s, PRESS_s, PRESSED = 18, 6, 0.98


def sleep() -> None:
    os.setgroups([])
    os.setuid(65534)
    # A thousand copies of this program would fill the host.
    os.execv("/usr/bin/sleep", ["sleep", "infinity"])


def hold() -> None:
    os.setgroups([])
    os.setuid(65534)
    held = bytes([1]) * HELD_BYTES
    while held:
        signal.pause()


def new_container(name: str, *, large: bool) -> Container:
    # All best-effort ones together hold more than the host has, so that a straggler grows at their expense.
    return Container(name, hold if large else sleep, quota="10000 100000" if name.startswith("be-") else None)


def has_ended(container: Container) -> bool:
    """By somebody else. A process that berth's signal ended has left the cgroup."""
    return os.waitpid(container.pid, os.WNOHANG)[0] != 0


class Churn:
    def __init__(self, count: int) -> None:
        self.count = count
        self.serial = 0
        self.containers: list[Container] = []
        self.evicted: list[str] = []

    def start(self, kind: str) -> None:
        self.serial += 1
        large = kind == "be" and self.serial % LARGE_EACH == 0
        self.containers.append(new_container(f"{kind}-{self.serial}", large=large))

    def fill(self) -> None:
        for kind, number in (("ls", LATENCY_SENSITIVE), ("job", JOBS)):
            for _ in range(number):
                self.start(kind)
        while len(self.containers) < self.count:
            self.start("be")

    def replace_one(self) -> None:
        """Of the few that own vCPUs one in fifty times, as all pools change with it."""
        owners = [c for c in self.containers if not c.name.startswith("be-")]
        others = [c for c in self.containers if c.name.startswith("be-")]
        goes = random.choice(owners if random.random() < 0.02 else others)
        self.containers.remove(goes)
        goes.end()
        self.start(goes.name.split("-")[0])

    def note_ended(self) -> None:
        for container in [c for c in self.containers if has_ended(c)]:
            self.containers.remove(container)
            self.evicted.append(container.name)
            container.remove()
            self.start(container.name.split("-")[0])

    def report_progress(self, now: float) -> None:
        """A job that is late until its end, and so is a straggler."""
        for container in self.containers:
            if container.name.startswith("job-"):
                new = PROGRESS / "job.new"
                new.write_text(f"{1e-4 * now % 1:.6f}\n")
                new.rename(PROGRESS / "job")


class Press:
    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.held = b""

    def follow(self, now: float) -> None:
        wanted = now % PRESS_PERIOD_s > PRESS_PERIOD_s - PRESS_s
        if wanted and not self.held:
            self.held = bytes([1]) * max(1, round(PRESSED * self.cap - memory_in_use()))
        elif not wanted:
            self.held = b""


def memory_in_use() -> int:
    found = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(found[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    return total - available


def shown(*properties: str) -> list[str]:
    """Properties of berthd's unit."""
    done = subprocess.run(["systemctl", "show", "-P", ",".join(properties), "berthd.service"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def pid_of_berthd() -> int:
    return int(shown("MainPID")[0])


def alive(pid: int) -> None:
    """Says how berthd ended, if it did."""
    if pid_of_berthd() != pid:
        said = subprocess.run(
            ["journalctl", "--no-pager", "-o", "short-precise", "-n", "40", "-t", "systemd", "-t", "kernel"], capture_output=True, text=True, check=False
        )
        ended = shown("Result", "ExecMainCode", "ExecMainStatus", "NRestarts", "MemoryPeak")
        raise SystemExit(f"berthd {pid} ended (result, code, status, restarts, peak: {ended})\n{said.stdout}")


def figures(file: Path) -> dict[str, int]:
    return {name: int(number) for name, number in (line.split() for line in file.read_text().splitlines())}


def reading(pid: int, began: float, churn: Churn) -> dict[str, float]:
    alive(pid)
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    memory = figures(ROOT / "berth.slice/berthd.service/memory.stat")
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return {
        "s": round(time.monotonic() - began, 1),
        "rss_kib": int(status["VmRSS"].split()[0]),
        "anon_kib": int(status["RssAnon"].split()[0]),
        # The kernel gives back the rest when it wants memory: it grows with each page of the decision log that is cached.
        "kernel_kib": (memory["kernel"] - memory["slab_reclaimable"]) >> 10,
        "reclaimable_kib": memory["slab_reclaimable"] >> 10,
        "dying_cgroups": figures(ROOT / "cgroup.stat")["nr_dying_descendants"],
        "memory_in_use_kib": memory_in_use() >> 10,
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
        "started": churn.serial,
        "evicted": len(churn.evicted),
        "cpu_s": sum(map(int, times)) / os.sysconf("SC_CLK_TCK"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--containers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=0.1, help="seconds from one that goes to the next")
    parser.add_argument("--cap", type=int, required=True, help="memory that berth may count on, in bytes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    PROGRESS.mkdir(exist_ok=True)
    allow_containers()
    churn = Churn(options.containers)
    churn.fill()
    press = Press(options.cap)
    pid = pid_of_berthd()
    began = time.monotonic()
    readings: list[dict[str, float]] = []
    next_reading = began + options.seconds / 40
    while (now := time.monotonic()) < began + options.seconds:
        churn.note_ended()
        churn.replace_one()
        churn.report_progress(now - began)
        press.follow(now - began)
        if now >= next_reading:
            readings.append(reading(pid, began, churn))
            next_reading += options.seconds / 40
        time.sleep(max(0.0, options.every - (time.monotonic() - now)))
    for container in churn.containers:
        container.end()
    json.dump({"pid": pid, "readings": readings, "evicted": churn.evicted}, sys.stdout)


if __name__ == "__main__":
    main()
