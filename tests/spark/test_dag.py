# SPDX-License-Identifier: Apache-2.0
"""Which stage reads what: as the event log of a driver has it, and without one, where stages come one by one (adaptive execution)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from conftest import Scene
from sparklib import PATIENCE_S, Application, Berthd, until

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
        app.process.wait(timeout=PATIENCE_S)


def parents(berthd: Berthd, app: Application) -> dict[int, list[int]]:
    """The stages that each stage reads, as berthd knows it now. It is empty before berthd knows the
    application, and may lack stages or name others before berthd has read the rest of the log."""
    apps = json.loads(berthd.ctl("snapshot", "--json"))["spark_apps"]
    stages = next((item["stages"] for item in apps if item["id"] == app.id), [])
    return {stage["id"]: stage["parents"] for stage in stages}


def knows(berthd: Berthd, app: Application, expected: dict[int, list[int]]) -> None:
    """Waits until berthd has found that each stage reads these."""
    found: dict[int, list[int]] = {}

    def look() -> bool:
        nonlocal found
        found = parents(berthd, app)
        return found == expected

    with suppress(AssertionError):
        until("its stages are known", look)
    assert found == expected


def writers_and_last(app: Application) -> tuple[list[int], int]:
    """The two stages whose output the join reads, and the one that reads them. The driver lists a
    stage as complete a moment after the application has its result."""

    def look() -> tuple[list[int], int] | None:
        ran = [stage for stage in app.rest("stages") if stage["status"] == "COMPLETE"]
        writers = sorted(stage["stageId"] for stage in ran if stage["shuffleWriteBytes"] > 0)
        last = max((stage["stageId"] for stage in ran), default=-1)
        return (writers, last) if len(writers) == 2 and last > writers[1] else None

    return until("the driver has the stages of the join", look)


def test_an_event_log_tells_which_stages_a_join_reads(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    with joining(scene, tmp_path, "logged", enabled="true", compress="false", dir=f"file://{logs}") as app:
        writers, last = writers_and_last(app)
        knows(berthd, app, {writers[0]: [], writers[1]: [], last: writers})


def test_an_event_log_that_rolls_over_is_followed(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    conf = {"enabled": "true", "compress": "false", "dir": f"file://{logs}", "rolling.enabled": "true"}
    with joining(scene, tmp_path, "rolled", **conf) as app:
        writers, last = writers_and_last(app)
        knows(berthd, app, {writers[0]: [], writers[1]: [], last: writers})


def test_a_compressed_one_is_said_to_be_and_order_stands_for_it(scene: Scene, berthd: Berthd, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    with joining(scene, tmp_path, "compressed", enabled="true", compress="true", dir=f"file://{logs}") as app:
        writers, last = writers_and_last(app)

        def look() -> dict[int, list[int]] | None:
            known = parents(berthd, app)
            return known if known.keys() >= {*writers, last} and known[last] else None

        found = until("all of its stages are known", look)
        assert found[last] in ([writers[0]], [writers[1]]), "whichever is behind the stage before it"
        assert set(found) == {*writers, last}, "stages that are skipped are none"
        until("berthd says so", lambda: "event log: it is compressed (" in berthd.log.read_text())
