# SPDX-License-Identifier: Apache-2.0
"""A host for a real berthd, of ordinary files: eight vCPUs in one socket, one or more last-level caches, 8 GiB, a cgroup v2 tree, /proc."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from privatebus import PrivateBus

CONFIG = """
[sampling]
interval = "100ms"
max_cpu = 1
[[workload]]
match = "web/*"
class = "latency-sensitive"
vcpus = 3
[[workload]]
match = "system.slice/slurmstepd.scope/*"
class = "best-effort"
"""
# Settings for start(): ends best-effort work if memory runs out.
EVICTING = """
[eviction]
evict = true
"""
CPUS = 8
MEMORY_KIB = 8 * 1024 * 1024


class FakeHost:
    def __init__(self, root: Path, runtime: Path, caches: int = 1) -> None:
        self.root, self.runtime = root, runtime
        self.process: subprocess.Popen[bytes] | None = None
        self.bus: PrivateBus | None = None
        for name in ("cgroup", "state"):
            (root / name).mkdir(parents=True)
        self._write_sys(CPUS // caches)
        self.use_memory(0.1)
        self._write("proc/loadavg", "0.20 0.10 0.10 1/100 4711\n")
        self._write("proc/sys/kernel/random/boot_id", "6f1b2c4e-0000-4000-8000-1234567890ab\n")
        self._write("proc/self/statm", "1000 500 100 1 0 1 0\n")
        self._write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        self._write("cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
        self._write("cgroup/cgroup.subtree_control", "cpuset cpu io memory pids\n")
        self._write("cgroup/cpuset.cpus.effective", f"0-{CPUS - 1}\n")
        self._write("cgroup/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        self._write("berth.toml", CONFIG)

    def _write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _write_sys(self, cpus_of_cache: int) -> None:
        everything, mask = f"0-{CPUS - 1}\n", f"{(1 << CPUS) - 1:08x}\n"
        for name in ("possible", "present", "online"):
            self._write(f"sys/devices/system/cpu/{name}", everything)
        for cpu in range(CPUS):
            base, own = f"sys/devices/system/cpu/cpu{cpu}", f"{1 << cpu:08x}\n"
            self._write(f"{base}/online", "1\n")
            self._write(f"{base}/topology/core_id", f"{cpu}\n")
            self._write(f"{base}/topology/physical_package_id", "0\n")
            self._write(f"{base}/topology/core_cpus", own)
            self._write(f"{base}/topology/package_cpus", mask)
            cache = ((1 << cpus_of_cache) - 1) << (cpu - cpu % cpus_of_cache)
            for index, shared in ((2, own), (3, f"{cache:08x}\n")):
                self._write(f"{base}/cache/index{index}/level", f"{index}\n")
                self._write(f"{base}/cache/index{index}/type", "Unified\n")
                self._write(f"{base}/cache/index{index}/shared_cpu_map", shared)
        self._write("sys/devices/system/node/online", "0\n")
        self._write("sys/devices/system/node/node0/cpumap", mask)
        self._write("sys/devices/system/node/node0/cpulist", everything)
        self._write("sys/devices/system/node/node0/meminfo", f"Node 0 MemTotal:       {MEMORY_KIB} kB\n")
        self._write("sys/devices/system/node/node0/distance", "10\n")

    def use_memory(self, share: float) -> None:
        available = int(MEMORY_KIB * (1 - share))
        fresh = self.root / "meminfo.new"
        fresh.write_text(f"MemTotal: {MEMORY_KIB} kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n")
        (self.root / "proc").mkdir(exist_ok=True)
        fresh.replace(self.root / "proc/meminfo")

    def add_group(self, path: str, **given: str) -> None:
        """A populated group; its last file makes it a running workload. Names of files are given with "_" for "."."""
        own = {name.replace("_", "."): text for name, text in given.items()}
        for above in [str(parent) for parent in reversed(Path(path).parents) if str(parent) != "."]:
            self._group(above, {"cgroup.subtree_control": "cpuset cpu io memory pids", "cgroup.procs": "", "cgroup.kill": ""})
        self._group(
            path,
            {"cpu.max": "max 100000", "cpu.weight": "100", "cpu.idle": "0", "memory.high": "max", "memory.current": "1048576", "cgroup.procs": "", "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0"}
            | own,
        )

    def remove_group(self, path: str) -> None:
        shutil.rmtree(self.root / "cgroup" / path)

    def _group(self, path: str, files: dict[str, str]) -> None:
        files = {"cpuset.cpus": "", "cpuset.cpus.effective": f"0-{CPUS - 1}", **files, "cgroup.events": "populated 1\nfrozen 0"}
        for name, text in files.items():
            self._write(f"cgroup/{path}/{name}", text + "\n")

    def start(self, berthd: Path, settings: str = "", name: str = "") -> None:
        """Enforces where settings are given, and else observes. A `name` gives it a host name and a bus, both of its own."""
        words = [str(berthd), "--config", str(self.root / "berth.toml")]
        if settings:
            self._write("berth.toml", f'mode = "enforce"\n{settings}\n{CONFIG}')
        else:
            words.append("--observe")
        for option, directory in (("cgroup-root", "cgroup"), ("proc-root", "proc"), ("sys-root", "sys"), ("state-dir", "state")):
            words += [f"--{option}", str(self.root / directory)]
        words += ["--runtime-dir", str(self.runtime)]
        if name:
            self.bus = PrivateBus(self.root)
            words = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *words]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """For programs of this host."""
        return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "DBUS_SYSTEM_BUS_ADDRESS": self.bus.address if self.bus else "unix:path=/nonexistent"}

    def stop(self, signal: int) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal)
            self.process.wait()
        if self.bus:
            self.bus.stop()
            self.bus = None
