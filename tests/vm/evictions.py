# SPDX-License-Identifier: Apache-2.0
"""Evictions as tests see them, and what they are tried on."""

from __future__ import annotations

import shlex

from berth import Berth


def steps(berth: Berth, workload: str) -> list[str]:
    """What was done to it, oldest first: "terminate StopUnit"."""
    return [
        f"{e['attribute']} {e['new']}".strip() + ("" if e["result"] == "applied" else f" {e['result']}")
        for e in berth.logged("evict")
        if e["workload"] == workload
    ]


def ended(berth: Berth, workload: str) -> bool:
    return bool(steps(berth, workload)) and steps(berth, workload)[-1].startswith("end")


def wait_listed(berth: Berth, *ids: str) -> None:
    berth.guest.poll(lambda: set(ids) <= set(berth.workloads()), 60, what=f"berthd to list {ids}")


def wait_ended(berth: Berth, workload: str) -> list[str]:
    berth.guest.poll(lambda: ended(berth, workload), 60, what=lambda: f"{workload} to end: {steps(berth, workload)}")
    return steps(berth, workload)


def start_in_group(berth: Berth, name: str, command: str) -> int:
    """A container as a runtime without systemd makes it: a cgroup of its own, and a process of somebody else's in it."""
    script = f"echo $$ > /sys/fs/cgroup/berthtest/{name}/cgroup.procs; exec setpriv --reuid=65534 --clear-groups {command}"
    return int(
        berth.guest.run(
            "cd /sys/fs/cgroup; mkdir -p berthtest; "
            "for group in . berthtest; do echo '+cpuset +cpu +memory' > $group/cgroup.subtree_control; done; "
            f"mkdir -p berthtest/{name}; "
            f"setsid sh -c {shlex.quote(script)} </dev/null >/dev/null 2>&1 & echo $!"
        ).stdout
    )


def remove_groups(berth: Berth) -> None:
    """Ends what `start_in_group` started."""
    berth.guest.run(
        "test -d /sys/fs/cgroup/berthtest || exit 0; cd /sys/fs/cgroup/berthtest && "
        "for g in */; do echo 1 > $g/cgroup.kill; done; "
        "for try in $(seq 100); do rmdir */ ../berthtest 2>/dev/null; test -d ../berthtest || break; sleep 0.1; done",
        check=False,
    )
