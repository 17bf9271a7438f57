# SPDX-License-Identifier: Apache-2.0
"""Ways of sharing two vCPUs, by real cgroups: a booted host puts them in the order of tests/judge."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass
from pathlib import Path

import pytest

from guestlib import Guest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("BERTH_BUILD", ROOT / "build")).resolve() / "tests" / "judge" / "judge-load"
IN_GUEST = "/root/berth-test-judge-load"
SERVICE, BATCH = "berth-test-judge-service.service", "berth-test-judge-batch.service"
# Two cores of one cache.
BOTH, FIRST, SECOND = "0,2", "0", "2"
# By the way: properties of the service, and of the batch.
WAYS = {
    "same priority": ((f"AllowedCPUs={BOTH}",), (f"AllowedCPUs={BOTH}",)),
    "least weight": ((f"AllowedCPUs={BOTH}",), (f"AllowedCPUs={BOTH}", "CPUWeight=1")),
    "idle class": ((f"AllowedCPUs={BOTH}",), (f"AllowedCPUs={BOTH}", "CPUWeight=idle")),
    "own vCPU": ((f"AllowedCPUs={FIRST}",), (f"AllowedCPUs={SECOND}",)),
}
ROUNDS = 3
# One thread asks for 0.4 vCPUs, in requests of 5 ms: an emulated host needs a part of a millisecond to change threads.
LOAD = f"{IN_GUEST} service 0.4 5 1 --seconds 6"


@dataclass
class Outcome:
    p99_ms: float
    batch_cores: float


def share(guest: Guest, way: str) -> Outcome:
    """The service and four endless threads for some seconds."""
    of_service, of_batch = (" ".join(f"--property={each}" for each in properties) for properties in WAYS[way])
    # The uptime, and the CPU time that the batch has used.
    read = f"read up rest < /proc/uptime; read name used < /sys/fs/cgroup/system.slice/{BATCH}/cpu.stat; echo $up $used"
    done = guest.run(
        f"set -e; trap 'systemctl stop {BATCH}' EXIT; systemd-run --quiet --collect --unit={BATCH} {of_batch} {IN_GUEST} batch 4; {read}; "
        f"systemd-run --quiet --wait --pipe --collect --unit={SERVICE} {of_service} {LOAD}; {read}"
    )
    before, service, after = done.stdout.splitlines()
    (start_s, start_us), (end_s, end_us) = ((float(word) for word in line.split()) for line in (before, after))
    return Outcome(json.loads(service)["p99_ms"], 1e-6 * (end_us - start_us) / (end_s - start_s))


@pytest.fixture(scope="module")
def medians(guest: Guest) -> dict[str, Outcome]:
    """Of rounds that take turns, so that whatever else the machine does meets all ways."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    guest.run("systemctl stop berthd.service", check=False)
    guest.push(PROGRAM, IN_GUEST)
    rounds = [{way: share(guest, way) for way in WAYS} for _ in range(ROUNDS)]
    return {
        way: Outcome(
            statistics.median(measured[way].p99_ms for measured in rounds),
            statistics.median(measured[way].batch_cores for measured in rounds),
        )
        for way in WAYS
    }


def test_a_service_beside_the_idle_class_waits_less_than_at_the_same_priority(medians: dict[str, Outcome]) -> None:
    assert medians["idle class"].p99_ms <= medians["same priority"].p99_ms, medians


def test_a_service_beside_the_least_weight_waits_less_than_at_the_same_priority(medians: dict[str, Outcome]) -> None:
    assert medians["least weight"].p99_ms <= medians["same priority"].p99_ms, medians


def test_idle_batch_work_gets_more_than_on_the_vcpus_that_a_service_leaves(medians: dict[str, Outcome]) -> None:
    # 1.6 vCPUs against one.
    assert medians["idle class"].batch_cores >= 1.2 * medians["own vCPU"].batch_cores, medians
