# SPDX-License-Identifier: Apache-2.0
"""berthd is killed at random moments while its policies write: pins, quotas, memory limits and executors' scopes all go back.

BERTH_CHAOS_KILLS makes it longer; 500 are for a machine with time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from berth import LIGHT, Berth, run_command
from evictions import remove_groups, start_in_group
from longrun import result_of, seed_option
from test_frozen import GROUPS
from test_leaf import start_worker
from test_straggler import FILLER, GREEDY, IDLER, JOB, PROGRESS, RULES, STALLED, STALLED_PROGRAM

pytestmark = pytest.mark.usefixtures("default_isolation")
KILLS = int(os.environ.get("BERTH_CHAOS_KILLS", "4"))
FILL = "/dev/shm/berth-test-fill"
EXTRA = '[straggler]\nrestore_hold = "5s"\n[spark]\nwatch = true\ninterval = 0.5\n'
# Without a quota, a job grows by vCPUs of its own; all else is as without a setting.
ALL_RULES = RULES.replace("vcpus = 2\nprogress", 'isolation = "vcpus"\nvcpus = 2\nprogress') + GROUPS.replace("{", "{{").replace("}", "}}")
UNIT_DROP_IN = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=no\n"


def start_load(berth: Berth) -> None:
    """Work that is pinned, that pays, that grows, and that is divided; through systemd, and as plain cgroups."""
    commands = [run_command(unit, "sleep infinity", "CPUQuota=25%") for unit in GREEDY]
    commands.append(run_command(IDLER, "sleep infinity", "CPUQuota=200%"))
    # What it uses keeps best-effort work off a core of its home.
    commands.append(run_command(FILLER, LIGHT, "CPUQuota=400%"))
    berth.guest.run(f"cat > {STALLED_PROGRAM}; rm -f {PROGRESS}*; {' && '.join(commands)}", input=STALLED)
    berth.start_unit(JOB, f"sh -c 'head -c 59M /dev/zero > {FILL}; exec python3 {STALLED_PROGRAM}'", "MemoryHigh=64M")
    start_worker(berth)
    for name in ("one", "two"):
        start_in_group(berth, name, "sleep infinity")


def test_whenever_it_is_killed_everything_goes_back(berth: Berth) -> None:
    guest = berth.guest
    start_load(berth)
    berth.add_unit_drop_in(UNIT_DROP_IN)
    berth.start("enforce", EXTRA, ALL_RULES.format(progress=PROGRESS, deadline="20s"))
    berth.stop()
    try:
        result = result_of(guest, Path(__file__).with_name("chaos.py"), f"--kills {KILLS} {seed_option()}", 60 + 30 * KILLS)
        print(json.dumps({name: result[name] for name in ("rounds", "changed")}))
        assert not result["wrong"], json.dumps(result["wrong"], indent=1)[:4000]
        # A berthd that never wrote anything would pass, too.
        assert result["changed"]["cpuset.cpus"] >= KILLS // 4, result["changed"]
    finally:
        guest.run(f"rm -f {FILL}")
        remove_groups(berth)
