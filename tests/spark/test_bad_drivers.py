# SPDX-License-Identifier: Apache-2.0
"""Drivers that are slow, forbid, redirect or lie: said once, and nothing else suffers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Scene
from sparklib import Berthd, until

FAKE = Path(__file__).resolve().parent / "fake_driver.py"
MODES = {
    "forbidden": "status 403",
    "redirect": "status 302",
    "silent": "Timeout was reached",
    "drip": "Timeout was reached",
    "endless": "longer than",
    "not-json": "is not JSON",
    "wrong-types": "id is missing, or not a name",
    "deep": "nested too deeply",
    "no-such-number": "is not JSON",
}


@contextmanager
def fake_driver(directory: Path, mode: str) -> Iterator[subprocess.Popen]:
    place = directory / mode
    place.mkdir()
    shutil.copy(FAKE, place / "org.apache.spark.deploy.SparkSubmit")
    process = subprocess.Popen(
        ["java", "org.apache.spark.deploy.SparkSubmit", mode, str(place / "asked")], executable=sys.executable, cwd=place
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_misbehaves_is_said_once_and_the_others_go_on(
    scene: Scene, berthd: Berthd, tmp_path: Path, mode: str
) -> None:
    until("both applications are known", lambda: len(berthd.spark()["apps"]) == 2)
    with fake_driver(tmp_path, mode) as fake:
        said = f"Spark driver, pid {fake.pid}: "
        until(f"berthd says {MODES[mode]!r}", lambda: any(
            said in line and MODES[mode] in line for line in berthd.log.read_text().splitlines()
        ))
        until("berthd answers within 5 s beside it", lambda: berthd.answers_in() < 5)
        assert sorted(berthd.spark()["apps"]) == sorted([scene.etl.id, scene.ml.id])
        asked = (tmp_path / mode / "asked").read_text().split()
        assert set(asked) == {"/api/v1/applications"}, "no redirect is followed, and nothing more is asked"
    lines = [line for line in berthd.log.read_text().splitlines() if said in line]
    assert len(lines) <= 2, lines  # another reason, such as that it has gone, is news
