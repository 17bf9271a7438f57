# SPDX-License-Identifier: Apache-2.0
"""Workloads are ended: by hand and by memory, gently first, the right ones, and nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from berth import EVICTION_RULES, MIB, Berth, holder
from evictions import remove_groups, start_in_group, steps, wait_ended, wait_listed

pytestmark = pytest.mark.usefixtures("default_isolation")
ID = "0123456789abcdef" * 4
# For workloads that ignore being asked to end, which are killed after it.
SHORT = "eviction.grace = 3"
# For workloads that end when they are asked to: a slow host takes its time.
LONG = "eviction.grace = 120"


def main_pid(berth: Berth, unit: str) -> int:
    return berth.main_pids(unit)[unit]


def state(berth: Berth, unit: str) -> str:
    return berth.guest.run(f"systemctl show -P ActiveState {unit}").stdout.strip()


def alive(berth: Berth, pid: int) -> bool:
    return berth.guest.run(f"kill -0 {pid}", check=False).returncode == 0


def wait_at_rest(berth: Berth, unit: str) -> None:
    """berthd sees an empty cgroup earlier than systemd does."""
    berth.guest.poll(lambda: state(berth, unit) in ("inactive", "failed"), 30, what=lambda: f"{unit} to come to rest: {state(berth, unit)}")


def wait_dead(berth: Berth, pid: int) -> None:
    """A dead process has left its cgroup, and has a pid until its parent takes notice."""
    berth.guest.poll(lambda: not alive(berth, pid), 30, what=f"process {pid} to be gone")


@pytest.fixture
def others(berth: Berth) -> Iterator[dict[str, int]]:
    """A latency-sensitive service and one that is no workload at all, which nothing here may touch."""
    units = ("berth-test-ls-web.service", "berth-test-left_alone.service")
    berth.start_units(dict.fromkeys(units, "sleep infinity"))
    pids = berth.main_pids(*units)
    yield pids
    assert berth.main_pids(*units) == pids
    remove_groups(berth)


def test_a_service_is_evicted_by_hand(berth: Berth, others: dict[str, int]) -> None:
    unit, workload = "berth-test-be-a.service", "system.slice/berth-test-be-a.service"
    berth.start_unit(unit, "stress-ng --vm 1 --vm-bytes 32M --vm-hang 0 --quiet")
    berth.start_unit("berth-test-be-b.service")
    bystander = main_pid(berth, "berth-test-be-b.service")
    berth.start("observe", LONG, EVICTION_RULES)
    wait_listed(berth, workload)
    refused = berth.guest.run(f"berthctl evict --yes {workload}", check=False)
    assert refused.returncode == 3 and "observe mode" in refused.stderr
    assert state(berth, unit) == "active"

    berth.guest.run("berthctl mode enforce")
    assert berth.guest.run(f"berthctl evict {workload} </dev/null", check=False).returncode == 2
    assert berth.guest.run("berthctl evict --yes system.slice/berth-test-ls-web.service", check=False).returncode == 3
    assert berth.guest.run("berthctl evict --yes system.slice/berth-test-left_alone.service", check=False).returncode == 1
    nobody = berth.guest.run(f"setpriv --reuid=65534 --clear-groups berthctl evict --yes {workload}", check=False)
    assert nobody.returncode == 3 and "org.berth.node1.evict" in nobody.stderr
    decision = json.loads(berth.guest.run(f"berthctl evict --yes --json {workload}").stdout)["decision"]
    assert wait_ended(berth, workload) == ["terminate StopUnit", "end"]
    wait_at_rest(berth, unit)
    assert main_pid(berth, "berth-test-be-b.service") == bystander
    entries = berth.json("explain", decision)["decision"]["entries"]
    assert {e["policy"] for e in entries} == {"operator"}
    assert {message["BERTH_ATTRIBUTE"] for message in berth.journal_of(decision)} == {"terminate", "end"}
    assert 'berth_evictions_total{step="end"} 1' in berth.guest.run("berthctl metrics").stdout
    # Nothing of it is left with systemd.
    berth.guest.poll(lambda: not [d for d in berth.drop_ins() if "be-a" in d], 30, what="its drop-ins to go")


def test_a_container_with_a_scope_of_its_own(berth: Berth, others: dict[str, int]) -> None:
    scope = f"libpod-{ID}.scope"
    workload = f"machine.slice/{scope}"
    berth.guest.run(
        f"systemd-run --quiet --scope --slice=machine.slice --unit={scope} stress-ng --cpu 1 --cpu-load 1 --quiet "
        "</dev/null >/dev/null 2>&1 &"
    )
    berth.start("enforce", LONG, EVICTION_RULES)
    wait_listed(berth, workload)
    berth.guest.run(f"berthctl evict --yes {workload}")
    assert wait_ended(berth, workload) == ["terminate StopUnit", "end"]
    wait_at_rest(berth, scope)
    berth.guest.run(f"systemctl reset-failed {scope}", check=False)


def test_a_container_without_a_unit_gets_signals(berth: Berth, others: dict[str, int]) -> None:
    berth.start("enforce", LONG, EVICTION_RULES)
    heeds = start_in_group(berth, "heeds", "sleep infinity")
    ignores = start_in_group(berth, "ignores", "sh -c 'trap \"\" TERM; while :; do sleep 1; done'")
    wait_listed(berth, "berthtest/heeds", "berthtest/ignores")
    berth.guest.run("berthctl evict --yes berthtest/heeds")
    assert wait_ended(berth, "berthtest/heeds") == ["terminate SIGTERM", "end"]
    wait_dead(berth, heeds)
    assert alive(berth, ignores)
    assert berth.configure("enforce", SHORT, EVICTION_RULES).returncode == 0
    berth.guest.run("berthctl evict --yes berthtest/ignores")
    assert wait_ended(berth, "berthtest/ignores") == ["terminate SIGTERM", "kill cgroup.kill", "end"]
    wait_dead(berth, ignores)


def test_a_workload_that_forks_at_sigterm_is_killed(berth: Berth, others: dict[str, int]) -> None:
    berth.guest.write_file("/root/hydra", "#!/bin/sh\ntrap 'sh /root/hydra & exit' TERM\nwhile :; do sleep 1; done\n")
    berth.guest.run("chmod 755 /root; chmod 644 /root/hydra")
    berth.start("enforce", SHORT, EVICTION_RULES)
    first = start_in_group(berth, "hydra", "sh /root/hydra")
    wait_listed(berth, "berthtest/hydra")
    berth.guest.run("berthctl evict --yes berthtest/hydra")
    assert wait_ended(berth, "berthtest/hydra") == ["terminate SIGTERM", "kill cgroup.kill", "end"]
    wait_dead(berth, first)
    assert not berth.guest.run("pgrep -f '[/]root/hydra'", check=False).stdout


def test_a_unit_that_ignores_being_stopped_is_killed_by_its_cgroup(berth: Berth, others: dict[str, int]) -> None:
    unit, workload = "berth-test-be-deaf.service", "system.slice/berth-test-be-deaf.service"
    berth.guest.write_file("/root/deaf", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    berth.start_unit(unit, "sh /root/deaf")
    berth.start("enforce", SHORT, EVICTION_RULES)
    wait_listed(berth, workload)
    berth.guest.run(f"berthctl evict --yes {workload}")
    assert wait_ended(berth, workload) == ["terminate StopUnit", "kill cgroup.kill", "end"]
    # By the log's clock, which no slow command of the test is in.
    times = [e["time"] for e in berth.logged("evict") if e["workload"] == workload]
    assert times[-1] - times[0] < 60, "long before TimeoutStopSec=90"
    wait_at_rest(berth, unit)


def test_restart_always_does_not_bring_it_back(berth: Berth, others: dict[str, int]) -> None:
    unit, workload = "berth-test-be-again.service", "system.slice/berth-test-be-again.service"
    berth.guest.write_file(
        f"/run/systemd/system/{unit}", "[Service]\nExecStart=sleep infinity\nRestart=always\nRestartSec=100ms\n"
    )
    berth.guest.run(f"systemctl daemon-reload; systemctl start {unit}")
    try:
        first = main_pid(berth, unit)
        berth.guest.run(f"kill -9 {first}")
        berth.guest.poll(lambda: main_pid(berth, unit) not in (0, first), 30, what="systemd to start it anew")
        berth.start("enforce", LONG, EVICTION_RULES)
        wait_listed(berth, workload)
        berth.guest.run(f"berthctl evict --yes {workload}")
        assert wait_ended(berth, workload) == ["terminate StopUnit", "end"]
        berth.guest.poll(f"test $(systemctl show -P ActiveState {unit}) = inactive", 30, what="its unit to come to rest")
        # Its RestartSec= is shorter than a tick.
        berth.wait_ticks(2)
        assert state(berth, unit) == "inactive" and main_pid(berth, unit) == 0
        berth.guest.run(f"systemctl start {unit}")
        assert state(berth, unit) == "active", "it is as good as before"
    finally:
        # Giving back to a unit that has just stopped may make systemd create its cgroup anew.
        berth.stop()
        berth.guest.run(f"systemctl stop {unit}; rm -f /run/systemd/system/{unit}; systemctl daemon-reload", check=False)


def test_others_that_are_bound_to_it_keep_a_unit(berth: Berth, others: dict[str, int]) -> None:
    unit, workload = "berth-test-be-base.service", "system.slice/berth-test-be-base.service"
    berth.start_unit(unit)
    berth.start_unit("berth-test-ls-on-top.service", "sleep infinity", f"BindsTo={unit}", f"After={unit}")
    pids = [main_pid(berth, unit), main_pid(berth, "berth-test-ls-on-top.service")]
    berth.start("enforce", SHORT, EVICTION_RULES)
    wait_listed(berth, workload)
    refused = berth.guest.run(f"berthctl evict --yes {workload}", check=False)
    assert refused.returncode == 3 and "bound to that unit" in refused.stderr, refused.stderr
    assert [main_pid(berth, unit), main_pid(berth, "berth-test-ls-on-top.service")] == pids


def test_a_cgroup_that_was_replaced_meanwhile_is_not_hit(berth: Berth, others: dict[str, int]) -> None:
    deaf = "sh -c 'trap \"\" TERM; while :; do sleep 1; done'"
    grace = 5
    berth.start("enforce", f"eviction.grace = {grace}", EVICTION_RULES)
    old = start_in_group(berth, "reborn", deaf)
    wait_listed(berth, "berthtest/reborn")
    # At once, for the next step comes after the grace.
    berth.guest.run(
        "berthctl evict --yes berthtest/reborn; cd /sys/fs/cgroup/berthtest && echo 1 > reborn/cgroup.kill && "
        "for i in $(seq 100); do rmdir reborn 2>/dev/null && break; sleep 0.1; done; test ! -d reborn"
    )
    new = start_in_group(berth, "reborn", deaf)
    wait_dead(berth, old)
    (evicted,) = [e["time"] for e in berth.logged("evict") if e["attribute"] == "terminate"]
    berth.wait_past(evicted + grace)
    berth.wait_ticks(2)
    assert alive(berth, new)
    assert steps(berth, "berthtest/reborn") == ["terminate SIGTERM", "end"]


def test_a_new_run_in_the_same_cgroup_is_not_hit(berth: Berth, others: dict[str, int]) -> None:
    deaf = "sh -c 'trap \"\" TERM; while :; do sleep 1; done'"
    grace = 5
    berth.start("enforce", f"eviction.grace = {grace}", EVICTION_RULES)
    old = start_in_group(berth, "refilled", deaf)
    wait_listed(berth, "berthtest/refilled")
    berth.guest.run("berthctl evict --yes berthtest/refilled; echo 1 > /sys/fs/cgroup/berthtest/refilled/cgroup.kill")
    new = start_in_group(berth, "refilled", deaf)
    wait_dead(berth, old)
    # "end" alone where berth saw the empty group; "left" where it had been filled again by then.
    assert wait_ended(berth, "berthtest/refilled") in (["terminate SIGTERM", "end"], ["terminate SIGTERM", "end left"])
    (evicted,) = [e["time"] for e in berth.logged("evict") if e["attribute"] == "terminate"]
    berth.wait_past(evicted + grace)
    berth.wait_ticks(2)
    assert alive(berth, new)


def test_a_squeeze_evicts_the_right_ones_one_at_a_time(berth: Berth, others: dict[str, int]) -> None:
    size = 160
    victims = ["first", "low", "high"]  # marked; of lower priority; of the top priority, which stays
    units = [f"berth-test-be-{name}.service" for name in victims]
    ids = [f"system.slice/{unit}" for unit in units]
    berth.start_units(dict.fromkeys(units, holder(size)))
    berth.wait_held_by(dict.fromkeys(units, size))
    high = main_pid(berth, units[2])
    berth.start("enforce", SHORT, EVICTION_RULES)
    wait_listed(berth, *ids)
    used = berth.settled_memory_in_use()
    # Two of the three have to go: one and a half times what one uses is too much.
    cap = int((used - 1.5 * size * MIB) / 0.95)
    settings = f"{SHORT}\n[oversell]\nmemory_cap = {cap}"
    berth.configure("enforce", settings, EVICTION_RULES)
    berth.wait_ticks(5)
    assert all(not steps(berth, workload) for workload in ids), "it is not told to evict"

    berth.configure("enforce", f"{settings}\nevict = true", EVICTION_RULES)
    for workload in ids[:2]:
        assert wait_ended(berth, workload)[0] == "terminate StopUnit"
    # Longer than the second that a step is given then.
    berth.wait_ticks(8)
    assert steps(berth, ids[2]) == [] and main_pid(berth, units[2]) == high
    entries = berth.logged("evict")
    assert [e["workload"] for e in entries if e["attribute"] == "terminate"] == ids[:2]
    assert {e["policy"] for e in entries} == {"oversell"} and all("%" in e["reason"] or e["attribute"] == "end" for e in entries)


def test_a_victim_that_comes_back_does_not_save_the_next_one(berth: Berth, others: dict[str, int]) -> None:
    size = 160
    unit, workload = "berth-test-be-low.service", "system.slice/berth-test-be-low.service"
    again = "mkdir -p $group; sh -c 'echo $$ > $group/cgroup.procs; exec $0' /root/hold"
    berth.guest.write_file("/root/hold", f"#!/bin/sh\nexec {holder(size)}\n")
    berth.guest.write_file(
        "/root/lizard",
        f"#!/bin/sh\nexport group=/sys/fs/cgroup/berthtest/lizard\nwhile test -e /run/lizard; do {again}; done\n",
    )
    # The workload of the top priority always stays.
    berth.start_units({unit: holder(size), "berth-test-be-high.service": "sleep infinity"})
    berth.wait_held_by({unit: size})
    berth.guest.run(
        "chmod 755 /root/hold; cd /sys/fs/cgroup; mkdir -p berthtest; "
        "for group in . berthtest; do echo '+cpuset +cpu +memory' > $group/cgroup.subtree_control; done; "
        "touch /run/lizard; setsid sh /root/lizard </dev/null >/dev/null 2>&1 &"
    )
    try:
        berth.guest.poll(
            f"test $(cat /sys/fs/cgroup/berthtest/lizard/memory.current) -gt {size * MIB}", 60, what="the lizard to grow"
        )
        berth.start("enforce", SHORT, EVICTION_RULES)
        wait_listed(berth, "berthtest/lizard", workload)
        # One of the two has to go.
        cap = int((berth.settled_memory_in_use() - 0.5 * size * MIB) / 0.95)
        berth.configure("enforce", f"{SHORT}\n[oversell]\nmemory_cap = {cap}\nevict = true", EVICTION_RULES)
        assert wait_ended(berth, workload)[0] == "terminate StopUnit"
        # "left" where its cgroup was filled again before berth looked.
        # One that the host keeps from ending within the second that it gets is killed.
        first = [step for step in steps(berth, "berthtest/lizard") if not step.startswith("kill")]
        assert first in (["terminate SIGTERM", "end"], ["terminate SIGTERM", "end left"]), "it went first, and once"
    finally:
        berth.guest.run("rm -f /run/lizard; echo 1 > /sys/fs/cgroup/berthtest/lizard/cgroup.kill", check=False)


def test_stopping_midway_leaves_nothing_half_done(berth: Berth, others: dict[str, int]) -> None:
    deaf = "sh -c 'trap \"\" TERM; while :; do sleep 1; done'"
    before = berth.attributes()
    grace = 5
    berth.start("enforce", f"eviction.grace = {grace}", EVICTION_RULES)
    pid = start_in_group(berth, "midway", deaf)
    wait_listed(berth, "berthtest/midway")
    # At once, for the next step comes after the grace.
    now = berth.guest.run("berthctl evict --yes berthtest/midway >&2; systemctl stop berthd.service; date +%s").stdout
    berth.wait_past(int(now) + grace)
    assert alive(berth, pid), "the next step is nobody's without berthd"
    # Groups get controllers, and so attributes, where a child wants them; none may have another value.
    after = berth.attributes()
    assert {path: after[path] for path in before if path in after} == {p: v for p, v in before.items() if p in after}
