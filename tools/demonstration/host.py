# SPDX-License-Identifier: Apache-2.0
"""Commands, cgroup files and waits on the host that the demonstration runs on."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import textwrap
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

CGROUP = Path("/sys/fs/cgroup")
T = TypeVar("T")


class NotSeen(Exception):
    """What a step is to show did not come; the text says what was seen instead."""


class Beat:
    """The time in which something can happen on this host: one tick of berthd and one command.

    Both are measured all the time. `usual_s` sizes the work of a step, and `slow_s` the patience of a wait.
    """

    def __init__(self) -> None:
        self.tick_s = 1.0
        self._commands_s: deque[float] = deque([0.1], maxlen=8)

    def add_command(self, seconds: float) -> None:
        self._commands_s.append(seconds)

    @property
    def usual_s(self) -> float:
        return self.tick_s + statistics.median(list(self._commands_s)[-5:])

    @property
    def slow_s(self) -> float:
        return self.tick_s + max(self._commands_s)


BEAT = Beat()


def say(text: str = "") -> None:
    print(text, flush=True)


def run(*command: str, check: bool = True) -> str:
    """What a short command prints; how long it takes counts as the speed of the host."""
    started = time.monotonic()
    output = run_long(*command, check=check)
    BEAT.add_command(time.monotonic() - started)
    return output


def run_long(*command: str, check: bool = True, limit_s: float = 0) -> str:
    """What a command prints that takes `limit_s` by its nature."""
    try:
        done = subprocess.run(
            command, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=limit_s + 300 + 100 * BEAT.slow_s,
        )
    except subprocess.TimeoutExpired as error:
        raise NotSeen(f"{' '.join(command)}: no end after {error.timeout:.0f} s") from error
    if check and done.returncode != 0:
        raise NotSeen(f"{' '.join(command)}: exit {done.returncode}: {done.stdout.strip()}")
    return done.stdout


def show(*command: str) -> None:
    say("$ " + " ".join(command))
    say(textwrap.indent(run(*command).rstrip(), "  "))


def ask(*arguments: str) -> Any:
    """The JSON that berthctl prints."""
    text = run("berthctl", *arguments, "--json")
    try:
        return json.loads(text)
    except ValueError as error:
        raise NotSeen(f"berthctl {' '.join(arguments)} --json printed no JSON: {text[:200]}") from error


def poll(
    what: str, condition: Callable[[], T], *, beats: float = 90, seen: Callable[[], object] = lambda: ""
) -> T:
    """The first true value of condition(), tried for so many beats; `seen` describes what is there instead."""
    started = time.monotonic()
    while True:
        tried = time.monotonic()
        if value := condition():
            return value
        waited = time.monotonic() - started
        if waited > beats * BEAT.slow_s:
            instead = seen()
            raise NotSeen(f"waited {waited:.0f} s in vain for {what}" + (f"; seen instead: {instead}" if instead else ""))
        # Asking is work for the host, too.
        time.sleep(max(0.2, time.monotonic() - tried))


def parse_cpulist(cpulist: str) -> set[int]:
    found = re.findall(r"(\d+)(?:-(\d+))?", cpulist)
    return {cpu for first, last in found for cpu in range(int(first), int(last or first) + 1)}


def online_cpus() -> list[int]:
    return sorted(parse_cpulist(Path("/sys/devices/system/cpu/online").read_text()))


def cgroup_file(unit: str, name: str) -> str:
    """A file of a unit's cgroup; empty where there is none."""
    try:
        return (CGROUP / "system.slice" / unit / name).read_text().strip()
    except OSError:
        return ""


def cpuset(unit: str) -> str:
    """The vCPUs that a unit is restricted to; empty where it may use all.

    The kernel does not let a cpuset be cleared under running tasks, so berth writes all vCPUs instead.
    """
    cpulist = cgroup_file(unit, "cpuset.cpus")
    return "" if parse_cpulist(cpulist) == set(online_cpus()) else cpulist


def cpu_seconds(*units: str) -> float:
    found = [re.search(r"usage_usec (\d+)", cgroup_file(unit, "cpu.stat")) for unit in units]
    return sum(int(match[1]) for match in found if match) / 1e6


def memory_bytes(unit: str) -> int:
    return int(cgroup_file(unit, "memory.current") or 0)


def used_memory() -> int:
    """Bytes in use on the host, as berth counts them."""
    found = re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    size = {name: int(kib) << 10 for name, kib in found}
    return size["MemTotal"] - size["MemAvailable"]


def total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def start_unit(unit: str, command: str, *properties: str) -> None:
    """systemd may still be forgetting a unit of that name that ended just before, so it is asked again."""
    given = [f"--property={text}" for text in properties]
    said = ""

    def starts() -> bool:
        nonlocal said
        said = run("systemd-run", "--quiet", "--collect", f"--unit={unit}", *given, "/bin/sh", "-c", f"exec {command}",
                   check=False).strip()
        return not said

    poll(f"systemd to start {unit}", starts, beats=10, seen=lambda: said)


def runs(unit: str) -> bool:
    return "populated 1" in cgroup_file(unit, "cgroup.events")


def stop_units(*units: str) -> None:
    """Stops those that run, and returns when they ended."""
    if present := [unit for unit in units if (CGROUP / "system.slice" / unit).exists()]:
        run("systemctl", "stop", *present, check=False)

