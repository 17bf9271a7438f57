# SPDX-License-Identifier: Apache-2.0
"""berth as a test sees it in a guest: its configuration, what it says, and what the host's cgroups really hold."""

from __future__ import annotations

import json
import re
import shlex
import time
from subprocess import CompletedProcess
from typing import Any

from guestlib import Guest

DROP_IN = "/etc/berth/berth.toml.d/50-test.toml"
# An emulated host reads slowly; the budget for that has a test of its own.
BUDGET = "/etc/berth/berth.toml.d/40-test.toml"
# Attributes that a resource manager might touch; all of them are compared where nothing may change.
ATTRIBUTES = ("cpuset.cpus", "cpuset.mems", "cpu.max", "cpu.weight", "memory.high", "memory.max", "memory.low")

ALL_CPUS = "0-7"

RULES = """
[[workload]]
match = "system.slice/berth-test-ls*.service"
class = "latency-sensitive"
vcpus = 2

[[workload]]
match = "system.slice/berth-test-be*.service"
class = "best-effort"
"""

# Of best-effort work some is marked evictable, and the rest is of three priorities.
EVICTION_RULES = """
[[workload]]
match = "system.slice/berth-test-ls*.service"
class = "latency-sensitive"
vcpus = 2

[[workload]]
match = "system.slice/berth-test-be-first*.service"
class = "best-effort"
priority = 10
evictable = true

[[workload]]
match = "system.slice/berth-test-be-low.service"
class = "best-effort"
priority = 1

[[workload]]
match = "system.slice/berth-test-be-mid*.service"
class = "best-effort"
priority = 5

[[workload]]
match = "system.slice/berth-test-be*.service"
class = "best-effort"
priority = 10

[[workload]]
match = "machine.slice/libpod-*.scope"
class = "best-effort"

[[workload]]
match = "berthtest/*"
class = "best-effort"
"""

MIB = 1 << 20


def holder(mib: int) -> str:
    """A command that holds so much memory."""
    return f"stress-ng --vm 1 --vm-bytes {mib}M --vm-hang 0 --vm-keep --vm-method write64 --quiet"


def cpus_of(cpulist: str) -> set[int]:
    return {
        cpu
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", cpulist)
        for cpu in range(int(first), int(last or first) + 1)
    }


def unrestricted_as_unset(cpulist: str) -> str:
    """The kernel does not let a cpulist be cleared under running tasks (ENOSPC); all vCPUs is what clearing amounts to."""
    return "" if cpulist == ALL_CPUS else cpulist


