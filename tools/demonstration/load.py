# SPDX-License-Identifier: Apache-2.0
"""The services of the demonstration, the rules that berth has for them, and the client that measures.

All units are named *-berth-demo.service. clean_up() removes them and their rules, whatever the steps left.
"""

from __future__ import annotations

import math
import re
import shutil
import textwrap
import time
import urllib.request
from pathlib import Path

from .host import (
    BEAT, CGROUP, NotSeen, ask, cgroup_file, cpu_seconds, cpuset, online_cpus, parse_cpulist, poll, run, run_long, runs,
    say, start_unit, stop_units,
)

DROP_IN = Path("/etc/berth/berth.toml.d/90-berth-demo.toml")
WORK = Path("/run/berth-demo")
PORT = 8973
BERTHD = "berthd.service"
WEB = "nginx-berth-demo.service"
LIGHT = "light-berth-demo.service"
MATRIX = "matrix-batch-berth-demo.service"
SORT = "sort-batch-berth-demo.service"
CLIENT = "client-berth-demo.service"
JOB = "job-berth-demo.service"
# Ways in which nginx runs beside the batch.
WAYS = {"unpinned": "without berth", "shared": "by berth's default", "vcpus": "on vCPUs of its own"}
JOB_PROGRESS = WORK / "progress"
OLD = "old-batch-berth-demo.service"
CACHE = "cache-berth-demo.service"


