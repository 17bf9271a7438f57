# SPDX-License-Identifier: Apache-2.0
"""Which stage reads what: as the event log of a driver has it, and without one, where stages come one by one (adaptive execution)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import Scene
from sparklib import Application, Berthd, until

JOIN = Path(__file__).resolve().parent / "join.py"


@contextmanager
def joining(scene: Scene, directory: Path, name: str, **conf: str) -> Iterator[Application]:
    end = directory / "end"
    settings = {"spark.sql.adaptive.enabled": "true", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    logging = {f"spark.eventLog.{key}": value for key, value in conf.items()}
    app = scene.cluster.submit(name, str(end), cores=1, conf={**settings, **logging}, app=JOIN)
    try:
        app.says("^(ready)")
        yield app
    finally:
        end.touch()
        app.process.wait(timeout=60)


def parents(berthd: Berthd, app: Application) -> dict[int, list[int]]:
    def stages() -> list[dict] | None:
        apps = json.loads(berthd.ctl("snapshot", "--json"))["spark_apps"]
        return next((item["stages"] for item in apps if item["id"] == app.id), None)

    return {stage["id"]: stage["parents"] for stage in until("its stages are known", stages)}


def writers_and_last(app: Application) -> tuple[list[int], int]:
    ran = [stage for stage in app.rest("stages") if stage["status"] == "COMPLETE"]
    writers = sorted(stage["stageId"] for stage in ran if stage["shuffleWriteBytes"] > 0)
    return writers, max(stage["stageId"] for stage in ran)


def test_an_event_log_tells_which_stages_a_join_reads(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    with joining(scene, tmp_path, "logged", enabled="true", compress="false", dir=f"file://{logs}") as app:
        writers, last = writers_and_last(app)
        assert len(writers) == 2
        found = parents(berthd, app)
        assert found == {writers[0]: [], writers[1]: [], last: writers}


def test_an_event_log_that_rolls_over_is_followed(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    conf = {"enabled": "true", "compress": "false", "dir": f"file://{logs}", "rolling.enabled": "true"}
    with joining(scene, tmp_path, "rolled", **conf) as app:
        writers, last = writers_and_last(app)
        assert parents(berthd, app) == {writers[0]: [], writers[1]: [], last: writers}


def test_a_compressed_one_is_said_to_be_and_order_stands_for_it(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    with joining(scene, tmp_path, "compressed", enabled="true", compress="true", dir=f"file://{logs}") as app:
        writers, last = writers_and_last(app)
        found = parents(berthd, app)
        assert found[last] in ([writers[0]], [writers[1]]), "whichever is behind the stage before it"
        assert set(found) == {*writers, last}, "stages that are skipped are none"
        until("berthd says so", lambda: "event log: it is compressed (" in berthd.log.read_text())
