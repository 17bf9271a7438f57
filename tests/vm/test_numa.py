# SPDX-License-Identifier: Apache-2.0
"""A host with a memory expander and a node without memory: memory is bound by the kernel's numbers, and to nodes that can have it.

The guest is one of its own. BERTH_NUMA_GUEST names one that runs already, of topology odd-nodes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth import LIGHT, Berth, cpus_of
from conftest import installed
from guestlib import TOPOLOGIES, Guest
from test_placement import MEMORY_NODES, memory_nodes

UNITS = [f"berth-test-ls{n}.service" for n in (1, 2, 3)]
NODES = Path("/sys/devices/system/node")
# Of the nodes that have memory, none or all.
NO_BOND = {"", "0-1,3"}


@pytest.fixture(scope="module")
def numa_guest() -> Iterator[Guest]:
    if name := os.environ.get("BERTH_NUMA_GUEST"):
        yield Guest.attach(name)
        return
    staging = os.environ.get("BERTH_STAGING")
    if not staging:
        pytest.skip("no berth for a guest of its own; give tests/vm/run --staging")
    with Guest.boot(f"numa-{os.getpid()}", topology=TOPOLOGIES["odd-nodes"]) as booted:
        booted.install(Path(staging))
        yield booted


@pytest.fixture
def numa_berth(numa_guest: Guest) -> Iterator[Berth]:
    yield from installed(numa_guest)


def test_memory_is_bound_to_nodes_of_the_pin_that_have_memory(numa_berth: Berth) -> None:
    berth, guest = numa_berth, numa_berth.guest
    assert guest.run(f"cat {NODES}/has_memory").stdout.strip() == "0-1,3"
    assert guest.run(f"cat {NODES}/has_cpu").stdout.strip() == "0-2"
    # Each socket has three vCPUs, so that each instance of two has a socket of its own.
    for unit in UNITS:
        berth.start_unit(unit, LIGHT)
    berth.start("enforce", MEMORY_NODES)
    berth.wait_pinned(*UNITS)

    topology = json.loads(guest.run("berthctl topology --json").stdout)
    assert {cpu["cpu"]: cpu["numa"] for cpu in topology["cpus"]} == {cpu: cpu // 3 for cpu in range(9)}
    sizes = {node["node"]: node["memory_bytes"] for node in topology["numa_nodes"]}
    assert sorted(sizes) == [0, 1, 2, 3]
    assert sizes[2] == 0
    assert sizes[3] > 128 << 20
    drawn = guest.run("berthctl topology").stdout
    assert "NUMA 2 (no memory)" in drawn
    assert "no vCPUs" in drawn

    # Nodes 0 and 1 have vCPUs and memory. Node 2 cannot be bound to, and node 3 is near no vCPU.
    def bonds() -> dict[int, str]:
        return {min(cpus_of(cpus)) // 3: mems for cpus, mems in memory_nodes(berth, *UNITS).values()}

    guest.poll(lambda: [bonds().get(node) for node in (0, 1)] == ["0", "1"], 60, what="the memory to follow the pins")
    assert bonds()[2] in NO_BOND
    # berth is content, and tries nothing again and again.
    assert not [action for action in berth.json("plan")["actions"] if action["kind"] == "set-memory-nodes"]
    assert not [entry for entry in berth.json("log")["entries"] if entry.get("result") == "failed"]
    berth.stop()
    assert {mems for _, mems in memory_nodes(berth, *UNITS).values()} <= NO_BOND
