# SPDX-License-Identifier: Apache-2.0
"""Step: a service needs memory that is not there, and the batch job goes that has least to lose."""

from __future__ import annotations

from typing import Any

from .host import (
    NotSeen, ask, cpu_seconds, memory_bytes, poll, run, runs, say, show, start_unit, stop_units, total_memory,
    used_memory,
)
from .load import CACHE, OLD, Load

MIB = 1 << 20


# Without a semicolon: after a reload, systemd has a backslash before it in a unit of systemd-run.
IDLE = "__import__('time').sleep(10 ** 9)"
COMPUTE = "exec('while True: pass')"


def hold(unit: str, size: int, then: str = IDLE) -> None:
    """Starts a service that uses so many bytes, and waits until it does."""
    start_unit(unit, f"/usr/bin/python3 -c \"held = b'x' * {size}, {then}\"")
    poll(f"{unit} to use its memory", lambda: memory_bytes(unit) >= size, seen=lambda: memory_bytes(unit))


def order() -> list[str]:
    """Which workloads would have to go, the first one first; empty where memory suffices."""
    found = ask("plan")["findings"]["oversell"]
    return found["order"] if found["evict_count"] else []


def main_pids(units: list[str]) -> list[str]:
    return run("systemctl", "show", "--property=MainPID", "--value", *units).split()


def evict(load: Load, rounds: int) -> dict[str, Any]:
    load.ensure()
    load.enforce()
    # A name for each round: berth spares a workload that comes back after its eviction.
    young = [f"young-{index + 1}-batch-berth-demo.service" for index in range(rounds)]
    load.extras += young
    size = max(128 * MIB, total_memory() // 100)
    # One job frees more than the host's use of memory rises by, also where other memory grows meanwhile. Otherwise berth ends two.
    job = size * 3 // 2
    hold(OLD, job, COMPUTE)
    hold(young[0], job)
    poll("the older job to have computed far more", lambda: cpu_seconds(OLD) > 5 * cpu_seconds(young[0]),
         seen=lambda: {unit: cpu_seconds(unit) for unit in (OLD, young[0])})
    # Half of what the service will take is there before berth's threshold, 5 % below the cap.
    cap = int((used_memory() + size / 2) / 0.95)
    results = []
    load.configure(memory_cap=cap)
    for index, unit in enumerate(young):
        if index:
            hold(unit, job)
        results.append(round_of(load, unit, job, size, cap, first=index == 0))
    return {"bytes": size, "rounds": results}


def round_of(load: Load, young: str, job: int, size: int, cap: int, first: bool) -> dict[str, float]:
    """The first round shows what berth would do before it may; in the others it may from the start."""
    if first:
        say(f"  Two batch jobs hold {job // MIB} MiB each; the older one has computed for {cpu_seconds(OLD):.0f} CPU seconds.")
        say(f"  berth is told that this host has room for {size // 2 // MIB} MiB more. A latency-sensitive service takes "
            f"{size // MIB} MiB. What berth would do:")
        hold(CACHE, size)
        poll("berth to name the younger job", lambda: order()[:1] == [f"system.slice/{young}"], seen=order)
        show("berthctl", "explain", f"system.slice/{young}")
        say("  It is told to do so:")
    others = [*load.units, OLD]
    before = main_pids(others)
    lost = {"cheaper": cpu_seconds(young), "dearer": cpu_seconds(OLD)}
    if first:
        load.configure(memory_cap=cap, evict=True)
    else:
        hold(CACHE, size)
    poll("the younger job to be evicted", lambda: not runs(young))
    poll("berth to see the memory freed", lambda: not order(), seen=order)
    if (after := main_pids(others)) != before or not runs(CACHE):
        raise NotSeen(f"other services were hit: of {others} the processes are {after} (were {before})")
    if first:
        say(f"  {young} was stopped, through systemd; all others run on. berth's log of it:")
        show("berthctl", "log", "--kind", "evict", "-n", "4")
    say(f"  Lost are {lost['cheaper']:.1f} CPU seconds of work; the older job would have lost {lost['dearer']:.1f}.")
    stop_units(CACHE)
    return lost
