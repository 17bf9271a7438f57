# SPDX-License-Identifier: Apache-2.0
"""A squeeze by processes that hold memory takes a host from taking work to taking none, to ending some, and back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from berth import EAR, EVICTION_RULES, MIB, Berth, holder
from guestlib import Guest

pytestmark = pytest.mark.usefixtures("default_isolation")
STATE = "/run/berth/state.json"
NODE = "org.berth.Node1 /org/berth/Node1 org.berth.Node1.Manager"
LS = "berth-test-ls-web.service"
UNMANAGED = "berth-test-unmanaged.service"
HIGH = "berth-test-be-high.service"
# Best-effort, of the top priority as well: what presses is never a candidate.
PRESS = ("berth-test-be-high-press-1.service", "berth-test-be-high-press-2.service")
# As they have to go: those marked evictable, then by priority, and alike ones by the CPU time that would be lost; their
# names are in another order.
VICTIMS = (
    "berth-test-be-first-b.service",
    "berth-test-be-first-a.service",
    "berth-test-be-low.service",
    "berth-test-be-mid-b.service",
    "berth-test-be-mid-a.service",
)
DEAR = (VICTIMS[1], VICTIMS[4])
SIZE = 80


def workload(unit: str) -> str:
    return f"system.slice/{unit}"


def active(guest: Guest, unit: str) -> bool:
    return guest.run(f"systemctl is-active --quiet {unit}", check=False).returncode == 0


def memory_state(guest: Guest) -> dict[str, Any]:
    return json.loads(guest.run(f"cat {STATE}").stdout)["memory"]


def expect_state(guest: Guest, wanted: str) -> dict[str, Any]:
    """In the file, on the bus and as a metric."""
    guest.poll(lambda: memory_state(guest)["state"] == wanted, 90, what=f"memory to be in state {wanted}")
    shown = guest.run(f"busctl get-property {NODE} MemoryState").stdout.split()[1].strip('"')
    takes_work = f'berth_takes_work{{resource="memory"}} {int(wanted == "schedule")}'
    assert shown == wanted
    assert takes_work in guest.run("berthctl metrics").stdout
    return memory_state(guest)


def steps(berth: Berth) -> list[tuple[str, str]]:
    """Of all victims; one that the host keeps from ending within the second that it gets is killed."""
    taken = [(e["workload"].removeprefix("system.slice/"), e["attribute"]) for e in berth.logged("evict")]
    return [step for step in taken if step[1] != "kill"]


def terminated(berth: Berth) -> list[str]:
    """In their order; where memory rises fast, one plan ends several."""
    return [e["workload"].removeprefix("system.slice/") for e in berth.logged("evict") if e["attribute"] == "terminate"]


def untouched(berth: Berth, units: tuple[str, ...]) -> dict[str, Any]:
    """All that eviction could have done to them: their process, how often it was started, and each limit's bytes."""
    limits = berth.attributes()
    shown = berth.guest.run(f"systemctl show -p MainPID -p NRestarts -p ActiveEnterTimestampMonotonic {' '.join(units)}").stdout
    return {
        unit: (
            life,
            # A pin follows the use of services.
            {path: value for path, value in limits.items() if f"/{unit}/" in path and not path.endswith("/cpuset.cpus")},
        )
        for unit, life in zip(units, shown.strip().split("\n\n"), strict=True)
    }


@pytest.fixture
def node(berth: Berth) -> Iterator[Guest]:
    """Work of every kind, each holding memory, and nobody else's doing with it."""
    guest = berth.guest
    berth.start_units(dict.fromkeys((LS, UNMANAGED), holder(40)))
    # More than all that starting takes; by CPU time, for an emulated host may be slow.
    burn = "(ulimit -t 5; while :; do :; done); exec "
    for unit in (*VICTIMS, HIGH):
        command = holder(SIZE)
        if unit in DEAR:
            command = burn + command
        guest.write_file(
            f"/run/systemd/system/{unit}",
            f"[Service]\nExecStart=sh -c {shlex.quote(command)}\nRestart=always\nRestartSec=100ms\n",
        )
    guest.run(f"rm -f /run/berth/reservations.json; systemctl daemon-reload; systemctl start {' '.join((*VICTIMS, HIGH))}")
    berth.wait_held_by({**dict.fromkeys((*VICTIMS, HIGH), SIZE), LS: 40})
    yield guest
    units = " ".join((*VICTIMS, HIGH))
    guest.run(
        f"systemctl stop {units} {' '.join(PRESS)} {EAR}; rm -f /run/systemd/system/berth-test-be-*.service; "
        # systemd forgets units without a file, and may leave their empty cgroups.
        "systemctl daemon-reload; rmdir /sys/fs/cgroup/system.slice/berth-test-be-*.service; true",
        check=False,
    )


def start_with_room(berth: Berth) -> int:
    """berth, with so much memory to go by that three quarters of it are in use; returns that, in bytes."""
    cap = round(berth.settled_memory_in_use() / 0.75)
    berth.start("enforce", settings(cap), EVICTION_RULES)
    wanted = {workload(unit) for unit in (*VICTIMS, HIGH, LS)}
    berth.guest.poll(lambda: wanted <= set(berth.workloads()), 90, what=f"berthd to list {sorted(wanted)}")
    berth.wait_pinned(LS)
    return cap


def settings(cap: int, evict: bool = False) -> str:
    return f"oversell.memory_cap = {cap}\noversell.evict = {str(evict).lower()}\neviction.grace = 3"


