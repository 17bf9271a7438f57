# SPDX-License-Identifier: Apache-2.0
"""Work lost, as Spark's own event logs tell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .scenario import WARM_UP_STAGES


@dataclass(frozen=True)
class Work:
    """Of one application, in CPU seconds of its tasks."""

    useful_s: float  # the first success of each partition of what each stage computes
    again_s: float  # every further success of one
    failed_s: float  # tasks that failed or were killed

    @property
    def lost_s(self) -> float:
        return self.again_s + self.failed_s


def work_of(log: Path, task_cpu_s: float) -> Work:
    """Of an application whose tasks use `task_cpu_s` each. Its warm-up does not count.

    A task that failed counts for the share of its run time that the application's other tasks had a CPU.
    """
    useful = again = 0
    success_run_s = failed_run_s = 0.0
    seen = set()
    computes = {}  # a stage's RDD: a later job has another number for what is computed again
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if '"SparkListenerStageSubmitted"' in line[:60]:
                stage = json.loads(line)["Stage Info"]
                computes[stage["Stage ID"]] = stage["RDD Info"][0]["RDD ID"]
            if '"SparkListenerTaskEnd"' not in line[:60]:
                continue
            event = json.loads(line)
            if event["Stage ID"] < WARM_UP_STAGES:
                continue
            reason, info = event["Task End Reason"]["Reason"], event["Task Info"]
            if reason == "Success":
                success_run_s += event["Task Metrics"]["Executor Run Time"] / 1000
                # Not the index: if a stage is tried again, that counts only what is missing.
                partition = (computes[event["Stage ID"]], info["Partition ID"])
                if partition in seen:
                    again += 1
                else:
                    useful += 1
                seen.add(partition)
            elif reason != "Resubmitted":  # that is said of a task that has succeeded, when its output is lost
                failed_run_s += min(task_cpu_s, max(0, info["Finish Time"] - info["Launch Time"]) / 1000 * share(useful + again, task_cpu_s, success_run_s))
    return Work(useful_s=useful * task_cpu_s, again_s=again * task_cpu_s, failed_s=failed_run_s)


def share(successes: int, task_cpu_s: float, run_s: float) -> float:
    """The share of their run time in which tasks have had a CPU so far."""
    return min(1.0, successes * task_cpu_s / run_s) if run_s > 0 else 1.0
