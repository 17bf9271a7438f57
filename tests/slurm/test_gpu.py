# SPDX-License-Identifier: Apache-2.0
"""job_submit.lua asks the real `berthctl rank` for work with GPUs."""

from __future__ import annotations

import json
import os
import time

import pytest
from berthstate import GIB
from farm import FLEET, Farm, call
from waiting import until

# Two nodes have two GPUs each.
GPU_IDS = ("0000:01:00.0", "0000:02:00.0")


def snapshot(node: str, healthy: int) -> None:
    document = {
        "schema": "berth.snapshot/1",
        "host": node,
        "time": time.time(),
        "topology": {
            "cpus": [{"cpu": cpu, "core": cpu, "llc": 0, "numa": 0, "socket": 0} for cpu in range(8)],
            "gpus": [{"id": gpu, "model": "NVIDIA A100", "numa": 0, "memory_bytes": 40 * GIB, "healthy": number < healthy} for number, gpu in enumerate(GPU_IDS)],
        },
        "memory": {"total_bytes": 64 * GIB},
        "workloads": [],
    }
    (FLEET / f"{node}.json").write_text(json.dumps(document))


def prefer(farm: Farm, node: str) -> None:
    for other in farm.nodes:
        farm.say(other, score=0.1 if other == node else 0.6)
    farm.published()


def test_gpu_work_is_packed_whatever_the_weights_say(farm: Farm) -> None:
    prefer(farm, "n1")
    snapshot("n1", healthy=2)
    snapshot("n2", healthy=1)
    # n2 has one idle GPU, so that the pair of n1 stays whole.
    assert farm.submit("--gres=gpu:1").ran_on() == "n2"
    assert farm.submit("--gres=gpu:2").ran_on() == "n1"
    # Other work, and work that names its nodes, is not rank's business.
    assert farm.submit().ran_on() == "n1"
    assert farm.submit("-w", "n1", "--gres=gpu:1").ran_on() == "n1"


def best_is_second(farm: Farm) -> None:
    """By its snapshot n2 is the best host of work with one GPU. The weights say n1."""
    prefer(farm, "n1")
    snapshot("n1", healthy=2)
    snapshot("n2", healthy=1)


def test_gpu_work_goes_elsewhere_while_its_best_host_is_taken_or_drained(farm: Farm) -> None:
    best_is_second(farm)
    holder = farm.submit("-w", "n2", "--gres=gpu:2", script="sleep 600")
    holder.runs()
    assert farm.submit("--gres=gpu:1").ran_on() == "n1"
    call("scancel", holder.number)
    until(farm.idle, "idle farm")
    farm.update("n2", "state=drain", "reason=test")
    assert farm.submit("--gres=gpu:1").ran_on() == "n1"
    farm.update("n2", "state=resume")
    until(farm.idle, "idle farm")
    assert farm.submit("--gres=gpu:1").ran_on() == "n2"


def test_a_preference_keeps_the_constraint_of_the_job(farm: Farm) -> None:
    best_is_second(farm)
    assert farm.submit("--gres=gpu:1", "--constraint=gpus").ran_on() == "n2"
    assert farm.submit("--gres=gpu:1", "--prefer=gpus").ran_on() == "n2"
    # No host has that, so Slurm rejects the job whatever the script does.
    with pytest.raises(AssertionError):
        farm.submit("--gres=gpu:1", "--constraint=none")


def test_a_host_that_is_no_feature_of_slurm_is_not_preferred(farm: Farm) -> None:
    prefer(farm, "n2")
    snapshot("n1", healthy=1)
    snapshot("n2", healthy=2)
    # n1 would be the best one. Slurm would reject a job that prefers an unknown feature.
    assert farm.submit("--gres=gpu:1").ran_on() == "n2"


def test_a_full_tmp_rejects_no_gpu_work(farm: Farm) -> None:
    best_is_second(farm)
    call("mount", "-t", "tmpfs", "-o", "nr_inodes=1", "none", "/tmp")
    try:
        assert farm.submit("--gres=gpu:1").ran_on() == "n2"
    finally:
        call("umount", "/tmp")


def test_without_an_answer_the_weights_decide(farm: Farm) -> None:
    prefer(farm, "n1")
    assert farm.submit("--gres=gpu:1").ran_on() == "n1"
    # A model that no node has, a snapshot that is old, and one that is none.
    snapshot("n2", healthy=1)
    assert farm.submit("--gres=gpu:2").ran_on() == "n1"
    os.utime(FLEET / "n2.json", (time.time() - 1000,) * 2)
    assert farm.submit("--gres=gpu:1").ran_on() == "n1"
    (FLEET / "n2.json").write_text("{")
    assert farm.submit("--gres=gpu:1").ran_on() == "n1"
