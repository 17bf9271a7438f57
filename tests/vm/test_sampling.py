# SPDX-License-Identifier: Apache-2.0
"""What berthd measures by eBPF in the sandbox of its unit, against what the kernel's files say."""

import statistics
from typing import Any

import pytest

from berth import Berth

BUSY = "sh -c 'while :; do :; done'"
# Two processes that want the same vCPU at the same time, ten times a second. A vCPU that is busy all the time would slow down
# each command of the test.
RIVALS = """
import os, time
os.fork()
while True:
    time.sleep(0.1 - time.time() % 0.1)
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
"""
LS, IDLE = "berth-test-ls1.service", "berth-test-be1.service"


@pytest.fixture
def berth(sampling_berth: Berth) -> Berth:
    return sampling_berth


def figures(berth: Berth) -> dict[str, dict[str, Any]]:
    return {figure["figure"]: figure for figure in berth.json("status")["sampling"]["figures"]}


def last_samples(berth: Berth, unit: str) -> list[dict[str, Any]]:
    workloads = {w["id"]: w for w in berth.json("snapshot")["workloads"]}
    return workloads[f"system.slice/{unit}"]["usage"]


def test_the_kernel_counts_for_the_service(berth: Berth) -> None:
    berth.start()
    for name, figure in figures(berth).items():
        if name == "hardware-counters":  # the guest has no PMU: said, with the reason, and never a 0
            assert not figure["available"] and figure["detail"], figure
        else:
            assert figure["available"], figure


def test_waits_for_a_cpu_are_seen_where_there_are_any(berth: Berth) -> None:
    # Two rivals on one vCPU wait for each other; the other workload sleeps.
    berth.guest.write_file("/root/berth-test-rivals", RIVALS)
    berth.start_units({LS: "taskset -c 1 python3 /root/berth-test-rivals", IDLE: "sleep infinity"})
    berth.start()
    berth.wait_for(LS, IDLE)
    berth.guest.poll(
        lambda: (last_samples(berth, LS)[-1].get("runq_latency_us") or 0) > 500, 60, what="waits of half a time slice and more"
    )
    sample = last_samples(berth, IDLE)[-1]
    assert sample.get("runq_latency_us") is None and sample.get("llc_mpki") is None, sample


def test_use_of_cpus_is_what_cpu_stat_says(berth: Berth) -> None:
    berth.start_unit(LS, BUSY)
    berth.start()
    berth.wait_for(LS)
    usage = f"awk '/usage_usec/ {{print $2}}' /sys/fs/cgroup/system.slice/{LS}/cpu.stat"
    before = berth.guest.run(f"{usage}; date +%s.%N").stdout.split()
    goal = berth.ticks() + 10
    berth.guest.poll(lambda: berth.ticks() >= goal, 60, interval=2, what="ten ticks")
    after = berth.guest.run(f"{usage}; date +%s.%N").stdout.split()
    begin, end = float(before[1]), float(after[1])
    cores = (int(after[0]) - int(before[0])) / 1e6 / (end - begin)
    seen = [s["cpu"] for s in last_samples(berth, LS) if begin < s["time"] - 1 and s["time"] < end]
    assert len(seen) >= 5
    # The median too: all of it in one sample of ten would have the right mean. One sample may be of a moment in which the guest had to wait.
    assert abs(statistics.median(seen) - cores) < 0.5 * cores, (seen, cores)
    mean = sum(seen) / len(seen)
    # The ends of the two spans do not meet; the guest's load is steady otherwise.
    assert abs(mean - cores) < 0.1 * cores, (mean, cores)


def test_what_sampling_costs_is_shown(berth: Berth) -> None:
    berth.start()
    berth.guest.poll(lambda: berth.json("status")["tick"]["count"] > 3, 60, what="a few ticks")
    sampling = berth.json("status")["sampling"]
    assert sampling["read_cpu_ms"] > 0
    assert sampling["bpf_cpu"] is not None and sampling["cpu"] >= sampling["bpf_cpu"] > 0, sampling


def test_switched_off_it_reads_files(berth: Berth) -> None:
    berth.start_unit(LS, BUSY)
    berth.start(extra="[sampling]\nebpf = false")
    berth.wait_for(LS)
    assert not any(figure["available"] for figure in figures(berth).values())
    assert "sampling.ebpf = false" in figures(berth)["run-time"]["detail"]
    berth.guest.poll(lambda: last_samples(berth, LS)[-1]["cpu"] > 0.3, 60, what="use of CPU by cpu.stat")
    assert last_samples(berth, LS)[-1].get("runq_latency_us") is None


def test_a_budget_that_sampling_passes_makes_ticks_come_less_often(berth: Berth) -> None:
    berth.start(extra='[sampling]\ninterval = "100ms"\nmax_cpu = 0.0001')
    berth.guest.poll(
        lambda: berth.json("status")["tick"]["interval_s"] > 0.1, 60, what="ticks further apart than configured"
    )
    assert berth.journal("would exceed sampling.max_cpu")