class Berth:
    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    # The daemon

    def start(self, mode: str = "observe", extra: str = "", rules: str = RULES) -> None:
        self.guest.write_file(BUDGET, "sampling.max_cpu = 1\n")
        self.guest.write_file(DROP_IN, f'mode = "{mode}"\n{extra}\n{rules}')
        self.guest.run("systemctl reset-failed berthd.service; systemctl restart berthd.service")

    def configure(self, mode: str = "observe", extra: str = "", rules: str = RULES) -> CompletedProcess[str]:
        self.guest.write_file(DROP_IN, f'mode = "{mode}"\n{extra}\n{rules}')
        return self.guest.run("berthctl reload", check=False)

    def stop(self) -> None:
        self.guest.run("systemctl stop berthd.service")

    def pid(self) -> int:
        return int(self.guest.run("systemctl show -P MainPID berthd.service").stdout)

    # What it says

    def json(self, *arguments: str) -> Any:
        return json.loads(self.guest.run(["berthctl", *arguments, "--json"]).stdout)

    def workloads(self) -> dict[str, dict[str, Any]]:
        return {workload["id"]: workload for workload in self.json("list")["workloads"]}

    def wait_for(self, *units: str) -> None:
        """Until berthd lists exactly these units, with a first sample of each."""
        wanted = {f"system.slice/{unit}" for unit in units}

        def seen() -> bool:
            found = self.workloads()
            return set(found) == wanted and all(w["cpu_cores"] is not None for w in found.values())

        self.guest.poll(seen, 60, what=f"berthd to list {sorted(wanted)}")

    def log_of(self, unit: str) -> list[dict[str, Any]]:
        return [e for e in self.json("log", "-n", "200")["entries"] if e["workload"] == f"system.slice/{unit}"]

    def logged(self, kind: str) -> list[dict[str, Any]]:
        """What the running berthd logged of that kind, oldest first."""
        started = self.json("status")["started"]
        entries = self.json("log", "-n", "500")["entries"]
        return [e for e in reversed(entries) if e["kind"] == kind and e["time"] >= started]

    def journal(self, pattern: str) -> str:
        """What the running berthd wrote to the journal, lines that match."""
        return self.guest.run(
            "journalctl _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID berthd.service) -o cat "
            f"-g {shlex.quote(pattern)}",
            check=False,
        ).stdout

    # What the host holds

    def cpuset(self, unit: str) -> str:
        """cpuset.cpus of a unit of system.slice; empty where unrestricted or without the controller."""
        shown = self.guest.run(f"cat /sys/fs/cgroup/system.slice/{unit}/cpuset.cpus 2>/dev/null || true").stdout
        return unrestricted_as_unset(shown.strip())

    def wait_for_cpuset(self, unit: str, wanted: str) -> None:
        self.guest.poll(lambda: self.cpuset(unit) == wanted, 30, what=f"{unit} to have cpuset.cpus {wanted!r}")

    def wait_pinned(self, *units: str) -> None:
        self.guest.poll(lambda: all(self.cpuset(u) for u in units), 30, what=f"pins of {units}")

    def attributes(self) -> dict[str, str]:
        """Every attribute of every cgroup of the host, by path."""
        names = " -o ".join(f"-name {name}" for name in ATTRIBUTES)
        lines = self.guest.run(f"cd /sys/fs/cgroup && find . \\( {names} \\) -exec grep -H '' {{}} + | sort").stdout
        found = dict(line.split(":", 1) for line in lines.splitlines())
        return {
            path: unrestricted_as_unset(value) if path.endswith("/cpuset.cpus") else value
            for path, value in found.items()
        }

    def memory_in_use(self) -> int:
        text = self.guest.run("cat /proc/meminfo").stdout
        total, available = (int(re.search(rf"{name}:\s+(\d+)", text)[1]) << 10 for name in ("MemTotal", "MemAvailable"))
        return total - available

    def settled_memory_in_use(self) -> int:
        """Once it stays the same to a hundredth, for three readings: what ran before is given back little by little."""
        readings: list[int] = []

        def same() -> bool:
            readings.append(self.memory_in_use())
            time.sleep(1)
            last = readings[-4:]
            return len(last) == 4 and max(last) - min(last) < 0.01 * last[-1]

        self.guest.poll(same, 120, what="the memory in use to settle")
        return readings[-1]

    def memory_of(self, unit: str) -> int:
        """memory.current of a unit of system.slice; 0 where it does not run."""
        return int(self.guest.run(f"cat /sys/fs/cgroup/system.slice/{unit}/memory.current 2>/dev/null || echo 0").stdout)

    def drop_ins(self) -> list[str]:
        """What systemd keeps of runtime properties of test units."""
        return self.guest.run(
            "find /run/systemd/system.control /run/systemd/transient -path '*berth-test*.d/*' -name '*AllowedCPUs*' 2>/dev/null || true"
        ).stdout.split()

    # Load

    def start_unit(self, unit: str, command: str = "sleep infinity", *properties: str) -> None:
        options = " ".join(f"--property={p}" for p in properties)
        self.guest.run(f"systemd-run --quiet --collect --unit={unit} {options} {command}")

    def wait_held(self, unit: str, mib: int) -> None:
        self.guest.poll(lambda: self.memory_of(unit) > mib * MIB, 180, what=f"{unit} to hold {mib} MiB")

    def hold(self, unit: str, mib: int) -> None:
        """A service that uses so much memory."""
        self.start_unit(unit, holder(mib))
        self.wait_held(unit, mib)

    def stop_unit(self, unit: str) -> None:
        self.guest.run(f"systemctl stop {unit}")

    def clean_up(self) -> None:
        self.guest.run(
            "systemctl stop 'berth-test-*' berthd.service; systemctl reset-failed 'berth-test-*' berthd.service; "
            f"rm -rf {DROP_IN} {BUDGET} /run/systemd/system/berthd.service.d; systemctl daemon-reload; true",
            check=False,
        )