class Load:
    """nginx and a light service, both latency-sensitive, beside batch work that wants more vCPUs than there are."""

    def __init__(self) -> None:
        cpus = online_cpus()
        # The client has a vCPU to itself, ahead of everything else there: it stands for another machine.
        self.client_cpu = cpus[-1]
        wide = len(cpus) >= 8
        # How many vCPUs each owns in the way "vcpus"; the others need no such number.
        self.services = {WEB: 2, LIGHT: 2} if wide else {WEB: 1}
        self.batch = {
            MATRIX: f"stress-ng --quiet --cpu {len(cpus) - 3} --cpu-method matrixprod",
            SORT: "stress-ng --quiet --qsort 2",
        }
        self.units = [*self.services, *self.batch]
        self.extras = [JOB, CLIENT, CACHE, OLD]  # that steps start
        self.mode_before = ask("status")["mode"] if berthd_runs() else ""
        self.cpusets_before: dict[str, str] = {}
        self._mode = ""
        self._sampled = False

    # berthd

    def configure(self, *, isolation: str = "", hold_s: float = 5, memory_cap: int = 0, evict: bool = False) -> None:
        """Writes berth's rules and has berthd read them; `isolation` empty is berth's default, `memory_cap` in bytes, 0 is all there is."""
        text = self._rules(isolation, hold_s, memory_cap, evict)
        if DROP_IN.exists() and DROP_IN.read_text() == text:
            return
        DROP_IN.parent.mkdir(parents=True, exist_ok=True)
        DROP_IN.write_text(text)
        if berthd_runs():
            run("berthctl", "reload")

    def start_berthd(self) -> None:
        """Some settings are read at a start only, so that one that runs starts again."""
        self.configure()
        run("systemctl", "reset-failed", BERTHD, check=False)
        run("systemctl", "restart", BERTHD)
        # It starts without a bus that is too busy to answer, and comes to it later.
        poll("berthd to be on the bus", lambda: "berth.status" in run("berthctl", "status", "--json", check=False))

        self._sampled, self._mode = False, ""

    def stop_berthd(self) -> None:
        run("systemctl", "stop", BERTHD)
        self._mode = ""

    def mode(self, mode: str) -> None:
        """Commands are slow under load, so that none is run that changes nothing."""
        if mode == self._mode:
            return
        run("berthctl", "mode", mode)
        self._mode = mode
        tick = ask("status")["tick"]
        BEAT.tick_s = max(tick["interval_s"], (tick.get("last_wall_ms") or 0) / 1e3)

    def _rules(self, isolation: str, hold_s: float, memory_cap: int, evict: bool) -> str:
        service = '[[workload]]\nmatch = "system.slice/{}"\nclass = "latency-sensitive"\n'
        own = f'isolation = "{isolation}"\nvcpus = {{}}\n' if isolation else ""
        services = "\n".join((service + own).format(unit, vcpus) for unit, vcpus in self.services.items())
        # Reading an emulated host takes more CPU than sampling usually may, and what goes back may go back quickly.
        return textwrap.dedent(f"""\
            # Written by the demonstration, removed at its end.
            [sampling]
            max_cpu = 1

            [safety]
            be_quota_rise = 0.5

            [interference]
            reserved_cpus = "{self.client_cpu}"

            [straggler]
            restore_hold = "{math.ceil(hold_s)}s"
            restore_step = 0.5

            [oversell]
            memory_cap = {memory_cap}
            evict = {str(evict).lower()}

            [[workload]]
            match = "system.slice/{JOB}"
            class = "latency-sensitive"
            isolation = "vcpus"
            vcpus = 1
            progress = {{file = "{JOB_PROGRESS}"}}

            [[workload]]
            match = "system.slice/{CACHE}"
            class = "latency-sensitive"

            [[workload]]
            match = "system.slice/*-batch-berth-demo.service"
            class = "best-effort"
            evictable = true

            """) + services

    # Services

    def ensure(self) -> None:
        """Starts what does not run, and waits until berth has samples of all of it."""
        WORK.mkdir(exist_ok=True)
        if not berthd_runs():
            self.start_berthd()
        self.configure()
        missing = [unit for unit in self.units if not runs(unit)]
        if WEB in missing:
            self._start_web()
        if LIGHT in missing:
            start_unit(LIGHT, "stress-ng --quiet --cpu 1 --cpu-load 10")
        for unit in self.batch:
            if unit in missing:
                start_unit(unit, self.batch[unit])
        self.cpusets_before = self.cpusets_before or self.cpusets()
        if missing or not self._sampled:
            poll("berthd to have samples of the load", self._has_samples, seen=lambda: run("berthctl", "list", check=False))
            self._sampled = True

    def _has_samples(self) -> bool:
        found = {workload["id"]: workload for workload in ask("list")["workloads"]}
        mine = [found.get(f"system.slice/{unit}") for unit in self.units]
        return all(workload and workload["cpu_cores"] is not None for workload in mine)

    def _start_web(self) -> None:
        (WORK / "index.html").write_text("x" * 4096)
        (WORK / "nginx.conf").write_text(textwrap.dedent(f"""\
            worker_processes 2;
            pid {WORK}/nginx.pid;
            error_log stderr error;
            events {{ worker_connections 256; }}
            http {{
              access_log off;
              gzip on; gzip_min_length 1; gzip_comp_level 6; gzip_types *;
              server {{ listen 127.0.0.1:{PORT}; root {WORK}; }}
            }}
            """))
        start_unit(WEB, f"nginx -e stderr -c {WORK}/nginx.conf -g 'daemon off;'")

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=30) as reply:
                    return reply.status == 200
            except OSError:
                return False

        poll("nginx to answer", answers, seen=lambda: run("systemctl", "status", WEB, check=False))

    def known_state(self) -> None:
        """As each step finds it: no units of a single step, and the rules of all steps."""
        stop_units(*self.extras)
        self.configure()

    def clean_up(self) -> None:
        """Removes everything; a berthd that was there before goes on, in its mode. One part that fails stops no other."""
        for part in (self._stop_services, self._remove_rules, self._remove_files, self._give_berthd_back):
            try:
                part()
            except (NotSeen, OSError) as error:
                say(f"  while everything is put back: {error}")

    def _stop_services(self) -> None:
        stop_units(*self.extras, *self.units)
        run("systemctl", "reset-failed", "*-berth-demo.service", check=False)

    def _remove_rules(self) -> None:
        DROP_IN.unlink(missing_ok=True)
        run("systemctl", "stop", BERTHD, check=False)

    def _remove_files(self) -> None:
        shutil.rmtree(WORK, ignore_errors=True)

    def _give_berthd_back(self) -> None:
        if self.mode_before:
            run("systemctl", "start", BERTHD)
            if ask("status")["mode"] != self.mode_before:
                run("berthctl", "mode", self.mode_before)

    # Pins

    def cpusets(self) -> dict[str, str]:
        """What each service is restricted to; empty where it may run anywhere."""
        return {unit: cpuset(unit) for unit in self.units}

    def idle(self) -> list[str]:
        """The batch services at idle priority."""
        return [unit for unit in self.batch if cgroup_file(unit, "cpu.idle") == "1"]

    def at_home(self) -> bool:
        """Each service is pinned to its home, as far as it needs a pin, and the batch yields to it."""
        homes = ask("plan")["findings"]["interference"].get("shared", {})
        mine = {unit: homes.get(f"system.slice/{unit}") for unit in self.services}
        settled = all(home and home["home"] and parse_cpulist(home["cpus"]) == parse_cpulist(cpuset(unit))
                      for unit, home in mine.items())
        return settled and len(self.idle()) == len(self.batch)

    def on_own_vcpus(self) -> bool:
        found = {unit: parse_cpulist(cpulist) for unit, cpulist in self.cpusets().items()}
        owned = set().union(*(found[unit] for unit in self.services))
        whole = all(len(found[unit]) == vcpus for unit, vcpus in self.services.items())
        return whole and all(found[unit] and not found[unit] & owned for unit in self.batch)

    def untouched(self) -> bool:
        return self.cpusets() == self.cpusets_before and not self.idle()

    def enforce(self) -> None:
        """berth's default."""
        self.run_as("shared")

    def run_as(self, way: str) -> None:
        """One of WAYS."""
        self.configure(isolation=way if way == "vcpus" else "")
        self.mode("observe" if way == "unpinned" else "enforce")
        reached = {"unpinned": self.untouched, "shared": self.at_home, "vcpus": self.on_own_vcpus}[way]
        poll(f"the way {way}", reached, seen=lambda: (self.cpusets(), self.idle()))

    def quotas(self) -> dict[str, str]:
        """cpu.max of the batch services, unset as the kernel says it."""
        return {unit: cgroup_file(unit, "cpu.max") or "max 100000" for unit in self.batch}

    # The client

    def _client(self, duration_s: int) -> list[str]:
        return ["wrk", "--threads", "1", "--connections", "4", "--duration", f"{duration_s}s", "--timeout", "20s",
                "--latency", "--header", "Accept-Encoding: gzip", f"http://127.0.0.1:{PORT}/"]

    def _client_properties(self) -> list[str]:
        return [f"AllowedCPUs={self.client_cpu}", "CPUSchedulingPolicy=fifo", "CPUSchedulingPriority=1"]

    def keep_busy(self) -> None:
        """Requests all the time, until end_busy()."""
        start_unit(CLIENT, " ".join(self._client(86400)).replace("Accept-Encoding: gzip", "'Accept-Encoding: gzip'"),
                   *self._client_properties(), f"StandardOutput=truncate:{WORK}/client")

    def end_busy(self) -> str:
        """Ends keep_busy() and returns what its client says."""
        run("systemctl", "kill", "--signal=INT", CLIENT)
        poll("the client to end", lambda: not runs(CLIENT))
        return (WORK / "client").read_text()

    def measure(self, seconds: int) -> dict[str, float]:
        """What the client sees once berth has seen the load for some ticks, and how many cores the batch uses meanwhile."""
        self.keep_busy()
        time.sleep(3 * BEAT.usual_s)
        self.end_busy()
        before, started = cpu_seconds(*self.batch), time.monotonic()
        given = [f"--property={text}" for text in self._client_properties()]
        output = run_long("systemd-run", "--quiet", "--collect", "--wait", "--pipe", f"--unit={CLIENT}", *given,
                          *self._client(seconds), limit_s=seconds)
        batch = (cpu_seconds(*self.batch) - before) / (time.monotonic() - started)
        return {**figures_of(output), "batch_cores": batch}


def berthd_runs() -> bool:
    try:
        return "populated 1" in (CGROUP / "berth.slice" / BERTHD / "cgroup.events").read_text()
    except OSError:
        return False


def figures_of(output: str) -> dict[str, float]:
    """Of wrk's report: percentiles of the latency in milliseconds, requests, and requests a second."""
    to_ms = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
    found = re.findall(r"^\s+(50|90|99)%\s+([\d.]+)(us|ms|s|m)", output, re.MULTILINE)
    figures = {f"p{percentile}": float(value) * to_ms[unit] for percentile, value, unit in found}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output)
    requests = re.search(r"(\d+) requests in", output)
    if len(figures) != 3 or not rate or not requests or not int(requests[1]):
        raise NotSeen(f"wrk measured no latency:\n{output}")
    return {**figures, "requests": int(requests[1]), "rate": float(rate[1])}
