# SPDX-License-Identifier: Apache-2.0
"""An executor that berth evicts is decommissioned, and its driver knows: in its log, and in what it answers."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import Scene
from sparklib import CONFIG, PATIENCE_S, Application, Berthd, until

ROWS = 100_000


def executors(app: Application) -> dict[str, dict]:
    """All that the application ever had."""
    return {item["id"]: item for item in app.rest("allexecutors") if item["id"] != "driver"}


def test_a_driver_sees_that_its_executor_was_decommissioned(scene: Scene, build: Path, tmp_path: Path) -> None:
    end = tmp_path / "end"
    app = scene.cluster.submit("gentle", "2", "4", "wait", str(end), cores=1, conf={"spark.decommission.enabled": "true"})
    # Who takes longer than its grace is terminated, and on a slow machine it may.
    berthd = Berthd(build, tmp_path, config='eviction.grace = "1h"\n' + CONFIG, enforce=True)
    try:
        app.says("^(ready)")
        assert list(executors(app)) == ["0"]
        scene.groups.move("gentle-0", app.executor_pids()["0"])
        workload = scene.groups.workload("gentle-0")
        until("it is known as an executor", lambda: berthd.spark()["candidates"].get(workload, {}).get("kind") == "executor")
        berthd.ctl("evict", "--yes", workload)
        until("it has ended", lambda: "end applied" in berthd.steps(workload))
        assert berthd.steps(workload) == ["decommission applied", "end applied"], "nobody had to be terminated, or killed"
        app.says(r"(?i)(executor 0 decommission)")
        gone = until("its driver says that it is gone", lambda: next(
            (item for item in executors(app).values() if item["id"] == "0" and not item["isActive"]), None
        ))
        assert re.search("decommission", gone["removeReason"], re.IGNORECASE), gone["removeReason"]
        assert gone["totalTasks"] > 0 and gone["failedTasks"] == 0
        until("the Master has started another one", lambda: any(item["isActive"] for item in executors(app).values()))
        end.touch()
        assert int(app.says(r"^total (\d+)")) == 2 * ROWS * (ROWS - 1) // 2
        assert app.process.wait(timeout=PATIENCE_S) == 0
    finally:
        end.touch()
        berthd.stop()
        app.process.wait(timeout=PATIENCE_S)
