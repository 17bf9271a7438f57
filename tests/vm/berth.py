# SPDX-License-Identifier: Apache-2.0
"""berth as a test sees it in a guest: its configuration, what it says, and what the host's cgroups really hold."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterable
from subprocess import CompletedProcess
from typing import Any

from guestlib import PATIENCE, CommandFailed, Guest

EAR = "berth-test-ear.service"
STATE = "/run/berth/state.json"

DROP_IN = "/etc/berth/berth.toml.d/50-test.toml"
WRITE_CONFIG = f"mkdir -p /etc/berth/berth.toml.d && cat > {DROP_IN}"
# For the shell: journald stores every message that it has received.
SYNC_JOURNAL = "journalctl --sync"
# What berthctl returns where berthd is not on the bus.
NOT_ON_THE_BUS = 4
# By the smallest program that can ask.
WAIT_FOR_BUS = (
    'until case "$(dbus-send --system --print-reply=literal --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner '
    'string:org.berth.Node1)" in *true*) ;; *) false ;; esac; do sleep 0.1; done'
)
# Drop-ins of berthd's unit that a test made.
UNIT_DROP_INS = "/run/systemd/system/berthd.service.d"
EVERY_TEST = "/etc/berth/berth.toml.d/40-test.toml"
# An emulated host reads slowly; the budget for that has a test of its own. Most waits of a test are for the next tick. And a pin that changed a
# moment ago may change again soon. A test about Spark, or about all policies, sets spark.watch: the process that asks drivers takes an eighth of
# the CPU time of a start and a stop.
FOR_EVERY_TEST = 'sampling.max_cpu = 1\nsampling.interval = "250ms"\nsafety.repin_cooldown = "1s"\nspark.watch = false\n'
# Most tests see what berth did by vCPUs that a service has alone. The fixture default_isolation leaves this out.
OWN_VCPUS = 'interference.isolation = "vcpus"\n'
# For the shell: the end of what a test started, and of its settings.
CLEAN_UP = (
    # berthd has nothing to put back then, for which systemd would read all units anew.
    "systemctl stop 'berth-test-*'; systemctl stop berthd.service; systemctl reset-failed 'berth-test-*' berthd.service; "
    # systemd reads all units anew, which takes seconds: only where a test changed one.
    f"rm -f {DROP_IN} {EVERY_TEST}; [ ! -e {UNIT_DROP_INS} ] || {{ rm -r {UNIT_DROP_INS}; systemctl daemon-reload; }}"
)
# Attributes that a resource manager might touch; all of them are compared where nothing may change.
ATTRIBUTES = ("cpuset.cpus", "cpuset.mems", "cpu.max", "cpu.weight", "cpu.idle", "memory.high", "memory.max", "memory.low")

# The bus starts these services on demand, or a timer a quarter of an hour after the boot. They end by themselves.
END_BY_THEMSELVES = ("systemd-hostnamed.service", "systemd-localed.service", "systemd-timedated.service", "systemd-tmpfiles-clean.service")

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

# Of best-effort work some is marked evictable, and the rest is of three priorities. The highest is oversell.top_priority.
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
priority = 100

[[workload]]
match = "machine.slice/libpod-*.scope"
class = "best-effort"

[[workload]]
match = "berthtest/*"
class = "best-effort"
"""

MIB = 1 << 20
# Uses CPU now and then. A load that spins slows an emulated host down, and with it each command of a test.
LIGHT = "sh -c 'while :; do sleep 1; done'"
# Uses a third of a vCPU, in every tick: best-effort work loses a core beside it.
BUSY = "sh -c 'while :; do i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 0.2; done'"


def holder(mib: int) -> str:
    """A command that holds so much memory. The emulated host starts Python in half the time of stress-ng."""
    return f'python3 -c "import time; held = bytes([1]) * ({mib} << 20); time.sleep(1e9)"'


def cpus_of(cpulist: str) -> set[int]:
    return {
        cpu
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", cpulist)
        for cpu in range(int(first), int(last or first) + 1)
    }


# For the shell: into $cpus, cpuset.cpus of $unit; nothing where it has none.
READ_CPUSET = "cpus=; { read cpus < /sys/fs/cgroup/system.slice/$unit/cpuset.cpus; } 2>/dev/null || true"


def unrestricted_as_unset(cpulist: str, every: str = ALL_CPUS) -> str:
    """The kernel does not let a cpulist be cleared under running tasks (ENOSPC); all vCPUs is what clearing amounts to."""
    return "" if cpulist == every else cpulist


def run_command(unit: str, command: str, *properties: str) -> str:
    """For the shell: starts a transient unit."""
    options = " ".join(f"--property={p}" for p in properties)
    return f"systemd-run --quiet --collect --unit={unit} {options} {command}"


