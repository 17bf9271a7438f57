#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest. One user has so many cgroups with a process each, and replaces some of them all the time.

Prints JSON at the end: the intervals that berthd published while cgroups were replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path

from container import ROOT, Container, allow_containers

UID = 65534
USER = "user"


def wait_here() -> None:
    signal.pause()


def new_container(number: int) -> Container:
    container = Container(f"{USER}/job-{number}", wait_here)
    os.chown(container.group, UID, UID)
    return container


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("count", "replaced", "ticks"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    allow_containers()
    ground = ROOT / "berthtest" / USER
    ground.mkdir()
    (ground / "cgroup.subtree_control").write_text("+cpuset +cpu +memory")
    os.chown(ground, UID, UID)
    crowd = [new_container(number) for number in range(options.count)]
    made = options.count
    intervals: dict[float, float] = {}
    # The first ticks with all of them open their files.
    while len(intervals) < options.ticks:
        for _ in range(max(1, options.replaced // 10)):
            crowd.pop(0).end()
            crowd.append(new_container(made))
            made += 1
        state = json.loads(Path("/run/berth/state.json").read_text())
        intervals[state["time"]] = state["interval_s"]
        time.sleep(0.1)
    for container in crowd:
        container.end()
    ground.rmdir()
    print(json.dumps({"intervals": list(intervals.values())}))


main()
