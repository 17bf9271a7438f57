# SPDX-License-Identifier: Apache-2.0
"""The cost of berth-kube, printed. Only the memory has a limit here: it does not depend on the machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from agent import Agent
from cluster import Cluster
from waiting import until

MOST_MEMORY_KIB = 10 * 1024
MEASURED_S = 30


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(fields[0]) / 1e9


def memory_kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


def test_it_is_small(cluster: Cluster, agent_of: Callable[..., Agent]) -> None:
    cluster.add_node("n1")
    agent = agent_of("n1", "--interval", "60")
    agent.say(cpu=3)
    agent.start()
    until(lambda: cluster.amount("n1") == "3k", "publication")
    assert agent.process is not None
    pid = agent.process.pid
    before, began = cpu_s(pid), time.monotonic()
    while time.monotonic() < began + MEASURED_S:
        agent.say(cpu=3)
        time.sleep(1)
    share = (cpu_s(pid) - before) / (time.monotonic() - began)
    own = memory_kib(pid, "RssAnon")
    print(f"berth-kube: {100 * share:.3f} % of a core; {own / 1024:.1f} MiB of its own, {memory_kib(pid, 'VmRSS') / 1024:.1f} MiB with the shared pages of libraries")
    assert own < MOST_MEMORY_KIB
