# SPDX-License-Identifier: Apache-2.0
"""What the applications of a round are like, drawn from its seed."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass

MODULUS = 1_000_003
KINDS = ROUNDS, CHAIN, REUSE = "rounds", "chain", "reuse"
# The first stage of `reuse` takes so many times as long as the others.
BASE = 6
LEAST_HEAP_MB, MOST_HEAP_MB = 64, 400
# The latest that one begins, as a share of the time until the eviction.
YOUNGEST = 0.6


@dataclass(frozen=True)
class Shape:
    """One application. `chain`: one job, each stage reads what the one before wrote. `rounds`: a job for every two stages, and what a
    job wrote nobody reads once it is done. `reuse`: what the first stage wrote is read by each of many jobs."""

    name: str
    kind: str
    executors: int
    heap_mb: int
    delay_s: float
    stages: int
    tasks: int  # of a stage
    task_s: float
    block_bytes: int  # that each task writes for each of the next stage's

    def jobs(self) -> list[int]:
        """Numbers of stages, where no job reads what another one wrote."""
        return [self.stages] if self.kind == CHAIN else [2] * (self.stages // 2)

    def seconds(self, stage: int) -> float:
        """That each task of a stage takes."""
        return self.task_s * (BASE if self.kind == REUSE and stage == 0 else 1)

    def total(self) -> int:
        """What it has to come to."""
        if self.kind == REUSE:
            return sum(reuse_total(stage, self.tasks, self.block_bytes) for stage in range(1, self.stages)) % MODULUS
        return sum(job_total(stages, self.tasks, self.block_bytes) for stages in self.jobs()) % MODULUS

    def as_text(self) -> str:
        return json.dumps(asdict(self))


def value_of(stage: int, index: int, read: list[tuple[int, int]]) -> int:
    """What a task makes of the values and numbers of bytes that it read."""
    return (stage * 31 + index * 7 + sum(value + size for value, size in read)) % MODULUS


def written(value: int, to: int) -> int:
    """The value that it writes for a task of the next stage."""
    return value * (to + 1) % MODULUS


def job_total(stages: int, tasks: int, block_bytes: int) -> int:
    values = [value_of(0, index, []) for index in range(tasks)]
    for stage in range(1, stages):
        values = [
            value_of(stage, index, [(written(value, index), block_bytes) for value in values]) for index in range(tasks)
        ]
    return sum(values) % MODULUS


def reuse_total(stage: int, tasks: int, block_bytes: int) -> int:
    """What one job comes to that reads the first stage's blocks."""
    values = [value_of(0, index, []) for index in range(tasks)]
    return sum(value_of(stage, index, [(written(value, index), block_bytes) for value in values]) for index in range(tasks))


def draw(seed: int, count: int, executors: int, work_s: float, evict_at_s: float) -> list[Shape]:
    """`count` applications of some `work_s` seconds alone. Of each three that are next to each other in size one is of each kind, and age
    is drawn for itself, so that neither kind, age nor memory tells anything of the others."""
    draws = random.Random(seed)
    heaps = [round(LEAST_HEAP_MB + (MOST_HEAP_MB - LEAST_HEAP_MB) * number / max(1, count - 1)) for number in range(count)]
    kinds: list[str] = []
    while len(kinds) < count:
        kinds += draws.sample(KINDS, len(KINDS))
    of_apps = list(zip(kinds, heaps, strict=False))
    draws.shuffle(of_apps)
    shapes = []
    for number, (kind, heap_mb) in enumerate(of_apps):
        task_s = draws.choice([0.3, 0.5, 0.8])
        # Two turns of each executor's one core.
        stages = round(work_s * draws.uniform(1.0, 1.3) / (2 * task_s)) // 2 * 2
        shapes.append(
            Shape(
                name=f"app{number}",
                kind=kind,
                executors=executors,
                heap_mb=heap_mb,
                delay_s=draws.uniform(0, YOUNGEST * evict_at_s),
                stages=max(2, stages - BASE + 1 if kind == REUSE else stages),
                tasks=2 * executors,
                task_s=task_s,
                block_bytes=draws.choice([2_000, 20_000, 200_000]),
            )
        )
    return shapes
