# SPDX-License-Identifier: Apache-2.0
"""Applications that end, by themselves or not, while berth looks on. The last tests: nothing is left of the cluster's
applications after them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from conftest import ML_ROUNDS, Scene
from sparklib import PATIENCE_S, Berthd, berthd_once, until

ROWS = 100_000


def test_an_application_ends_with_the_right_result_and_is_forgotten(scene: Scene, berthd: Berthd) -> None:
    until("both applications are known", lambda: len(berthd.spark()["apps"]) == 2)
    scene.end_ml.touch()
    assert int(scene.ml.says(r"^total (\d+)")) == ML_ROUNDS * ROWS * (ROWS - 1) // 2
    assert scene.ml.process.wait(timeout=PATIENCE_S) == 0
    until("it is forgotten", lambda: list(berthd.spark()["apps"]) == [scene.etl.id])
    assert scene.groups.workload("ml") not in berthd.spark()["candidates"]


def test_a_driver_that_dies_midway_is_forgotten(scene: Scene, berthd: Berthd, build: Path, tmp_path: Path) -> None:
    until("its application is known", lambda: scene.etl.id in berthd.spark()["apps"])
    os.kill(scene.etl.pid, signal.SIGKILL)
    scene.etl.process.wait(timeout=PATIENCE_S)
    until("its application is forgotten", lambda: berthd.spark()["apps"] == {})
    until("berthd answers within 5 s", lambda: berthd.answers_in() < 5)
    # Its executors notice by themselves; the Worker and the Master live on.
    until("its executors have ended", lambda: not scene.etl.executor_pids())
    assert berthd_once(build, tmp_path)["findings"]["eviction"]["apps"] == {}
    assert scene.cluster.worker.process.poll() is None
    assert scene.cluster.master.process.poll() is None
