# SPDX-License-Identifier: Apache-2.0
"""Step: a job is late, grows at the expense of the batch, and everything is given back."""

from __future__ import annotations

import json
import math
import re
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .host import BEAT, NotSeen, ask, cpuset, parse_cpulist, poll, run, run_long, runs, say, start_unit
from .load import JOB, JOB_PROGRESS, Load

# What is left of the job is asked for in this share of the time that it would take.
ASKED = 0.65
WORKLOAD = f"system.slice/{JOB}"


class Job:
    """The job's own reports: when it had done how much."""

    def __init__(self, program: Path, total: int) -> None:
        self.total = total
        JOB_PROGRESS.unlink(missing_ok=True)
        start_unit(JOB, f"{program} --samples {total} --processes 2 --progress {JOB_PROGRESS}")

    def report(self) -> tuple[float, float]:
        """The time and the fraction of the newest report."""
        try:
            done, total = JOB_PROGRESS.read_text().split("/")
            return JOB_PROGRESS.stat().st_mtime, int(done) / int(total)
        except (OSError, ValueError):
            return 0.0, 0.0

    def paces(self, count: int, window_s: float) -> list[float]:
        """Its progress in a second, each between two reports that are so far apart; fewer where the job ends."""
        start, done = poll("a report of the job", lambda: (now := self.report())[1] > 0 and now)
        found: list[float] = []
        while len(found) < count and done < 1:
            end, fraction = poll("another report of the job", lambda: self._later(start, done, window_s), seen=self.report)
            found.append((fraction - done) / (end - start))
            start, done = end, fraction
        if not found:
            raise NotSeen(f"the job of {self.total} thousand samples ended before its pace was measured")
        return found

    def _later(self, start: float, done: float, window_s: float) -> tuple[float, float] | None:
        now, fraction = self.report()
        return (now, fraction) if fraction > done and (now - start >= window_s or fraction >= 1) else None

    def remaining_s(self, pace: float) -> float:
        return (1 - self.report()[1]) / pace


def calibrate(program: Path, seconds: float) -> float:
    """Thousands of samples in a second that a job computes here, beside this load."""
    output = run_long("systemd-run", "--quiet", "--collect", "--wait", "--pipe", f"--unit={JOB}", str(program),
                      "--for", f"{seconds:.1f}", "--processes", "2", limit_s=seconds)
    done = int(re.search(r"samples (\d+)", output)[1])
    if not done:
        raise NotSeen(f"a job computed nothing in {seconds:.0f} s")
    return done / seconds


def created() -> float:
    """When the job began, as berth sees it: its deadline counts from there."""
    workloads = json.loads(run("berthctl", "snapshot"))["workloads"]
    found = next((workload for workload in workloads if workload["id"] == WORKLOAD), None)
    if not found:
        raise NotSeen("berth does not list the job")
    return found["created"]


def vcpus() -> int:
    return len(parse_cpulist(cpuset(JOB)))


@dataclass(frozen=True)
class Deal:
    """When the job was asked for, when it has to be done, and when it would be done at its pace of then."""

    made: float
    deadline: float
    forecast: float
    vcpus: str = ""


def make_deal(job: Job, pace: float, born: float) -> Deal:
    remaining = job.remaining_s(pace)
    now = time.time()
    run("berthctl", "set", WORKLOAD, f"deadline={math.ceil(now - born + remaining * ASKED)}s")
    say(f"  At that pace it needs {remaining:.0f} s more. We ask for it in {remaining * ASKED:.0f} s.")
    return Deal(now, now + remaining * ASKED, now + remaining)


def grow_late_job(job: Job, pace: float, born: float) -> Deal:
    """Asks for the job sooner than it would be done, and waits until berth lets it grow.

    Where the host became faster meanwhile, the job is not late after all: it is asked for sooner once more.
    """
    for _ in range(3):
        deal = make_deal(job, pace, born)
        patience = deal.made + (deal.deadline - deal.made) * 2 / 3
        poll("the job to grow", lambda: vcpus() > 1 or time.time() > patience or not runs(JOB))
        if vcpus() > 1:
            return replace(deal, vcpus=cpuset(JOB))
        pace = job.paces(1, BEAT.usual_s)[0]
        say(f"  It did not grow; now it is {pace * 100:.2f} % further every second.")
    task = ask("plan")["findings"]["straggler"]["tasks"].get(WORKLOAD)
    raise NotSeen(f"the job did not grow; berth knows of it: {task}")


def grow(load: Load, program: Path, rounds: int) -> dict[str, Any]:
    load.ensure()
    load.enforce()
    quotas = load.quotas()
    per_second = calibrate(program, max(3.0, BEAT.usual_s))
    # Long enough for three measurements, some ticks until it grows, and three more measurements.
    window = max(2.5, BEAT.usual_s)
    length = max(50.0, 20 * BEAT.usual_s)
    load.configure(hold_s=length)
    job = Job(program, max(100, math.ceil(per_second * length)))
    poll("berth to give the job a vCPU", lambda: vcpus() == 1, seen=lambda: run("berthctl", "list", check=False))
    born = created()
    before = job.paces(rounds, window)
    pace = sum(before) / len(before)
    say(f"  The job asked for a vCPU of its own, owns {cpuset(JOB)}, and is {pace * 100:.2f} % further every second.")
    deal = grow_late_job(job, pace, born)
    paid = {unit: quota for unit, quota in load.quotas().items() if quota != quotas[unit]}
    after = job.paces(rounds, window)
    # Its reports and the payers; the lines above them are about its pin.
    explained = run("berthctl", "explain", WORKLOAD)
    say(textwrap.indent(explained[max(0, explained.find("\nProgress\n")):].strip(), "  | "))
    say(f"  It got vCPUs {deal.vcpus} and is {sum(after) / len(after) / pace:.2f} times as fast.")
    for unit, quota in paid.items():
        say(f"    {unit:34} cpu.max = {quota} (was {quotas[unit]})")
    if not paid:
        say("    nobody had to pay: there was idle CPU.")
    poll("the job to end", lambda: not runs(JOB), beats=90 + 10 * length / BEAT.slow_s, seen=job.report)
    finished, _ = job.report()
    late = finished - deal.deadline
    say(f"  It is done {abs(late):.1f} s {'after' if late > 0 else 'before'} its deadline. "
        "What others gave up goes back to them:")
    load.configure()
    poll("every quota to be back", lambda: load.quotas() == quotas, seen=load.quotas)
    say("    every cpu.max is as before.")
    return {"asked_s": deal.deadline - deal.made, "forecast_s": deal.forecast - deal.made,
            "took_s": finished - deal.made, "pace_before": before, "pace_after": after,
            "vcpus": deal.vcpus, "paid": sorted(paid)}
