#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest. One user has so many cgroups with a process each, and replaces some of them all the time.

Prints JSON at the end. Of each look at berthd in a tick of its own, while cgroups were replaced: how many of the cgroups that last were read
in that tick, and whether the service was.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
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


def look(service: str, lasting: int) -> tuple[float, dict[str, int | bool]]:
    tick = json.loads(Path("/run/berth/state.json").read_text())["time"]
    listed = json.loads(subprocess.run(["berthctl", "list", "--json"], capture_output=True, check=True).stdout)
    read = {workload["id"] for workload in listed["workloads"] if workload["cpu_cores"] is not None}
    return tick, {"read": sum(f"berthtest/{USER}/job-{number}" in read for number in range(lasting)), "service": service in read}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--service", required=True)
    for name in ("lasting", "churning", "replaced", "looks"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    allow_containers()
    ground = ROOT / "berthtest" / USER
    ground.mkdir()
    (ground / "cgroup.subtree_control").write_text("+cpuset +cpu +memory")
    os.chown(ground, UID, UID)
    lasting = [new_container(number) for number in range(options.lasting)]
    churning = [new_container(options.lasting + number) for number in range(options.churning)]
    made = options.lasting + options.churning
    looks: dict[float, dict[str, int | bool]] = {}
    while len(looks) < options.looks:
        for _ in range(max(1, options.replaced // 10)):
            churning.pop(0).end()
            churning.append(new_container(made))
            made += 1
        tick, seen = look(options.service, options.lasting)
        looks[tick] = seen
        time.sleep(0.1)
    for container in lasting + churning:
        container.end()
    ground.rmdir()
    print(json.dumps({"looks": list(looks.values())}))


main()
