# SPDX-License-Identifier: Apache-2.0
"""A user who owns a part of the tree tries to keep its work from being confined and ended, while memory is short."""

from __future__ import annotations

import shlex

from berth import MIB, Berth, holder
from evictions import steps, wait_ended, wait_listed

GROUND = "berthtest/user"
UID = 65534
# A name, a name, a write, a missing controller, a threaded group.
NAMES = ("x.slice", "berthd.service", "writes", "bare/in", "threads/in")
LEAVER = f"{GROUND}/app/leaver"
RULES = """
[[workload]]
match = "system.slice/berth-test-ls*.service"
class = "latency-sensitive"
vcpus = 2

[[workload]]
match = "system.slice/berth-test-be-honest.service"
class = "best-effort"
priority = 5
""" + "".join(f'\n[[workload]]\nmatch = "{GROUND}/app/{name}"\nclass = "best-effort"\n' for name in (*NAMES, "leaver"))
SERVICE, HONEST = "berth-test-ls-web.service", "berth-test-be-honest.service"
SIZE_MIB = 120


def as_user(command: str) -> str:
    return f"setpriv --reuid={UID} --regid={UID} --clear-groups sh -c {shlex.quote(command)}"


def delegate(berth: Berth, *names: str) -> None:
    """As systemd does: the directory and the files that move processes, but not those that limit the group. Its user makes the groups."""
    berth.guest.run(
        "cd /sys/fs/cgroup; mkdir -p berthtest/user; "
        "for group in . berthtest; do echo '+cpuset +cpu +memory' > $group/cgroup.subtree_control; done; "
        f"cd {GROUND}; chown {UID}:{UID} . cgroup.procs cgroup.threads cgroup.subtree_control"
    )
    make = (
        f"cd /sys/fs/cgroup/{GROUND} && echo '+cpuset +cpu +memory' > cgroup.subtree_control && mkdir app && "
        f"echo '+cpuset +cpu +memory' > app/cgroup.subtree_control && cd app && mkdir -p {' '.join(names)}"
    )
    berth.guest.run(as_user(make))


def start(berth: Berth, enter: str, command: str) -> None:
    """Runs it as the user, once `enter` has moved the shell to its group."""
    script = f"cd /sys/fs/cgroup/{GROUND}/app; {enter}; exec setpriv --reuid={UID} --clear-groups {command}"
    berth.guest.run(f"setsid sh -c {shlex.quote(script)} </dev/null >/dev/null 2>&1 &")


def leaver() -> str:
    """Holds memory, and answers SIGTERM by moving to another group of its user."""
    move = f"open('/sys/fs/cgroup/{GROUND}/app/elsewhere/cgroup.procs', 'w').write(str(os.getpid()))"
    script = f"""
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: {move})
held = bytes([1]) * ({SIZE_MIB} << 20)
while True:
    time.sleep(1e9)
"""
    return f"python3 -c {shlex.quote(script)}"


def remove(berth: Berth) -> None:
    berth.guest.run(
        f"cd /sys/fs/cgroup && echo 1 > {GROUND}/cgroup.kill; "
        f"for try in $(seq 100); do find {GROUND} -depth -type d -exec rmdir {{}} + 2>/dev/null; test -d {GROUND} || break; sleep 0.1; done",
        check=False,
    )


def test_a_user_spares_none_of_its_work_by_any_of_five_ways(berth: Berth) -> None:
    ids = [f"{GROUND}/app/{name}" for name in NAMES]
    berth.start_units({SERVICE: "sleep infinity", HONEST: holder(SIZE_MIB)})
    berth.wait_held_by({HONEST: SIZE_MIB})
    honest = berth.main_pids(HONEST)
    try:
        delegate(berth, *NAMES)
        berth.guest.run(as_user(f"echo threaded > /sys/fs/cgroup/{GROUND}/app/threads/in/cgroup.type"))
        for name in NAMES:
            # A process enters a threaded group from within its domain.
            threads = "echo $$ > threads/cgroup.procs; echo $$ > threads/in/cgroup.threads"
            start(berth, threads if name == "threads/in" else f"echo $$ > {name}/cgroup.procs", holder(SIZE_MIB))
        berth.start("enforce", "[eviction]\ngrace = 3", RULES)
        wait_listed(berth, *ids)
        berth.wait_pinned(SERVICE)
        pool = berth.cpuset(HONEST)
        for _ in range(6):
            berth.guest.run(as_user(f"echo 0-7 > /sys/fs/cgroup/{GROUND}/app/writes/cpuset.cpus"))
            berth.wait_ticks(8)
        outermost = f"cat /sys/fs/cgroup/{GROUND}/cpuset.cpus"
        berth.guest.poll(lambda: berth.guest.run(outermost).stdout.strip() == pool, 60, what="the user's outermost group to be confined")
        assert [w for w in berth.workloads() if w in ids and not berth.workloads()[w]["managed"]] == []
        used = berth.settled_memory_in_use()
        cap = int((used - (len(ids) - 0.5) * SIZE_MIB * MIB) / 0.95)
        berth.configure("enforce", f"[eviction]\ngrace = 3\n[oversell]\nmemory_cap = {cap}\nevict = true", RULES)
        for workload in ids:
            assert wait_ended(berth, workload)[-1] == "end", workload
        assert steps(berth, f"system.slice/{HONEST}") == [] and berth.main_pids(HONEST) == honest
        berth.stop()
        assert berth.guest.run(outermost).stdout.strip() in ("", "0-7"), "and it has its vCPUs again"
    finally:
        remove(berth)


def test_a_process_that_leaves_a_victim_ends_with_it(berth: Berth) -> None:
    group = f"/sys/fs/cgroup/{LEAVER}"
    try:
        delegate(berth, "leaver", "elsewhere")
        start(berth, "echo $$ > leaver/cgroup.procs", leaver())
        berth.guest.poll(
            lambda: int(berth.guest.run(f"cat {group}/memory.current").stdout) >= SIZE_MIB * MIB, 60, what="the work to hold its memory"
        )
        berth.start("enforce", "[eviction]\ngrace = 30", RULES)
        wait_listed(berth, LEAVER)
        cap = int((berth.settled_memory_in_use() - SIZE_MIB * MIB / 2) / 0.95)
        berth.configure("enforce", f"[eviction]\ngrace = 30\n[oversell]\nmemory_cap = {cap}\nevict = true", RULES)
        assert wait_ended(berth, LEAVER) == ["terminate SIGTERM", "kill SIGKILL", "end"]
        left = f"cat {group}/cgroup.procs /sys/fs/cgroup/{GROUND}/app/elsewhere/cgroup.procs"
        berth.guest.poll(lambda: berth.guest.run(left).stdout == "", 60, what="the process that left to end")
    finally:
        remove(berth)
