# SPDX-License-Identifier: Apache-2.0
"""300 real slurmd (`run fleet`): all nodes are published to, and a burst of jobs fills the best ones first."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from farm import Farm, call
from waiting import until

NODES = [f"n{number}" for number in range(1, 301)]
BEST = NODES[100:120]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def fleet(namespaces: None, build: Path) -> Farm:
    return Farm(build, ROOT / "integrations/slurm/job_submit.lua", NODES, health_check_s=20)


def weights(fleet: Farm) -> dict[str, str]:
    return {record["NodeName"]: record["Weight"] for record in fleet.records()}


def test_three_hundred_nodes_are_published_to(fleet: Farm) -> None:
    for node in NODES:
        fleet.say(node, score=0.1 if node in BEST else 0.7, cpu=2)
    expected = {node: "11" if node in BEST else "71" for node in NODES}
    began = time.monotonic()
    until(lambda: weights(fleet) == expected, "publication of all nodes")
    print(f"all {len(NODES)} nodes are published to after {time.monotonic() - began:.0f} s, with a health check each 20 s")
    # Two jobs of one becpu each fit on a node, so this burst fills the best ones and no other.
    jobs = [fleet.submit("--gres=becpu:1", "-c1", "--mem=100", script="sleep 5") for _ in range(2 * len(BEST))]
    assert Counter(job.ran_on() for job in jobs) == Counter({node: 2 for node in BEST})
    call("scontrol", "reconfigure")
    until(lambda: weights(fleet) == expected, "publication after the reconfiguration")
