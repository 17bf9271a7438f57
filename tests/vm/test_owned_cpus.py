# SPDX-License-Identifier: Apache-2.0
"""vCPUs that other programs gave to their own work: nothing of theirs is changed, and nothing is planned onto them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth import LIGHT, RULES, Berth, cpus_of
from conftest import installed
from guestlib import Guest

LS1, LS2, BE1 = (f"berth-test-{n}.service" for n in ("ls1", "ls2", "be1"))
PARTITION = "berth-test-partition"
POD = f"kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-{'a1' * 32}.scope"
OTHER = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2.slice/cri-containerd-{'b1' * 32}.scope"


@contextmanager
def group(berth: Berth, path: str, **files: str) -> Iterator[None]:
    """A cgroup of root with one process, and what `files` are to have (`_` stands for `.`)."""
    above = path.split("/")[:-1]
    steps = ["set -e", "cd /sys/fs/cgroup", "echo '+cpuset +cpu' > cgroup.subtree_control"]
    for depth in range(len(above)):
        here = "/".join(above[: depth + 1])
        steps.append(f"mkdir -p {here}; echo '+cpuset +cpu' > {here}/cgroup.subtree_control")
    steps.append(f"mkdir -p {path}")
    steps += [f"echo {value} > {path}/{name.replace('_', '.')}" for name, value in files.items()]
    steps.append(f"sleep 3000 > /dev/null 2>&1 < /dev/null & echo $! > {path}/cgroup.procs")
    berth.guest.run("\n".join(steps))
    try:
        yield
    finally:
        empty = f"cd /sys/fs/cgroup; kill -9 $(cat {path}/cgroup.procs); while ! rmdir {path}; do sleep 0.2; done"
        parents = "; ".join(f"rmdir {'/'.join(above[:depth])}" for depth in range(len(above), 0, -1))
        berth.guest.run(f"({empty}; {parents}) 2> /dev/null", check=False)


def owners(berth: Berth) -> dict[str | None, tuple[str, str]]:
    return {item["owner"]: (item["cpus"], item["how"]) for item in berth.json("status")["owned_cpus"]}


def read(berth: Berth, path: str, *names: str) -> list[str]:
    return berth.guest.run("cd /sys/fs/cgroup/" + path + "; cat " + " ".join(names)).stdout.splitlines()


def all_off(berth: Berth, owned: set[int], *units: str) -> None:
    berth.wait_pinned(*units)
    for unit, cpus in berth.cpusets(*units).items():
        assert not cpus_of(cpus) & owned, unit


def test_a_partition_made_by_hand_keeps_its_vcpus_and_its_work(berth: Berth) -> None:
    rules = '[[workload]]\nmatch = "berth-test-partition"\nclass = "best-effort"\n'
    with group(berth, PARTITION, cpuset_cpus="6-7", cpuset_cpus_partition="root"):
        names = ("cpuset.cpus", "cpuset.cpus.partition")  # systemd may withdraw the other controllers
        before = read(berth, PARTITION, *names)
        assert before[1] == "root"
        berth.start_units(dict.fromkeys((LS1, LS2, BE1), LIGHT))
        berth.start("enforce", rules=RULES + rules)
        berth.guest.poll(lambda: owners(berth).get(PARTITION) == ("6-7", "partition"), 60, what="the partition to be known")
        all_off(berth, {6, 7}, LS1, LS2, BE1)
        assert berth.workloads()[PARTITION]["managed"] is False
        assert read(berth, PARTITION, *names) == before


def test_the_exclusive_vcpus_of_a_container_stay_its_own(berth: Berth) -> None:
    with group(berth, POD, cpuset_cpus="4-5"), group(berth, OTHER, cpuset_cpus="0-3,6-7"):
        berth.start_units(dict.fromkeys((LS1, LS2, BE1), LIGHT))
        berth.start("enforce")
        berth.guest.poll(lambda: owners(berth) == {POD: ("4-5", "kubelet")}, 60, what="the container to be known")
        all_off(berth, {4, 5}, LS1, LS2, BE1)
        assert read(berth, POD, "cpuset.cpus") == ["4-5"]


@pytest.fixture(scope="module")
def isolating_guest() -> Iterator[Guest]:
    staging = os.environ.get("BERTH_STAGING")
    if not staging:
        pytest.skip("no berth for a guest of its own; give tests/vm/run --staging")
    with Guest.boot(f"isolating-{os.getpid()}", kernel_arguments="isolcpus=2-3") as booted:
        booted.install(Path(staging))
        yield booted


def test_isolated_vcpus_are_given_to_nobody(isolating_guest: Guest) -> None:
    for berth in installed(isolating_guest):
        berth.start_units(dict.fromkeys((LS1, LS2, BE1), LIGHT))
        berth.start("enforce")
        all_off(berth, {2, 3}, LS1, LS2, BE1)
        assert owners(berth) == {None: ("2-3", "isolated")}
