# SPDX-License-Identifier: Apache-2.0
"""One user has thousands of cgroups that come and go, and keeps berthd from nobody else.

BERTH_CROWD="COUNT REPLACED" has another number of cgroups, and of those that are replaced in a second. "4000 80" is for a machine with time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth import Berth
from longrun import result_of

COUNT, REPLACED = map(int, os.environ.get("BERTH_CROWD", "300 20").split())
TICKS = 12
SERVICE = "berth-test-ls-web.service"
RULES = """
[[workload]]
match = "system.slice/berth-test-ls*.service"
class = "latency-sensitive"
vcpus = 2

[[workload]]
match = "berthtest/user/job-*"
class = "best-effort"
"""


@pytest.mark.parametrize("ebpf", ["false", "true"], ids=["by files", "by eBPF"])
def test_churning_cgroups_of_one_user_stretch_no_tick_to_twice_the_interval(berth: Berth, ebpf: str) -> None:
    berth.start_units({SERVICE: "sleep infinity"})
    # An emulated processor is slow; so the budget is what a reading without the crowd leaves unused.
    berth.start("observe", f'[sampling]\ninterval = "1s"\nmax_cpu = 0.05\nebpf = {ebpf}', RULES)
    berth.wait_ticks(5)
    configured = berth.json("status")["tick"]["interval_s"]
    try:
        options = f"--count {COUNT} --replaced {REPLACED} --ticks {TICKS}"
        intervals = result_of(berth.guest, Path(__file__).with_name("crowd.py"), options, 1800)["intervals"]
        assert max(intervals[TICKS // 4 :]) <= 2 * configured, intervals
        assert berth.workloads()[f"system.slice/{SERVICE}"]["cpu_cores"] is not None
        figures = {figure["figure"]: figure["available"] for figure in berth.json("status")["sampling"]["figures"]}
        if ebpf == "true":
            assert figures["run-time"], "and the kernel goes on counting"
    finally:
        berth.guest.run("for group in /sys/fs/cgroup/berthtest/user/*/; do echo 1 > $group/cgroup.kill; done; sleep 1; rmdir /sys/fs/cgroup/berthtest/user/*/ /sys/fs/cgroup/berthtest/user", check=False)
