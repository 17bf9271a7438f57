# SPDX-License-Identifier: Apache-2.0
"""What executors keep for later stages, as a program asked them to."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Scene
from sparklib import PATIENCE_S, Application, Berthd, until

KEEP = Path(__file__).resolve().parent / "keep.py"


def kept(berthd: Berthd, app: Application) -> dict[int, bool]:
    """By stage."""

    def stages() -> list[dict] | None:
        apps = json.loads(berthd.ctl("snapshot", "--json"))["spark_apps"]
        return next((item["stages"] for item in apps if item["id"] == app.id), None)

    return {stage["id"]: stage.get("cached", False) for stage in until("its stages are known", stages)}


def test_the_stage_that_computed_what_is_kept_is_known(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    drop, end = tmp_path / "drop", tmp_path / "end"
    app = scene.cluster.submit("keep", str(drop), str(end), cores=1, app=KEEP)
    try:
        app.says("^(ready)")
        until("the driver lists both partitions", lambda: [item["numCachedPartitions"] for item in app.rest("storage/rdd")] == [2])
        # The list itself tells where they are.
        assert [[block["executors"] for block in item["partitions"]] for item in app.rest("storage/rdd")] == [[["0"], ["0"]]]
        until("it is known", lambda: kept(berthd, app) == {0: True, 1: False})
        drop.touch()
        until("it is let go of", lambda: kept(berthd, app) == {0: False, 1: False, 2: False})
    finally:
        drop.touch()
        end.touch()
        app.process.wait(timeout=PATIENCE_S)