def press(berth: Berth, unit: str, target: float) -> None:
    """Holds so much that this is in use."""
    overhead = 12 * MIB
    mib = max(8, round((target - berth.memory_in_use() - overhead) / MIB))
    berth.hold(unit, mib)


def test_a_squeeze_walks_through_all_states_and_back(berth: Berth, node: Guest) -> None:
    guest = node
    cap = start_with_room(berth)
    victim = sum(berth.memory_of(unit) for unit in VICTIMS) / len(VICTIMS)
    expect_state(guest, "schedule")
    bystanders = (LS, UNMANAGED, HIGH)
    before = untouched(berth, bystanders)
    berth.listen()
    promised = '{"schema": "berth.request/1", "id": "berth-test-later.service", "class": "best-effort", "vcpus": 1}'
    guest.run(f"echo '{promised}' | berthctl admit --request - --hold 20s")

    # Closed: work that asks is turned away, and nobody is harmed.
    press(berth, PRESS[0], 0.9 * cap)
    closed = expect_state(guest, "no-schedule")
    assert 0.85 <= closed["utilisation"] < 0.95
    refused = guest.run(f"echo '{promised.replace('later', 'other')}' | berthctl admit --request -", check=False)
    assert refused.returncode == 3 and "memory is in state no-schedule" in refused.stderr, refused
    assert "has to fall below 80 %" in refused.stdout, refused
    assert not terminated(berth)

    # Above the threshold, and not told to evict: named, and not done.
    press(berth, PRESS[1], 0.95 * cap + 2.5 * victim)
    assert expect_state(guest, "evict")["utilisation"] >= 0.95
    guest.poll(lambda: berth.json("plan")["findings"]["oversell"]["evict_count"] >= 2, 60, what="two to be named")
    oversell = berth.json("plan")["findings"]["oversell"]
    assert oversell["order"] == [workload(unit) for unit in VICTIMS], oversell["candidates"]
    figures = [oversell["candidates"][workload(unit)] for unit in VICTIMS]
    assert [(f["stage"], f["priority"]) for f in figures] == [(1, 10), (1, 10), (2, 1), (2, 5), (2, 5)]
    assert figures[0]["cost"] < figures[1]["cost"] and figures[3]["cost"] < figures[4]["cost"], figures
    assert json.loads(guest.run(f"cat {STATE}").stdout)["evict_count"] >= 2
    assert not [a for a in berth.json("plan")["actions"] if a["kind"] == "evict"]
    berth.wait_ticks(5)
    assert not steps(berth)

    # Told to: in that order, one after the other, as many as it takes.
    assert berth.configure("enforce", settings(cap, evict=True), EVICTION_RULES).returncode == 0
    expect_state(guest, "no-schedule")
    gone = terminated(berth)
    print("evicted:", gone)
    assert gone == list(VICTIMS[: len(gone)]) and 2 <= len(gone) <= 4, gone
    guest.poll(lambda: len([s for s in steps(berth) if s[1] == "end"]) == len(gone), 60, what="the last one's end")
    for unit in gone:
        assert [step for name, step in steps(berth) if name == unit] == ["terminate", "end"]
    for entry in berth.logged("evict"):
        if entry["attribute"] != "terminate":
            continue
        assert entry["policy"] == "oversell" and entry["new"] == "StopUnit"
        # Each by what was in use then.
        assert float(re.search(r"([\d.]+) % of \S+ \S+ is in use", entry["reason"])[1]) >= 95, entry["reason"]
        done = [message["BERTH_ATTRIBUTE"] for message in berth.journal_of(entry["decision"])]
        assert (done[0], done[-1]) == ("terminate", "end"), done
        assert berth.json("explain", entry["decision"])["decision"]["entries"]
    ends = berth.wait_heard("Evicted", len(gone), lambda step: step[1] == "end")
    assert {end[0] for end in ends} == {workload(unit) for unit in gone}
    # systemd was asked to stop them, and so does not start them anew.
    berth.wait_ticks(2)
    assert [unit for unit in VICTIMS if active(guest, unit)] == list(VICTIMS[len(gone) :])
    assert untouched(berth, bystanders) == before

    # Back: work that asks is let in.
    guest.run(f"systemctl stop {' '.join(PRESS)}")
    expect_state(guest, "schedule")
    guest.run(f"echo '{promised.replace('later', 'other')}' | berthctl admit --request - --hold 1s")
    walked = ["schedule", "no-schedule", "evict", "no-schedule", "schedule"]
    changes = [e for e in berth.logged("advertise") if e["attribute"] == "memory"]
    assert [(e["old"], e["new"]) for e in changes] == list(zip(walked, walked[1:])), changes
    told = berth.wait_heard("SchedulingStateChanged", len(changes), lambda change: change[0] == "memory")
    assert [(e[1], e[2], e[4]) for e in told] == [(e["old"], e["new"], e["decision"]) for e in changes]
    assert "memory is in state no-schedule" in berth.journal("is in state")
    assert untouched(berth, bystanders) == before
    # What was promised before stood all the while, and ended by its time.
    guest.poll(lambda: not berth.json("admit", "--list")["reservations"], 60, what="the reservation to expire")
    answers = [e for e in berth.logged("admit") if e["workload"] == "berth-test-later.service"]
    assert [e["new"] for e in answers] == ["held", "expired"]
