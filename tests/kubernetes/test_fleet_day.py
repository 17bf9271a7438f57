# SPDX-License-Identifier: Apache-2.0
"""An hour of a tiny simulated fleet: the real scheduler over hosts that run berth's policies (tests/fleet)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
    assert figures["interference"]["service_cores"] > figures["service_cores_alone"] > 0
    assert figures["interference"]["p99"] >= 1
    assert result.asked > 40
    assert (result.patches > 4) == way.berth
    assert "| jobs finished |" in fleet.table([result])


def test_a_job_that_needs_no_less_than_a_refused_one_is_not_asked_about(cluster: Cluster, build: Path, tmp_path: Path) -> None:
    def jobs(name: str, count: int, cores: int, gib: int) -> list[dict[str, Any]]:
        return [{"name": f"{name}-{number}", "latency_sensitive": False, "cores": cores, "memory_bytes": gib << 30} for number in range(count)]

    tiny = fleet.Fleet(cluster, build, WAYS[0], fleet.Options(hosts=1), tmp_path)
    try:
        tiny.begin()
        # The host has 32 cores and 128 GiB. The first group leaves two cores.
        later = [*jobs("fatter", 9, cores=3, gib=8), *jobs("leaner", 1, cores=3, gib=2), *jobs("small", 2, cores=2, gib=8)]
        bound = tiny.place([*jobs("first", fleet.GROUP, cores=3, gib=4), *later])["bound"]
    finally:
        tiny.stop()
    assert sorted(name.split("-")[0] for name in bound) == ["first"] * 10 + ["small"]
    # All but the fatter ones.
    assert tiny.asked == fleet.GROUP + 3


def result_of(way: fleet.Way, cores: float, violations: float) -> fleet.Result:
    found = {"service_cores": 1.5, "job_work": 0.5, "p99": 1, "violations": violations}
    figures = {"host_steps": 100, "service_cores_alone": 1, "job_cores": 1, "interference": found, "idle_anywhere": found}
    figures |= {"job_core_s": cores * 100, "lost_core_s": 0, "short_of_cpu": 0, "short_of_memory": 1, "evicted_for_room": 0, "evicted_for_memory": 0}
    return fleet.Result(way, figures, 0, 0, 0, step_s=1)


def test_the_chosen_stock_way_has_no_more_violations() -> None:
    stock = [result_of(fleet.Way(f"stock-{cores}"), cores, violations) for cores, violations in ((8, 0), (10, 0.2), (14, 0.3))]
    berth = result_of(fleet.Way("with berth", berth=True), 12, 0.2)
    lines = fleet.ratios([*stock, berth]).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["stock-8", "stock-10 (chosen)", "stock-14"]
    assert lines[1].split(" | ")[2:4] == ["1.00", "1.20"]
    assert fleet.rival(result_of(berth.way, 12, -1), stock) is None
