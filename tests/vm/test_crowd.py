# SPDX-License-Identifier: Apache-2.0
"""One user has thousands of cgroups that come and go, and keeps berthd from nobody else.

BERTH_CROWD="LASTING CHURNING REPLACED" has other numbers: of cgroups that last, of those that come and go, and of these in a second. "2000 2000 80"
is for a machine with time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth import Berth
from longrun import result_of

LASTING, CHURNING, REPLACED = map(int, os.environ.get("BERTH_CROWD", "200 100 20").split())
LOOKS = 8
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
def test_churning_cgroups_of_one_user_take_no_turn_from_a_service(berth: Berth, ebpf: str) -> None:
    berth.start_units({SERVICE: "sleep infinity"})
    # What is left for the user is a part of what reading all of its cgroups takes, on any processor.
    berth.start("observe", f'[sampling]\ninterval = "1s"\nmax_cpu = 0.01\nebpf = {ebpf}', RULES)
    berth.wait_ticks(3)
    try:
        options = f"--service system.slice/{SERVICE} --lasting {LASTING} --churning {CHURNING} --replaced {REPLACED} --looks {LOOKS}"
        looks = result_of(berth.guest, Path(__file__).with_name("crowd.py"), options, 1800)["looks"]
        assert all(look["service"] for look in looks), looks
        assert all(look["read"] < LASTING / 2 for look in looks), "berthd read them all, and what a reading costs grows with them"
        figures = {figure["figure"]: figure["available"] for figure in berth.json("status")["sampling"]["figures"]}
        if ebpf == "true":
            assert figures["run-time"], "and the kernel goes on counting"
    finally:
        berth.guest.run("for group in /sys/fs/cgroup/berthtest/user/*/; do echo 1 > $group/cgroup.kill; done; sleep 1; rmdir /sys/fs/cgroup/berthtest/user/*/ /sys/fs/cgroup/berthtest/user", check=False)
