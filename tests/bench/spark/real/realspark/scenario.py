# SPDX-License-Identifier: Apache-2.0
"""What the applications of a round are like, drawn from its seed."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass

MODULUS = 1_000_003
ROUNDS, CHAIN = "rounds", "chain"


@dataclass(frozen=True)
class Shape:
    """One application. `chain`: one job, each stage reads what the one before wrote. `rounds`: a job for every two stages, and what a
    job wrote nobody reads once it is done."""

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
        """Numbers of stages."""
        return [self.stages] if self.kind == CHAIN else [2] * (self.stages // 2)

    def total(self) -> int:
        """What it has to come to."""
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


def draw(seed: int, count: int, work_s: float) -> list[Shape]:
    """`count` applications, oldest first, each of some `work_s` seconds."""
    draws = random.Random(seed)
    shapes = []
    delay_s = 0.0
    for number in range(count):
        executors = draws.choice([2, 3, 4])
        task_s = draws.choice([0.3, 0.5, 0.8])
        tasks = executors * 2
        stages = max(2, round(work_s * draws.uniform(0.8, 1.2) / (2 * task_s)) // 2 * 2)
        shapes.append(
            Shape(
                name=f"app{number}",
                # Both kinds are there in every round.
                kind=(CHAIN, ROUNDS)[number] if number < 2 else draws.choice([CHAIN, ROUNDS]),
                executors=executors,
                heap_mb=draws.choice([64, 128, 256, 400]),
                delay_s=delay_s,
                stages=stages,
                tasks=tasks,
                task_s=task_s,
                block_bytes=draws.choice([2_000, 20_000, 200_000]),
            )
        )
        delay_s += draws.uniform(2, 5)
    draws.shuffle(shapes)
    # Who is what must not tell who is old.
    delays = sorted(shape.delay_s for shape in shapes)
    return [
        Shape(**{**asdict(shape), "name": f"app{number}", "delay_s": delay})
        for number, (shape, delay) in enumerate(zip(shapes, delays, strict=True))
    ]
