# SPDX-License-Identifier: Apache-2.0
"""The applications of a seed."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, dataclass

MODULUS = 1_000_003
KINDS = ROUNDS, CHAIN, REUSE = "rounds", "chain", "reuse"
# The first stage of `reuse` has so many times as many tasks as the others.
BASE = 6
# Of the small job with which each application begins.
WARM_UP_STAGES = 3
LEAST_HEAP_MB, MOST_HEAP_MB = 64, 400
# The age of the youngest one when executors are killed, in seconds from its start.
YOUNGEST_S = 12
# From the start of an application to its first task of real work, with other applications beside it.
STARTING_S = 7
# The share of a CPU's time that tasks get; JVMs, Python and berthd take the rest.
EFFICIENCY = 0.9
# A job of hundreds of stages would mostly plan.
MOST_STAGES = 60


@dataclass(frozen=True)
class Shape:
    """One application.

    `chain` is one job, and each stage reads what the one before wrote. `rounds` is a job for every two stages, and no job reads what another one
    wrote. `reuse` is many jobs that read what the first stage wrote.
    """

    name: str
    kind: str
    executors: int
    heap_mb: int
    age_s: float  # from its start, when executors are killed
    stages: int
    tasks: int  # of a stage
    task_cpu_s: float
    block_bytes: int  # what each task writes for each task of the next stage

    @property
    def base_tasks(self) -> int:
        """Tasks of the first stage of `reuse`."""
        return BASE * self.tasks

    def jobs(self) -> list[int]:
        """Numbers of stages of its jobs; not for `reuse`."""
        return [self.stages] if self.kind == CHAIN else [2] * (self.stages // 2)

    def total(self) -> int:
        """The result that it must have."""
        if self.kind == REUSE:
            return sum(reuse_total(stage, self.base_tasks, self.tasks, self.block_bytes) for stage in range(1, self.stages)) % MODULUS
        return sum(job_total(stages, self.tasks, self.block_bytes) for stages in self.jobs()) % MODULUS

    def as_text(self) -> str:
        return json.dumps(asdict(self))


def value_of(stage: int, index: int, read: list[tuple[int, int]]) -> int:
    """The value of a task that read these values and numbers of bytes."""
    return (stage * 31 + index * 7 + sum(value + size for value, size in read)) % MODULUS


def written(value: int, to: int) -> int:
    """The value that it writes for a task of the next stage."""
    return value * (to + 1) % MODULUS


def job_total(stages: int, tasks: int, block_bytes: int) -> int:
    values = [value_of(0, index, []) for index in range(tasks)]
    for stage in range(1, stages):
        values = [value_of(stage, index, [(written(value, index), block_bytes) for value in values]) for index in range(tasks)]
    return sum(values) % MODULUS


def reuse_total(stage: int, base_tasks: int, tasks: int, block_bytes: int) -> int:
    """The result of one job that reads the first stage's blocks."""
    values = [value_of(0, index, []) for index in range(base_tasks)]
    return sum(value_of(stage, index, [(written(value, index), block_bytes) for value in values]) for index in range(tasks))


def progress(starts: list[float], executors: int, until: float, cpus: int) -> list[float]:
    """The CPU seconds of work that each application has done by `until`, if all running tasks share the CPUs alike."""
    step = 0.25
    done = [0.0] * len(starts)
    for tick in range(round(until / step)):
        running = [number for number, start in enumerate(starts) if start + STARTING_S <= tick * step]
        for number in running:
            done[number] += step * EFFICIENCY * executors * min(1.0, cpus / (executors * len(running)))
    return done


def draw(seed: int, count: int, executors: int, kill_at_s: float, cpus: int) -> list[Shape]:
    """`count` applications. None is at its end at `kill_at_s`.

    Of each three that are next to each other in size one is of each kind. Ages are spread from YOUNGEST_S to `kill_at_s`, and drawn apart from size
    and kind. So neither kind, age nor memory tells anything of the others.
    """
    draws = random.Random(seed)
    heaps = [round(LEAST_HEAP_MB + (MOST_HEAP_MB - LEAST_HEAP_MB) * number / max(1, count - 1)) for number in range(count)]
    kinds: list[str] = []
    while len(kinds) < count:
        kinds += draws.sample(KINDS, len(KINDS))
    of_apps = list(zip(kinds, heaps, strict=False))
    draws.shuffle(of_apps)
    # The oldest one first. Each age is drawn from a part of its own of the range, on a logarithmic scale.
    range_of_ages = math.log(kill_at_s / YOUNGEST_S)
    ages = [kill_at_s * math.exp(-range_of_ages * (number + draws.random() * (number > 0)) / count) for number in range(count)]
    done = progress([kill_at_s - age for age in ages], executors, kill_at_s, cpus)
    shapes = []
    for number, (kind, heap_mb) in enumerate(of_apps):
        tasks = 2 * executors
        work_s = done[number] * draws.uniform(1.15, 1.4)
        task_cpu_s = max(draws.choice([0.1, 0.2, 0.4]), round(work_s / (tasks * MOST_STAGES), 2))
        stages = round(work_s / (tasks * task_cpu_s))
        if kind == REUSE:
            stages = max(3, stages - BASE + 1)
        shapes.append(
            Shape(
                name=f"app{number}",
                kind=kind,
                executors=executors,
                heap_mb=heap_mb,
                age_s=ages[number],
                stages=max(4, stages // 2 * 2),
                tasks=tasks,
                task_cpu_s=task_cpu_s,
                block_bytes=draws.choice([2_000, 20_000, 200_000]),
            )
        )
    return shapes
