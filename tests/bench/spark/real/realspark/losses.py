# SPDX-License-Identifier: Apache-2.0
"""Work lost, as Spark's own event logs tell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Work:
    """Of one application, in task seconds."""

    useful_s: float  # the first success of each partition of what each stage computes
    again_s: float  # every further success of one
    failed_s: float  # tasks that failed or were killed

    @property
    def lost_s(self) -> float:
        return self.again_s + self.failed_s


def work_of(log: Path) -> Work:
    useful = again = failed = 0.0
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
            reason, info = event["Task End Reason"]["Reason"], event["Task Info"]
            if reason == "Success":
                run_s = event["Task Metrics"]["Executor Run Time"] / 1000
                # Not the index: of a stage that is tried again that counts only what is missing.
                partition = (computes[event["Stage ID"]], info["Partition ID"])
                if partition in seen:
                    again += run_s
                else:
                    useful += run_s
                seen.add(partition)
            elif reason != "Resubmitted":  # which says of a task that has succeeded that its output is lost
                failed += max(0, info["Finish Time"] - info["Launch Time"]) / 1000
    return Work(useful, again, failed)
