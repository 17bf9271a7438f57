# SPDX-License-Identifier: Apache-2.0
"""An hour of a tiny simulated fleet: the real scheduler over hosts that run berth's policies (tests/fleet)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cluster import Cluster

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fleet"))
import fleet  # noqa: E402

OPTIONS = fleet.Options(hosts=4, hours=1, services=0.4, jobs=0.6, measure_every=3)
WAYS = [fleet.Way("stock"), fleet.Way("with berth", berth=True), fleet.Way("with berth and its extender", berth=True, extender=True)]


@pytest.mark.parametrize("way", WAYS, ids=["stock", "berth", "extender"])
def test_an_hour_of_a_fleet(cluster: Cluster, build: Path, tmp_path: Path, way: fleet.Way) -> None:
    result = fleet.run(cluster, build, way, OPTIONS, tmp_path)
    figures = result.figures
    assert figures["host_steps"] == 4 * 12
    # Work came, the scheduler placed it, and neighbours disturbed it.
    assert figures["job_core_s"] > 0 and figures["service_asked_core_s"] > 0
    assert figures["service_cores"] > figures["service_cores_alone"] > 0
    assert result.asked > 40
    assert (result.patches > 4) == way.berth
    assert "| jobs finished |" in fleet.table([result])
