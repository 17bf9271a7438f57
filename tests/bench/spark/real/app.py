# SPDX-License-Identifier: Apache-2.0
"""app.py SHAPE: an application of the shape that is given as JSON (realspark/scenario.py).

It says "ready" once its executors have run something, and begins its work at once. At the end it says its result, and how long the work took.
Its tasks compute until they have used their CPU time. What they write and read is real.
"""

import hashlib
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

SCENARIO = Path(__file__).resolve().parent / "realspark" / "scenario.py"
sys.path.insert(0, str(SCENARIO.parent))
# Executors import the file that they are sent.
from scenario import MODULUS, REUSE, WARM_UP_STAGES, Shape, value_of, written  # noqa: E402


def compute(cpu_s: float) -> None:
    """Uses that much CPU time of this thread."""
    data = bytes(64 * 1024)
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        data = hashlib.sha256(data).digest() * 2048


def step(shape: Shape, stage: int, readers: int):
    """What a task does that writes a block for each of `readers` tasks."""
    task_cpu_s, block_bytes = shape.task_cpu_s, shape.block_bytes

    def work(index, rows):
        read = [(value, len(data)) for _, (value, data) in rows]
        compute(task_cpu_s)
        value = value_of(stage, index, read)
        for to in range(readers):
            yield to, (written(value, to), os.urandom(block_bytes))

    return work


def last_step(shape: Shape, stage: int):
    """What a task of a job's last stage does."""
    task_cpu_s = shape.task_cpu_s

    def work(index, rows):
        read = [(value, len(data)) for _, (value, data) in rows]
        compute(task_cpu_s)
        yield value_of(stage, index, read)

    return work


def run_job(context: SparkContext, shape: Shape, stages: int) -> int:
    blocks = context.parallelize([], shape.tasks).mapPartitionsWithIndex(step(shape, 0, shape.tasks))
    for stage in range(1, stages - 1):
        blocks = blocks.partitionBy(shape.tasks, int).mapPartitionsWithIndex(step(shape, stage, shape.tasks))
    return sum(blocks.partitionBy(shape.tasks, int).mapPartitionsWithIndex(last_step(shape, stages - 1)).collect())


def run_reusing(context: SparkContext, shape: Shape) -> int:
    base = context.parallelize([], shape.base_tasks).mapPartitionsWithIndex(step(shape, 0, shape.tasks)).partitionBy(shape.tasks, int)
    return sum(sum(base.mapPartitionsWithIndex(last_step(shape, stage)).collect()) for stage in range(1, shape.stages))


def main() -> None:
    shape = Shape(**json.loads(sys.argv[1]))
    context = SparkContext.getOrCreate()
    context.addPyFile(str(SCENARIO))
    print(f"application {context.applicationId}", flush=True)
    print(f"web {context.uiWebUrl}", flush=True)
    executors = context._jsc.sc().getExecutorMemoryStatus()
    while executors.size() < shape.executors + 1:  # the driver is one of them
        time.sleep(0.1)
        executors = context._jsc.sc().getExecutorMemoryStatus()
    # JVMs and Python's workers load their code now, so that no task's time contains it.
    run_job(context, replace(shape, task_cpu_s=0, block_bytes=1), WARM_UP_STAGES)
    print("ready", flush=True)
    begun = time.monotonic()
    total = run_reusing(context, shape) if shape.kind == REUSE else sum(run_job(context, shape, stages) for stages in shape.jobs())
    print(f"took {time.monotonic() - begun}", flush=True)
    print(f"total {total % MODULUS}", flush=True)
    context.stop()


if __name__ == "__main__":
    main()
