# SPDX-License-Identifier: Apache-2.0
"""app.py SHAPE GO: an application of the shape that is given as JSON (realspark/scenario.py). It says "ready" once it has its executors and they have run
something, begins its delay after the file GO is there, and says what it came to and how long that took, its delay included.

Its tasks sleep instead of computing, so that more of them than there are CPUs take the time they are meant to; what they write and read is real.
"""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

SCENARIO = Path(__file__).resolve().parent / "realspark" / "scenario.py"
sys.path.insert(0, str(SCENARIO.parent))
from scenario import MODULUS, REUSE, Shape, value_of, written  # noqa: E402, as executors import what they are sent


def step(shape: Shape, stage: int):
    """What a task of the stage does."""
    tasks, task_s, block_bytes = shape.tasks, shape.seconds(stage), shape.block_bytes

    def work(index, rows):
        read = [(value, len(data)) for _, (value, data) in rows]
        time.sleep(task_s)
        value = value_of(stage, index, read)
        for to in range(tasks):
            yield to, (written(value, to), os.urandom(block_bytes))

    return work


def last_step(shape: Shape, stage: int):
    task_s = shape.seconds(stage)

    def work(index, rows):
        read = [(value, len(data)) for _, (value, data) in rows]
        time.sleep(task_s)
        yield value_of(stage, index, read)

    return work


def run_job(context: SparkContext, shape: Shape, stages: int) -> int:
    blocks = context.parallelize([], shape.tasks).mapPartitionsWithIndex(step(shape, 0))
    for stage in range(1, stages - 1):
        blocks = blocks.partitionBy(shape.tasks, int).mapPartitionsWithIndex(step(shape, stage))
    return sum(blocks.partitionBy(shape.tasks, int).mapPartitionsWithIndex(last_step(shape, stages - 1)).collect())


def run_reusing(context: SparkContext, shape: Shape) -> int:
    base = context.parallelize([], shape.tasks).mapPartitionsWithIndex(step(shape, 0)).partitionBy(shape.tasks, int)
    return sum(sum(base.mapPartitionsWithIndex(last_step(shape, stage)).collect()) for stage in range(1, shape.stages))


def main() -> None:
    shape, go = Shape(**json.loads(sys.argv[1])), Path(sys.argv[2])
    context = SparkContext.getOrCreate()
    context.addPyFile(str(SCENARIO))
    print(f"application {context.applicationId}", flush=True)
    print(f"web {context.uiWebUrl}", flush=True)
    executors = context._jsc.sc().getExecutorMemoryStatus()
    while executors.size() < shape.executors + 1:  # the driver is one of them
        time.sleep(0.1)
        executors = context._jsc.sc().getExecutorMemoryStatus()
    # What JVMs and Python's workers load, they load before anything is timed.
    run_job(context, replace(shape, task_s=0, block_bytes=1), 3)
    print("ready", flush=True)
    while not go.exists():
        time.sleep(0.02)
    begun = time.monotonic()
    time.sleep(shape.delay_s)
    total = run_reusing(context, shape) if shape.kind == REUSE else sum(run_job(context, shape, stages) for stages in shape.jobs())
    print(f"took {time.monotonic() - begun}", flush=True)
    print(f"total {total % MODULUS}", flush=True)
    context.stop()


if __name__ == "__main__":
    main()
