# SPDX-License-Identifier: Apache-2.0
"""Steps: the host, its load, the plan, and the load unpinned against pinned."""

from __future__ import annotations

import math
from typing import Any

from .host import NotSeen, ask, cgroup_file, poll, run, say, show
from .load import LIGHT, WEB, Load


def show_host(load: Load) -> dict[str, Any]:
    show("berthctl", "topology")
    return {"cpus": ask("topology")["cpus"], "client_cpu": load.client_cpu}


def start_load(load: Load) -> dict[str, Any]:
    load.start_berthd()
    load.mode("observe")
    load.ensure()
    say(f"  vCPU {load.client_cpu} is kept out of berth's hands: the client that measures runs there, ahead of all else.")
    show("berthctl", "list")
    return {"services": load.services, "batch": load.batch}


def show_plan(load: Load) -> dict[str, Any]:
    """The plan rests on how busy each service is, so nginx has its client meanwhile."""
    load.ensure()
    load.mode("observe")
    load.keep_busy()

    def busy() -> dict[str, Any] | None:
        findings = ask("plan")["findings"]["interference"]
        instance = findings["instances"].get(f"system.slice/{WEB}")
        if instance is None:
            raise NotSeen(f"nginx is not placed: {findings['unplaceable']}")
        return findings if instance["pressure"] > 0.05 else None

    found = poll("berth to see nginx busy", busy, seen=lambda: run("berthctl", "list"))
    show("berthctl", "plan")
    pinned, free = found["score_node"], found["score_unpinned"]
    say("  The score says how much the neighbours on cores and caches disturb the services: "
        f"{pinned:.3f} pinned, {free:.3f} unpinned.")
    if pinned >= free:
        say("  By the score, pinning does not help under this load. Waits for a vCPU are not in it; they are measured next.")
    measured = load.measure_busy()
    return {"score": {"pinned": pinned, "unpinned": free}, "unpinned_rate": measured["rate"],
            "pressure": {unit: found["instances"][f"system.slice/{unit}"]["pressure"] for unit in load.services}}


def compare(load: Load, rounds: int, seconds: int, unpinned_rate: float) -> dict[str, Any]:
    """Measures unpinned and pinned in turns, and begins each round as the one before ended."""
    load.ensure()
    # The slowest hundredth wants two hundred requests; on a slow host a tenth has to do.
    seconds = seconds or min(20, max(5, math.ceil(200 / max(unpinned_rate, 1))))
    say(f"  Each measurement takes {seconds} s; unpinned, the client got {unpinned_rate:.0f} answers a second before.")
    results: list[dict[str, dict[str, float]]] = []
    pins: dict[str, str] = {}
    for index in range(rounds):
        measured = {}
        for state in ("unpinned", "pinned") if index % 2 == 0 else ("pinned", "unpinned"):
            load.pin() if state == "pinned" else load.unpin()
            if state == "pinned" and not pins:
                pins = load.cpusets()
                say("  the cpusets that berth wrote:")
                for unit in pins:
                    say(f"    {unit:34} cpuset.cpus = {cgroup_file(unit, 'cpuset.cpus')}")
            measured[state] = load.measure(seconds)
        results.append(measured)
        free, bound = measured["unpinned"], measured["pinned"]
        say(f"  round {index + 1}, unpinned -> pinned: p50 {free['p50']:.1f} -> {bound['p50']:.1f} ms   "
            f"p99 {free['p99']:.0f} -> {bound['p99']:.0f} ms   requests/s {free['rate']:.0f} -> {bound['rate']:.0f}   "
            f"cores of the batch {free['batch_cores']:.1f} -> {bound['batch_cores']:.1f}")
    return {"seconds": seconds, "rounds": results, "pins_before": load.cpusets_before, "pins": pins}


def put_back(load: Load) -> dict[str, Any]:
    load.ensure()
    load.pin()
    say("  berth pins the services, and is stopped while the load goes on:")
    load.stop_berthd()
    after = load.cpusets()
    left = run("find", "/run/systemd", "-path", "*-berth-demo.service.d/*", "-name", "*AllowedCPUs*", check=False).split()
    if after != load.cpusets_before or left:
        raise NotSeen(f"left behind: {after} (were {load.cpusets_before}), drop-ins of systemd: {left}")
    say(f"  all {len(after)} services may run where they might before; no drop-in of systemd is left.")
    return {"services": len(after)}


def what_is_what(load: Load) -> str:
    light = " A light service asks for 2 as well." if LIGHT in load.services else ""
    return (f"A mixed load: nginx asks for {load.services[WEB]} vCPUs of its own.{light} "
            "Two batch services take all they get")
