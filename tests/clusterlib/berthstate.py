# SPDX-License-Identifier: Apache-2.0
"""A berth.state/1 document, as a test says it in berthd's place."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

GIB = 1024**3


def departure(workload: str, kind: str = "evict", wanted: bool = False, decision: str = "d-1", reason: str = "memory is short") -> dict[str, Any]:
    return {"kind": kind, "time": time.time(), "workload": workload, "decision": decision, "reason": reason, "wanted": wanted}


def say(
    file: Path,
    host: str,
    score: float = 0.5,
    cpu: float = 8,
    ours: float = 0,
    memory: float = 2 * GIB,
    state: str = "schedule",
    age_s: float = 0,
    departures: list[dict[str, Any]] | None = None,
) -> None:
    """Publishes a state: `cpu` cores are advertised, `ours` of them asked for by latency-sensitive work."""
    document = {
        "schema": "berth.state/1",
        "host": host,
        "time": time.time() - age_s,
        "mode": "observe",
        "interval_s": 1,
        "evict_count": 0,
        "score": score,
        "cpu": {"state": state, "advertised": cpu, "requested_latency_sensitive": ours, "best_effort": max(0, cpu - ours), "utilisation": 0.87 if state != "schedule" else 0.4},
        "memory": {"state": "schedule", "advertised": memory, "requested_latency_sensitive": 0, "best_effort": memory, "utilisation": 0.3},
        "departures": departures or [],
    }
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(document))
    fresh.replace(file)
