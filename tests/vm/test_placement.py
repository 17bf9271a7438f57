# SPDX-License-Identifier: Apache-2.0
"""The optimal search on a host: admitted work is pinned where it was told, memory follows a pin, and pins move while others come and go."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth import LIGHT, READ_CPUSET, Berth, cpus_of
from longrun import result_of

LS1, LS2, LS3 = (f"berth-test-ls{n}.service" for n in (1, 2, 3))
BE = "berth-test-be1.service"
OPTIMAL = """
[interference]
search = "optimal"
"""
MEMORY_NODES = """
[placement]
memory_nodes = true
"""
# More of them are for a machine with time.
MOVES = int(os.environ.get("BERTH_MOVES", "40"))
COOL_DOWN_s = 0.5
MOST_MOVES = 2
MOVING = f"""safety.repin_cooldown = {COOL_DOWN_s}
[interference]
search = "optimal"
max_moves = {MOST_MOVES}
# A model that is learned meanwhile could say that neighbours do no harm.
learn = false
"""
INSTANCES = """
[[workload]]
match = "berthtest/ls-*"
class = "latency-sensitive"
service = "web"
vcpus = 1
"""
# Each socket is a NUMA node of four vCPUs.
NODES = {"0": {0, 1, 2, 3}, "1": {4, 5, 6, 7}}
NO_BOND = {"", "0-1"}


def memory_nodes(berth: Berth, *units: str) -> dict[str, tuple[str, str]]:
    """cpuset.cpus and cpuset.mems of units of system.slice, read by one command."""
    read = "mems=; { read mems < /sys/fs/cgroup/system.slice/$unit/cpuset.mems; } 2>/dev/null || true"
    shown = berth.guest.run(f"for unit in {' '.join(units)}; do {READ_CPUSET}; {read}; echo \"$cpus:$mems\"; done").stdout
    pairs = [line.split(":") for line in shown.splitlines()]
    return {unit: (cpus, mems) for unit, (cpus, mems) in zip(units, pairs, strict=True)}


def follows(cpus: str, mems: str) -> bool:
    return mems in NODES and bool(cpus_of(cpus)) and cpus_of(cpus) <= NODES[mems]


def test_admitted_work_is_pinned_where_it_was_told_and_its_memory_follows(berth: Berth) -> None:
    guest = berth.guest
    berth.start_unit(LS1, LIGHT)
    berth.start("enforce", OPTIMAL + MEMORY_NODES)
    berth.wait_pinned(LS1)
    request = json.dumps({"schema": "berth.request/1", "id": LS3, "vcpus": 2})
    answer = json.loads(guest.run(f"echo '{request}' | berthctl admit --request - --json").stdout)
    told = answer["fitting"][0]
    assert answer["admitted"] and len(cpus_of(told["cpus"])) == 2
    # Another one comes first, and leaves the promised vCPUs free.
    berth.start_unit(LS2, LIGHT)
    berth.wait_pinned(LS2)
    assert not cpus_of(berth.cpuset(LS2)) & cpus_of(told["cpus"])
    berth.start_unit(LS3, LIGHT)
    berth.wait_pinned(LS3)

    def logged() -> list[dict[str, Any]]:
        return [e for e in berth.logged("pin") if e["workload"] == f"system.slice/{LS3}" and e["result"] == "applied"]

    # The kernel has the pin a moment before berthd's log.
    pins = guest.poll(logged, 30, what="the pin to be logged")
    assert pins[0]["new"] == told["cpus"], pins
    assert "as its admission told" in pins[0]["reason"]

    units = (LS1, LS2, LS3)
    guest.poll(lambda: all(follows(*it) for it in memory_nodes(berth, *units).values()), 60, what="the memory to follow the pins")
    found = berth.json("plan")["findings"]["interference"]
    assert found["search"] == "optimal" and len(found["instances"]) == len(units)
    assert found["lower_bound"] <= found["score_node"]
    assert 0 <= found["gap"] <= 1
    # The text shows them, too.
    shown = guest.run("berthctl plan").stdout
    assert "search optimal, lower bound" in shown and "gap" in shown

    berth.stop()
    assert set(berth.cpusets(*units).values()) == {""}
    assert {mems for _, mems in memory_nodes(berth, *units).values()} <= NO_BOND


def test_work_that_no_numa_node_holds_is_admitted_on_both_and_shares_them(berth: Berth) -> None:
    guest = berth.guest
    berth.start_unit(LS1, LIGHT)
    berth.start("enforce", OPTIMAL)
    berth.wait_pinned(LS1)
    request = json.dumps({"schema": "berth.request/1", "id": BE, "class": "best-effort", "vcpus": 5})
    answer = json.loads(guest.run(f"echo '{request}' | berthctl admit --request - --json").stdout)
    assert answer["admitted"], answer
    told = answer["fitting"][0]
    assert told["numa_nodes"] == "0-1"
    assert cpus_of(told["cpus"]) == set(range(8)) - cpus_of(berth.cpuset(LS1))
    # Each node for itself is refused, with the reason.
    assert {(entry["numa"], entry.get("numa_nodes")) for entry in answer["rejected"]} == {(0, None), (1, None)}, answer["rejected"]
    assert all("vCPU" in entry["reason"] or "core" in entry["reason"] for entry in answer["rejected"]), answer["rejected"]
    berth.start_unit(BE, LIGHT)
    berth.wait_pinned(BE)
    assert berth.cpuset(BE) == told["cpus"]
    berth.stop()
    assert berth.cpuset(BE) == ""


@pytest.fixture
def group(berth: Berth) -> Iterator[None]:
    yield
    berth.guest.run("rmdir /sys/fs/cgroup/berthtest", check=False)


def test_pins_move_apart_while_instances_come_and_go_and_share_no_vcpu(berth: Berth, group: None) -> None:
    berth.guest.run("rm -rf /var/lib/berth/decisions.db*")
    berth.start("enforce", MOVING, INSTANCES)
    result = result_of(berth.guest, Path(__file__).with_name("moves.py"), f"--moves {MOVES}", 60 * MOVES + 300)
    print(json.dumps({name: count for name, count in result.items() if name != "shared"}))
    assert result["moves"] >= MOVES
    assert not result["shared"], result["shared"]

    entries = berth.json("log", "-n", "10000")["entries"]
    pins = [e for e in reversed(entries) if e["kind"] == "pin" and e["result"] == "applied"]
    moved = [e for e in pins if "moved from" in e["reason"]]
    assert len(moved) >= MOVES
    rounds = [e["time"] for e in moved]
    assert max(map(rounds.count, rounds)) <= MOST_MOVES
    last: dict[str, float] = {}
    for entry in pins:
        if entry in moved:
            # Times are of the wall clock, which may be corrected meanwhile.
            assert entry["time"] - last[entry["workload"]] >= 0.9 * COOL_DOWN_s, entry
        last[entry["workload"]] = entry["time"]
    berth.guest.poll(lambda: not berth.workloads(), 60, what="berthd to have forgotten all of them")
    berth.wait_no_undo_records(60)
