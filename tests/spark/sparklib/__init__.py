# SPDX-License-Identifier: Apache-2.0
"""A real Spark cluster on the loopback, and berthd beside it."""

from .berth import CONFIG, Berthd, berthd_once, own_dirs
from .cluster import Application, Cluster
from .groups import Groups, v2_root
from .install import SMALL_JVM, SparkMissing, ensure_spark
from .waiting import PATIENCE_S, until

__all__ = [
    "CONFIG", "PATIENCE_S", "SMALL_JVM", "Application", "Berthd", "Cluster", "Groups", "SparkMissing", "berthd_once", "ensure_spark", "own_dirs",
    "until", "v2_root",
]
