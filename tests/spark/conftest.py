# SPDX-License-Identifier: Apache-2.0
"""One cluster for all tests: a Master, a Worker, and two applications. `etl` holds, with tasks that run; `ml` has done
more, and waits until it is told to end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sparklib import Application, Berthd, Cluster, Groups, SparkMissing, ensure_spark, v2_root

ROOT = Path(__file__).resolve().parents[2]
ETL_ROUNDS, ML_ROUNDS = 1, 3


def absent(reason: str) -> None:
    """Where nobody looks on, a part that cannot run is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Scene:
    cluster: Cluster
    groups: Groups
    etl: Application
    ml: Application
    end_ml: Path


@pytest.fixture(scope="session")
def build() -> Path:
    return Path(os.environ.get("BERTH_BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def groups() -> Iterator[Groups]:
    root = v2_root()
    if os.geteuid() != 0 or root is None:
        absent("needs root, and a cgroup v2 tree to make cgroups in")
    made = Groups(root)
    yield made
    made.remove()


@pytest.fixture(scope="session")
def scene(groups: Groups, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    if not shutil.which("java"):
        absent("there is no java")
    try:
        home = ensure_spark()
    except SparkMissing as reason:
        absent(str(reason))
    directory = tmp_path_factory.mktemp("spark")
    cluster = Cluster(home, directory, groups)
    end_ml = directory / "end-ml"
    etl = cluster.submit("etl", str(ETL_ROUNDS), "4", "hold", "/nonexistent", cores=2)
    ml = cluster.submit("ml", str(ML_ROUNDS), "4", "wait", str(end_ml), cores=1)
    etl.says("^(ready)")
    ml.says("^(ready)")
    return Scene(cluster, groups, etl, ml, end_ml)


@pytest.fixture
def berthd(scene: Scene, build: Path, tmp_path: Path) -> Iterator[Berthd]:
    # The path of a Unix socket has space for 107 bytes.
    started = Berthd(build, tmp_path)
    yield started
    started.stop()
