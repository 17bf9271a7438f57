# SPDX-License-Identifier: Apache-2.0
"""Containers come and go in masses while every policy writes. berthd does not grow, and touches nothing that is not its own.

BERTH_CHURN="SECONDS CONTAINERS" makes it longer. An hour with 1,000 containers is for a machine with time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth import MIB, Berth
from longrun import result_of, seed_option

pytestmark = pytest.mark.usefixtures("default_isolation")
SECONDS, CONTAINERS = map(int, os.environ.get("BERTH_CHURN", "36 200").split())
CAP = 1200 * MIB
INNOCENT = ("berth-test-left_alone-a.service", "berth-test-left_alone-b.service")
EXTRA = f"""
[oversell]
memory_cap = {CAP}
evict = true
evict_highest = true
[spark]
watch = true
[eviction]
grace = 3
[straggler]
restore_hold = "5s"
"""
RULES = """
[[workload]]
match = "berthtest/ls-*"
class = "latency-sensitive"
vcpus = 1

[[workload]]
match = "berthtest/job-*"
class = "latency-sensitive"
# Without a quota, a job grows by vCPUs of its own.
isolation = "vcpus"
vcpus = 1
progress = {file = "/run/berth-test-churn/job"}
deadline = "60s"

[[workload]]
match = "berthtest/be-*"
class = "best-effort"
"""
# The first readings are for what berthd keeps of a past that has an end. Of the others the peaks of each half are compared:
# while containers are evicted, berthd holds less for some seconds. Descriptors have more slack: berthd keeps files of a container
# open that it reads often, and how many containers have such files differs between the halves.
LEFT_OUT = 4


@pytest.fixture
def innocent(berth: Berth) -> Iterator[None]:
    """Units without a rule; each process and each attribute stays what it was, while berth runs and afterwards."""
    berth.start_units(dict.fromkeys(INNOCENT, "sleep infinity"), "MemoryHigh=64M", "CPUQuota=50%")

    def seen() -> tuple[dict[str, int], dict[str, str]]:
        return berth.main_pids(*INNOCENT), {p: v for p, v in berth.attributes().items() if any(u in p for u in INNOCENT)}

    before = seen()
    yield
    assert seen() == before
    berth.stop()
    assert seen() == before
    berth.guest.run("rmdir /sys/fs/cgroup/berthtest; rm -r /run/berth-test-churn*", check=False)


def decisions(berth: Berth, where: str) -> int:
    return int(berth.guest.run(["sqlite3", "/var/lib/berth/decisions.db", f"select count(*) from decisions where {where}"]).stdout)


def test_containers_that_come_and_go_leave_nothing_in_berthd(berth: Berth, innocent: None) -> None:
    guest = berth.guest
    guest.run("rm -rf /var/lib/berth/decisions.db*")
    berth.start("enforce", EXTRA, RULES)
    pid = berth.pid()
    options = f"--seconds {SECONDS} --containers {CONTAINERS} --cap {CAP} {seed_option()}"
    result = result_of(guest, Path(__file__).with_name("churn.py"), options, SECONDS * 2 + 300)
    readings = result["readings"]
    print(*map(json.dumps, readings), f"{len(result['evicted'])} evicted", sep="\n")

    assert berth.pid() == result["pid"] == pid
    # A slow host has fewer of them.
    assert len(readings) >= 2 * LEFT_OUT, len(readings)
    middle = (len(readings) + LEFT_OUT) // 2
    for what, slack in (("anon_kib", 2048), ("kernel_kib", 4096), ("descriptors", CONTAINERS // 2), ("threads", 8)):
        earlier, later = (max(r[what] for r in part) for part in (readings[LEFT_OUT:middle], readings[middle:]))
        assert later <= 1.03 * earlier + slack, (what, [r[what] for r in readings])
    assert result["evicted"], "memory never pressed"
    assert all(name.startswith("be-") for name in result["evicted"]), result["evicted"]
    assert decisions(berth, "workload not in ('', 'node') and workload not like 'berthtest/%'") == 0
    assert decisions(berth, "kind = 'evict' and workload not like 'berthtest/be-%'") == 0
    assert decisions(berth, "policy = 'straggler'") > 0, "no job was a straggler"
    guest.poll(lambda: not berth.workloads(), 120, what="berthd to have forgotten all of them")
    berth.wait_no_undo_records(60)
    assert berth.json("status")["mode"] == "enforce"
