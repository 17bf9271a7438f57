# SPDX-License-Identifier: Apache-2.0
"""What being asked costs a driver."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from conftest import Scene
from sparklib import Application, Berthd, until

SECONDS = 6
TASKS = 1000
MOST_SHARE = 0.05


def share(app: Application) -> float:
    """Of one CPU, that its driver uses for a while."""
    used, begun = app.cpu_seconds(), time.monotonic()
    time.sleep(SECONDS)
    return (app.cpu_seconds() - used) / (time.monotonic() - begun)


def test_asking_costs_a_driver_little(scene: Scene, build: Path, tmp_path: Path, capsys) -> None:
    end = tmp_path / "end"
    big = scene.cluster.submit("big", "1", str(TASKS), "wait", str(end), cores=1)
    big.says("^(ready)")
    without = [share(big) for _ in range(2)]
    berthd = Berthd(build, tmp_path)
    try:
        begun, used = time.monotonic(), big.cpu_seconds()
        until("its tasks are read", lambda: big.id in berthd.spark()["apps"])
        reading = big.cpu_seconds() - used
        took = time.monotonic() - begun
        # Java compiles what is asked for often, and beside other work of the machine that takes a while.
        for _ in range(4):
            asked = [share(big) for _ in range(3)]
            if statistics.median(asked) - statistics.median(without) < MOST_SHARE:
                break
    finally:
        berthd.stop()
    end.touch()
    big.says("^total (.*)")
    with capsys.disabled():
        print(f"\n    {TASKS} tasks read in {took:.1f} s for {reading:.2f} s of the driver's CPU; asked every second it uses "
              f"{100 * statistics.median(asked):.2f} % of a CPU, {100 * statistics.median(without):.2f} % without")
    assert statistics.median(asked) - statistics.median(without) < MOST_SHARE
