# SPDX-License-Identifier: Apache-2.0
"""The order in which executors are killed: berth's orders and their rivals, each a list of workload ids from one and the same snapshot."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

# berth's orders, by the value of eviction.rank.
RANKS = {"berth": "loss-per-byte", "cost": "cost", "cost-per-byte": "cost-per-byte"}
POLICIES = [*RANKS, "random", "largest", "youngest", "sum"]
NOTHING = "nothing"  # no order: nothing is killed


def spark_workloads(snapshot: dict) -> list[dict]:
    """Executors, each alone in a workload."""
    return [item for item in snapshot["workloads"] if (item.get("spark") or {}).get("role") == "executor"]


def memory_of(workload: dict) -> int:
    return workload["usage"][-1]["memory_bytes"]


def berth_order(snapshot: dict, berthctl: Path, rank: str) -> list[str]:
    """What the policy itself says of that snapshot."""
    command = [str(berthctl), "plan", "--snapshot", "-", "--policy", "eviction", "--json", "-o", f"eviction.rank={rank}"]
    done = subprocess.run(command, input=json.dumps(snapshot), capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"berthctl plan: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["findings"]["eviction"]["order"]


def order_of(policy: str, snapshot: dict, seed: int, berthctl: Path) -> list[str]:
    executors = spark_workloads(snapshot)
    if policy == NOTHING:
        return []
    if policy in RANKS:
        known = {item["id"] for item in executors}
        order = [workload for workload in berth_order(snapshot, berthctl, RANKS[policy]) if workload in known]
        if set(order) != known:
            raise RuntimeError(f"{policy} orders {order}, of {sorted(known)}")
        return order
    if policy == "random":
        ids = sorted(item["id"] for item in executors)
        random.Random(seed + 1000).shuffle(ids)
        return ids
    if policy == "largest":
        return [item["id"] for item in sorted(executors, key=lambda item: (-memory_of(item), item["id"]))]
    if policy == "youngest":
        return [item["id"] for item in sorted(executors, key=lambda item: (-item["created"], item["id"]))]
    if policy == "sum":
        sums = {app["id"]: sum(task["duration_s"] for stage in app["stages"] for task in stage["tasks"]) for app in snapshot["spark_apps"]}
        return [item["id"] for item in sorted(executors, key=lambda item: (sums[item["spark"]["app"]], item["spark"]["app"], item["id"]))]
    raise ValueError(policy)


def victims_of(order: list[str], snapshot: dict, need_bytes: float) -> tuple[list[str], int]:
    """The first of the order whose memory is `need_bytes` or more, and their memory."""
    memory = {item["id"]: memory_of(item) for item in spark_workloads(snapshot)}
    victims: list[str] = []
    freed = 0
    for workload in order:
        if freed >= need_bytes:
            break
        victims.append(workload)
        freed += memory[workload]
    return victims, freed
