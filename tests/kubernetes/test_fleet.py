# SPDX-License-Identifier: Apache-2.0
"""1,000 nodes (`run fleet`): a burst of 500 pods, without the extender and with it."""

from __future__ import annotations

import time
from pathlib import Path

from cluster import Cluster
from extender import Extender
from test_extender import burst


def test_a_burst_over_a_thousand_nodes_does_not_herd(cluster: Cluster, build: Path) -> None:
    extender = Extender(build)
    began = time.monotonic()
    alone, with_berth = burst(cluster, extender, 1000, 500)
    print(f"500 pods over 1000 nodes: on {alone} nodes without the extender, on {with_berth} with it; {extender.cpu_s():.1f} s of CPU, {time.monotonic() - began:.0f} s in all")
    assert extender.stop() == 0
    assert with_berth >= 0.8 * alone
