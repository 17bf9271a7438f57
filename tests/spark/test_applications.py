# SPDX-License-Identifier: Apache-2.0
"""What berth finds out about the applications of a real cluster, compared with what their drivers say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Scene
from sparklib import Application, Berthd, berthd_once, until


def tasks_of(app: Application, stage: dict) -> list[dict]:
    path = f"stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=10000"
    return [task for task in app.rest(path) if task["status"] == "SUCCESS"]


def truth(app: Application) -> dict:
    """Its figures, computed from the driver's own answers (docs/decisions/eviction-cost.md)."""
    stages = [stage for stage in app.rest("stages") if stage["status"] != "SKIPPED"]
    return {
        "stages": len(stages),
        "stages_done": sum(stage["numCompletedIndices"] / stage["numTasks"] for stage in stages),
        "computation": sum(
            task["taskMetrics"]["executorRunTime"] / 1000 for stage in stages for task in tasks_of(app, stage)
        ),
        "shuffled": sum(stage["shuffleWriteBytes"] for stage in stages),
    }


def agrees(found: dict, app: Application) -> bool:
    expected = truth(app)
    return (
        found["stages"] == expected["stages"]
        and found["stages_done"] == pytest.approx(expected["stages_done"])
        and found["computation"] == pytest.approx(expected["computation"])
        # What was written in all bounds what would have to move again.
        and 0 < found["transmission"] <= expected["shuffled"]
        and found["recalculation"] == pytest.approx(found["computation"] + 8e-9 * found["transmission"])
    )


def test_once_finds_what_the_drivers_know(scene: Scene, build: Path, tmp_path: Path) -> None:
    # Two of the six tasks that it holds with are through shortly after it has begun with them.
    until("two tasks of the stage in hand are done", lambda: truth(scene.etl)["stages_done"] > 2.3)
    spark = berthd_once(build, tmp_path)["findings"]["eviction"]
    assert sorted(spark["apps"]) == sorted([scene.etl.id, scene.ml.id])
    assert agrees(spark["apps"][scene.etl.id], scene.etl), (spark["apps"][scene.etl.id], truth(scene.etl))
    assert agrees(spark["apps"][scene.ml.id], scene.ml), (spark["apps"][scene.ml.id], truth(scene.ml))
    assert spark["apps"][scene.etl.id]["remaining"] > 0
    # Nothing that it has begun is open, and as many stages again are expected.
    ml = spark["apps"][scene.ml.id]
    assert ml["stages_to_come"] == ml["stages"], ml
    assert ml["remaining"] > 0, ml


def test_once_can_be_run_again_and_again(scene: Scene, build: Path, tmp_path: Path) -> None:
    for _ in range(10):
        assert len(berthd_once(build, tmp_path)["findings"]["eviction"]["apps"]) == 2


def test_the_daemon_keeps_up_and_lists_them(scene: Scene, berthd: Berthd) -> None:
    until("both applications are known", lambda: len(berthd.spark()["apps"]) == 2)
    for app in (scene.etl, scene.ml):
        until(f"{app.id} is as its driver says", lambda known=app: agrees(berthd.spark()["apps"][known.id], known))
    text = berthd.ctl("list", "--spark")
    assert scene.etl.id in text
    assert scene.ml.id in text
    assert f"{truth(scene.ml)['stages_done']:.1f} of {truth(scene.ml)['stages']}" in text
    assert f"{scene.groups.workload('worker')} is spared: its cgroup is shared by" in text


def test_what_the_worker_shares_with_its_executors_is_nobodys_victim(scene: Scene, build: Path, tmp_path: Path) -> None:
    spark = berthd_once(build, tmp_path)["findings"]["eviction"]
    for name in ("worker", "master"):
        workload = scene.groups.workload(name)
        assert workload in spark["spared"]
        assert workload not in spark["candidates"]
        assert workload not in spark["order"]
    reason = spark["spared"][scene.groups.workload("worker")]
    assert f"Worker (pid {scene.cluster.worker.pid})" in reason
    assert f"executor 0 of {scene.etl.id}" in reason


def test_a_driver_is_a_candidate_with_what_its_application_is_worth(scene: Scene, build: Path, tmp_path: Path) -> None:
    spark = berthd_once(build, tmp_path)["findings"]["eviction"]
    for app, name in ((scene.etl, "etl"), (scene.ml, "ml")):
        candidate = spark["candidates"][scene.groups.workload(name)]
        assert candidate["kind"] == "driver"
        assert candidate["app"] == app.id
        assert candidate["cost"] == pytest.approx(spark["apps"][app.id]["cost"])


def test_an_executor_in_a_cgroup_of_its_own_is_a_candidate(scene: Scene, build: Path, tmp_path: Path) -> None:
    own, driver = scene.groups.workload("executor"), scene.groups.workload("etl")
    executor, pid = sorted(scene.etl.executor_pids().items())[0]
    scene.groups.move("executor", pid)
    spark = berthd_once(build, tmp_path)["findings"]["eviction"]
    candidate = spark["candidates"][own]
    assert candidate["kind"] == "executor"
    assert candidate["app"] == scene.etl.id
    running = [
        task for task in scene.etl.rest("stages/2/0/taskList") if task["executorId"] == executor and task["status"] == "RUNNING"
    ]
    assert running
    assert candidate["running"] > 0
    assert candidate["cost"] == pytest.approx(candidate["lost"] + candidate["running"])
    assert spark["order"].index(own) < spark["order"].index(driver), "executors go before their driver"
    # Whoever else lives there keeps it from being one.
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            scene.groups.move("executor", other.pid)
            spark = berthd_once(build, tmp_path)["findings"]["eviction"]
            assert own not in spark["candidates"]
            assert f"sleep (pid {other.pid})" in spark["spared"][own]
        finally:
            other.kill()
    assert own in berthd_once(build, tmp_path)["findings"]["eviction"]["candidates"]


def test_explains_applications_and_who_is_never_evicted(scene: Scene, berthd: Berthd) -> None:
    until("both applications are known", lambda: len(berthd.spark()["apps"]) == 2)
    text = berthd.ctl("explain", scene.ml.id)
    found = berthd.spark()["apps"][scene.ml.id]
    assert f"Spark application {scene.ml.id}" in text
    assert f"{found['computation']:.4g} s to compute again" in text
    assert scene.groups.workload("ml") in text
    text = berthd.ctl("explain", scene.groups.workload("worker"))
    # Processes stand in the order of their pids, and the host may have begun its pids anew since the Worker started.
    assert "is never evicted: its cgroup is shared by " in text
    assert f"Worker (pid {scene.cluster.worker.pid})" in text
    assert f"Spark application {scene.etl.id}" in berthd.ctl("explain", scene.groups.workload("etl"))
