#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest. Containers come and go so that two of those that stay share a core, until berthd has moved so many apart.

Prints JSON at the end.

The process of a container uses a little CPU. berth.toml says that each of them asks for one vCPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from container import Container, allow_containers

CPUS = Path("/sys/devices/system/cpu")
# As many as an idle host of eight vCPUs can pin. One vCPU stays without an owner.
FULL = 7
# Readings of all pins, one after the other.
Pins = dict[str, str]


def work_a_little() -> None:
    while True:
        until = time.process_time() + 0.004
        while time.process_time() < until:
            pass
        time.sleep(0.2)


def cpus_of(container: Container) -> str:
    return (container.group / "cpuset.cpus").read_text().strip()


def core_of(cpu: str) -> str:
    return (CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()


class Moves:
    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.containers: list[Container] = []
        self.pinned: Pins = {}
        self.counts = {"arrivals": 0, "departures": 0, "moves": 0, "readings": 0}
        self.shared: list[Pins] = []  # pins of two containers on one vCPU

    def arrive(self) -> None:
        self.counts["arrivals"] += 1
        self.containers.append(Container(f"ls-{self.counts['arrivals']}", work_a_little))

    def depart(self, container: Container) -> None:
        self.counts["departures"] += 1
        self.containers.remove(container)
        self.pinned.pop(container.name, None)
        container.end()

    def read(self) -> Pins:
        return {container.name: cpus_of(container) for container in self.containers}

    def watch(self, goal: Callable[[Pins], bool], what: str) -> None:
        """Reads all pins until the goal is reached, counts the moves, and notes vCPUs that two containers own."""
        deadline = time.monotonic() + self.patience
        pins = self.read()
        while True:
            # Files are read one after the other. What two readings show alike was so between them.
            before, pins = pins, self.read()
            self.counts["readings"] += 1
            if pins == before:
                owned = [cpus for cpus in pins.values() if cpus.isdigit()]
                if len(set(owned)) < len(owned):
                    self.shared.append(pins)
                for name, cpus in pins.items():
                    self.counts["moves"] += self.pinned.get(name, cpus) != cpus
                self.pinned = {name: cpus for name, cpus in pins.items() if cpus.isdigit()}
                if goal(pins):
                    return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {pins} after {self.counts}")
            time.sleep(0.05)

    def play_round(self) -> None:
        while len(self.containers) < FULL:
            self.arrive()
        self.watch(lambda pins: all(cpus.isdigit() for cpus in pins.values()), "all to be pinned")
        cores: dict[str, list[Container]] = {}
        for container in self.containers:
            cores.setdefault(core_of(self.pinned[container.name]), []).append(container)
        pairs = [on_core for on_core in cores.values() if len(on_core) == 2]
        stay = [container for pair in pairs[:2] for container in pair]
        for container in [c for c in self.containers if c not in stay]:
            self.depart(container)
        self.watch(lambda pins: len({core_of(cpus) for cpus in pins.values()}) == len(pins), "each to have a core alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, required=True)
    parser.add_argument("--patience", type=float, default=240, help="seconds until a wait is hopeless")
    options = parser.parse_args()
    allow_containers()
    moves = Moves(options.patience)
    try:
        while moves.counts["moves"] < options.moves:
            moves.play_round()
    finally:
        for container in list(moves.containers):
            moves.depart(container)
    json.dump({**moves.counts, "shared": moves.shared}, sys.stdout)


if __name__ == "__main__":
    main()
