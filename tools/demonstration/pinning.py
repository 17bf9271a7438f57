# SPDX-License-Identifier: Apache-2.0
"""Steps: the host, its load, the plan, and the load beside batch work in three ways."""

from __future__ import annotations

import math
from typing import Any

from .host import NotSeen, ask, cgroup_file, poll, run, say, show
from .load import LIGHT, WAYS, WEB, Load, figures_of


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

    def busy() -> bool:
        homes = ask("plan")["findings"]["interference"].get("shared", {})
        home = homes.get(f"system.slice/{WEB}")
        return bool(home and home["home"] and home["cores"] > 0.05)

    poll("berth to see nginx busy", busy, seen=lambda: run("berthctl", "list"))
    show("berthctl", "plan")
    return {"unpinned_rate": figures_of(load.end_busy())["rate"]}


def compare(load: Load, rounds: int, seconds: int, unpinned_rate: float) -> dict[str, Any]:
    """Measures all ways in turns, and begins each round as the one before ended."""
    load.ensure()
    # The slowest hundredth wants two hundred requests; on a slow host a tenth has to do.
    seconds = seconds or min(20, max(5, math.ceil(200 / max(unpinned_rate, 1))))
    say(f"  Each measurement takes {seconds} s; unpinned, the client got {unpinned_rate:.0f} answers a second before.")
    results: list[dict[str, dict[str, float]]] = []
    pins: dict[str, dict[str, str]] = {}
    for index in range(rounds):
        measured = {}
        for way in list(WAYS) if index % 2 == 0 else reversed(WAYS):
            load.run_as(way)
            measured[way] = load.measure(seconds)
            if way not in pins:
                pins[way] = load.cpusets()
                say(f"  {WAYS[way]}:")
                for unit, cpulist in pins[way].items():
                    say(f"    {unit:34} vCPUs {cpulist or 'all':9} cpu.idle {cgroup_file(unit, 'cpu.idle') or 0}")
        results.append(measured)
        say(f"  round {index + 1}, {' -> '.join(WAYS.values())}:")
        for name, figure, digits in (("p50 in ms", "p50", 1), ("p99 in ms", "p99", 0), ("requests/s", "rate", 0),
                                     ("cores of the batch", "batch_cores", 1)):
            say(f"    {name:18} " + " -> ".join(f"{measured[way][figure]:.{digits}f}" for way in WAYS))
    return {"seconds": seconds, "rounds": results, "pins": pins}


def put_back(load: Load) -> dict[str, Any]:
    load.ensure()
    load.enforce()
    say("  berth enforces, and is stopped while the load goes on:")
    load.stop_berthd()
    after = load.cpusets()
    left = run("find", "/run/systemd", "-path", "*-berth-demo.service.d/*", "-name", "*AllowedCPUs*", check=False).split()
    if not load.untouched() or left:
        raise NotSeen(f"left behind: {after} (were {load.cpusets_before}), idle {load.idle()}, drop-ins of systemd: {left}")
    say(f"  all {len(after)} services run where and as they did before; no drop-in of systemd is left.")
    return {"services": len(after)}


def what_is_what(load: Load) -> str:
    light = " and a light service" if LIGHT in load.services else ""
    return f"A mixed load: nginx{light} beside two batch services, which take all they get"