def at_once(commands: Iterable[str]) -> str:
    """For the shell: runs them side by side; fails where one of them fails."""
    started = "".join(f'{command} & pids="$pids $!"; ' for command in commands)
    return f"pids=; {started}failed=0; for pid in $pids; do wait $pid || failed=1; done; test $failed = 0"


class Berth:
    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.always = FOR_EVERY_TEST + OWN_VCPUS

    # The daemon

    def start(self, mode: str = "observe", extra: str = "", rules: str = RULES, *, bus: bool = True) -> None:
        """`bus`: returns once it answers there. Where the bus is slow, berthd is ready before."""
        restart = "systemctl restart berthd.service"
        self.guest.run(
            f"{WRITE_CONFIG} && printf %s {shlex.quote(self.always)} > {EVERY_TEST} && "
            # A test that starts it often meets the limit of starts.
            f"{{ {restart} || {{ systemctl reset-failed berthd.service; {restart}; }}; }}"
            + (f" && {WAIT_FOR_BUS}" if bus else ""),
            input=f'mode = "{mode}"\n{extra}\n{rules}',
        )

    def configure(self, mode: str = "observe", extra: str = "", rules: str = RULES) -> CompletedProcess[str]:
        return self.guest.run(f"{WRITE_CONFIG} && berthctl reload", check=False, input=f'mode = "{mode}"\n{extra}\n{rules}')

    def kill(self) -> None:
        """Ends it at once, and waits until systemd has done what is configured for that."""
        self.guest.run(f"kill -KILL {self.pid()}")
        self.guest.poll(lambda: self.pid() == 0, 30, what="berthd to be gone")

    def stop(self) -> None:
        self.guest.run("systemctl stop berthd.service")

    def pid(self) -> int:
        return self.main_pids("berthd.service")["berthd.service"]

    def main_pids(self, *units: str) -> dict[str, int]:
        shown = self.guest.run(f"systemctl show -p Id -p MainPID {' '.join(units)}").stdout
        blocks = [dict(line.split("=", 1) for line in block.splitlines()) for block in shown.strip().split("\n\n")]
        found = {block["Id"]: int(block["MainPID"]) for block in blocks}
        return {unit: found[unit] for unit in units}

    # What it says

    def ticks(self) -> int:
        return self.json("status")["tick"]["count"]

    def wait_ticks(self, more: int) -> None:
        """Until so many further ticks are over. berthd replaces its state at the end of each; to ask it would cost more than a tick."""
        look = f"read -r now < {STATE}"
        self.guest.run(
            f"left={more}; {look}; before=$now; while [ $left -gt 0 ]; do sleep 0.1; {look}; "
            '[ "$now" = "$before" ] || { before=$now; left=$((left - 1)); }; done',
            timeout=60 * PATIENCE,
        )

    def wait_past(self, moment: float) -> None:
        """Until the guest's clock shows a later time, which is at most a minute or two away."""
        self.guest.poll(f"test $(date +%s) -gt {int(moment)}", 120, interval=0.5, what="time to pass")

    def json(self, *arguments: str) -> Any:
        def answer() -> CompletedProcess[str] | None:
            found = self.guest.run(["berthctl", *arguments, "--json"], check=False)
            if found.returncode == NOT_ON_THE_BUS:
                return None
            if found.returncode:
                raise CommandFailed(found)
            return found

        # Of a berthd that has just started, and of a slow bus.
        return json.loads(self.guest.poll(answer, 30, what=f"berthd to answer: {arguments}").stdout)

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

    def pin_decision(self, unit: str) -> str:
        """The decision by which a unit was pinned last. The kernel has the pin a moment before berthd's log."""

        def logged() -> str | None:
            return next((e["decision"] for e in self.log_of(unit) if e["kind"] == "pin" and e["result"] == "applied"), None)

        return self.guest.poll(logged, 30, what=f"the pin of {unit} to be logged")

    def wait_no_undo_records(self, deadline: float = 20) -> None:
        """A record goes once the value that it is about is read back."""
        self.guest.poll(lambda: self.json("status")["undo_records"] == 0, deadline, what="the undo records to go")

    def journal_of(self, decision: str) -> list[dict[str, str]]:
        """The messages of this boot about a decision."""
        told = self.guest.run(f"{SYNC_JOURNAL}; journalctl -b -o json BERTH_DECISION={decision}").stdout
        return [json.loads(line) for line in told.splitlines()]

    def journal(self, pattern: str) -> str:
        """What the running berthd wrote to the journal, lines that match. A slow journald has taken in all that was said before."""
        return self.guest.run(
            f"{SYNC_JOURNAL}; journalctl _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID berthd.service) -o cat "
            f"-g {shlex.quote(pattern)}",
            check=False,
        ).stdout

    # Signals

    def listen(self) -> None:
        """Notes the signals of berthd's manager from now on, for `heard`. The listener ends with the test's clean-up of `EAR`."""
        match = "type='signal',interface='org.berth.Node1.Manager'"
        self.guest.run(f"systemd-run --quiet --collect --unit={EAR} busctl --json=short monitor --match={shlex.quote(match)}")
        self.guest.poll(lambda: "Monitoring bus" in self._told(), 120, what=f"{EAR} to listen")

    def heard(self, signal: str) -> list[list[Any]]:
        """The arguments of each such signal since `listen`."""
        messages = [json.loads(line) for line in self._told().splitlines() if line.startswith("{")]
        return [message["payload"]["data"] for message in messages if message["member"] == signal]

    def wait_heard(self, signal: str, least: int, wanted: Callable[[list[Any]], bool]) -> list[list[Any]]:
        """The arguments of each such signal since `listen` that is wanted by them, once there are so many."""

        def told() -> list[list[Any]]:
            return [arguments for arguments in self.heard(signal) if wanted(arguments)]

        self.guest.poll(lambda: len(told()) >= least, 60, what=lambda: f"{least} signals {signal}: {told()}")
        return told()

    def _told(self) -> str:
        return self.guest.run(f"journalctl _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID {EAR}) -o cat", check=False).stdout

    # What the host holds

    def cpuset(self, unit: str) -> str:
        """cpuset.cpus of a unit of system.slice; empty where unrestricted or without the controller."""
        return self.cpusets(unit)[unit]

    def cpusets(self, *units: str) -> dict[str, str]:
        """The same of several, read by one command."""
        shown = self.guest.run(f"for unit in {' '.join(units)}; do {READ_CPUSET}; echo $cpus; done").stdout
        return dict(zip(units, map(unrestricted_as_unset, shown.splitlines()), strict=True))

    def wait_for_cpuset(self, unit: str, wanted: str) -> None:
        as_unset = "|".join(["''", ALL_CPUS] if wanted == "" else [wanted])
        self.guest.poll(
            f"unit={unit}; {READ_CPUSET}; echo $cpus; case $cpus in {as_unset}) ;; *) false ;; esac", 30,
            what=f"{unit} to have cpuset.cpus {wanted!r}",
        )  # fmt: skip

    def wait_pinned(self, *units: str) -> None:
        self.wait_cpusets_change(dict.fromkeys(units, ""))

    def wait_cpusets_change(self, former: dict[str, str]) -> None:
        """Until each of these units has another cpuset.cpus, and one that restricts it."""
        each = "".join(
            f"unit={unit}; {READ_CPUSET}; echo $unit $cpus; case $cpus in ''|{ALL_CPUS}|{cpus or ALL_CPUS}) exit 1 ;; esac; "
            for unit, cpus in former.items()
        )
        self.guest.poll(each + "true", 30, what=f"pins of {list(former)}")

    def every_cpu(self) -> str:
        return f"0-{self.guest.topology.cpus - 1}"

    def attributes(self) -> dict[str, str]:
        """Every attribute of every cgroup of the host, by path; services that come and go by themselves are left out."""
        names = " -o ".join(f"-name {name}" for name in ATTRIBUTES)
        lines = self.guest.run(f"cd /sys/fs/cgroup && find . \\( {names} \\) -exec grep -H '' {{}} + | sort").stdout
        found = dict(line.split(":", 1) for line in lines.splitlines())
        return {
            path: unrestricted_as_unset(value, self.every_cpu()) if path.endswith("/cpuset.cpus") else value
            for path, value in found.items()
            if not any(f"/{unit}/" in path for unit in END_BY_THEMSELVES)
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
            time.sleep(0.5)
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
        self.guest.run(run_command(unit, command, *properties))

    def start_units(self, commands: dict[str, str], *properties: str) -> None:
        """Several at the same time."""
        self.guest.run(at_once(run_command(unit, command, *properties) for unit, command in commands.items()))

    def wait_held(self, unit: str, mib: int) -> None:
        self.wait_held_by({unit: mib})

    def wait_held_by(self, sizes: dict[str, int]) -> None:
        """Until each of these units has so many MiB."""
        each = "".join(
            f"read bytes < /sys/fs/cgroup/system.slice/{unit}/memory.current && [ $bytes -gt {mib * MIB} ] || {{ echo {unit} $bytes; exit 1; }}; "
            for unit, mib in sizes.items()
        )
        self.guest.poll(each + "true", 180, what=f"units to hold as many MiB: {sizes}")

    def hold(self, unit: str, mib: int) -> None:
        """A service that uses so much memory."""
        self.start_unit(unit, holder(mib))
        self.wait_held(unit, mib)

    def stop_unit(self, unit: str) -> None:
        self.guest.run(f"systemctl stop {unit}")

    def add_unit_drop_in(self, text: str) -> None:
        """Settings of berthd's unit, until the test ends."""
        self.guest.run(f"mkdir -p {UNIT_DROP_INS} && cat > {UNIT_DROP_INS}/test.conf && systemctl daemon-reload", input=text)

    def clean_up(self) -> None:
        self.guest.run(CLEAN_UP, check=False)
