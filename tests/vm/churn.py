#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest. Keeps so many containers that come and go, presses the memory now and then, and notes what berthd holds.

Prints JSON at the end.

A container is a cgroup with one process that sleeps, as a runtime without systemd makes it. Its name tells its class: ls-, job-, be-.
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

ROOT = Path("/sys/fs/cgroup")
ABOVE = ROOT / "berthtest"
PROGRESS = Path("/run/berth-test-churn")
# Of each kind so many at a time; all others are best-effort.
LATENCY_SENSITIVE, JOBS = 2, 1
# Of each period, so long, memory is in use up to this share of what berth may count on.
PRESS_PERIOD_s, PRESS_s, PRESSED = 40, 8, 0.98


class Container:
    def __init__(self, name: str) -> None:
        self.name = name
        self.group = ABOVE / name
        self.group.mkdir()
        if name.startswith("be-"):
            # All together hold more than the host has, so that a straggler grows at their expense.
            (self.group / "cpu.max").write_text("10000 100000")
        self.pid = os.fork()
        if self.pid == 0:
            try:
                (self.group / "cgroup.procs").write_text(str(os.getpid()))
                os.setgroups([])
                os.setuid(65534)
                signal.pause()
            finally:
                os._exit(1)

    def ended(self) -> bool:
        """By somebody else. A process that berth's signal ended has left the cgroup."""
        return os.waitpid(self.pid, os.WNOHANG)[0] != 0

    def end(self) -> None:
        (self.group / "cgroup.kill").write_text("1")
        os.waitpid(self.pid, 0)
        self.remove()

    def remove(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self.group.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


class Churn:
    def __init__(self, count: int) -> None:
        self.count = count
        self.serial = 0
        self.containers: list[Container] = []
        self.evicted: list[str] = []

    def start(self, kind: str) -> None:
        self.serial += 1
        self.containers.append(Container(f"{kind}-{self.serial}"))

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
        for container in [c for c in self.containers if c.ended()]:
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


def pid_of_berthd() -> int:
    return int(subprocess.run(["systemctl", "show", "-P", "MainPID", "berthd.service"], capture_output=True, text=True, check=True).stdout)


def reading(pid: int, began: float, churn: Churn) -> dict[str, float]:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return {
        "s": round(time.monotonic() - began, 1),
        "rss_kib": int(status["VmRSS"].split()[0]),
        "anon_kib": int(status["RssAnon"].split()[0]),
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
    options = parser.parse_args()
    ABOVE.mkdir(exist_ok=True)
    PROGRESS.mkdir(exist_ok=True)
    for group in (ROOT, ABOVE):
        (group / "cgroup.subtree_control").write_text("+cpuset +cpu +memory")
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
