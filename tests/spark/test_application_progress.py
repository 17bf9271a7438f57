# SPDX-License-Identifier: Apache-2.0
"""Applications are as far as their drivers count, without saying so themselves."""

from __future__ import annotations

import json

import pytest
from conftest import Scene
from sparklib import Application, Berthd, until


def fraction(app: Application) -> float:
    stages = [stage for stage in app.rest("stages") if stage["status"] != "SKIPPED"]
    return sum(stage["numCompletedIndices"] for stage in stages) / (sum(stage["numTasks"] for stage in stages) + 1)


def progress(berthd: Berthd, workload: str) -> float | None:
    workloads = json.loads(berthd.ctl("list", "--json"))["workloads"]
    return next(item["progress"] for item in workloads if item["id"] == workload)


def test_a_workload_is_as_far_as_the_application_it_runs(scene: Scene, berthd: Berthd) -> None:
    until("two of the six tasks that etl holds with are done", lambda: fraction(scene.etl) >= 10 / 19)
    for app, name in ((scene.etl, "etl"), (scene.ml, "ml")):
        workload, expected = scene.groups.workload(name), pytest.approx(fraction(app))
        until(f"{name} is as far as its driver says", lambda w=workload, e=expected: progress(berthd, w) == e)
    assert 0 < fraction(scene.etl) < fraction(scene.ml) < 1
    # A Worker with executors of several applications is nobody's.
    assert progress(berthd, scene.groups.workload("worker")) is None
