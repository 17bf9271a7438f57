# SPDX-License-Identifier: Apache-2.0
"""`berthctl record --observations` beside a real berthd: the same lines as a trace of that time, and models that follow from them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from filehost import FileHost

BERTHCTL, BERTHD = (Path(os.environ[name]).resolve() for name in ("BERTHCTL", "BERTHD"))
RULES = """
mode = "enforce"
[[workload]]
match = "web/*"
class = "latency-sensitive"
service = "web"
vcpus = 2
[[workload]]
match = "batch/*"
class = "best-effort"
"""
WORKLOADS = ("web/a", "web/b", "batch/x")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FileHost]:
    """Its workloads use CPU all the time, each at its own pace."""
    made = FileHost(tmp_path, BERTHCTL, BERTHD, RULES)
    for workload in WORKLOADS:
        made.files.add_group(workload)
    ended = threading.Event()

    def work() -> None:
        # berthd keeps the files open. A text of the same length is never seen in part.
        used = dict.fromkeys(WORKLOADS, 100_000_000)
        while not ended.wait(0.05):
            for pace, workload in enumerate(WORKLOADS, 1):
                used[workload] += 10_000 * pace
                with (tmp_path / "host/cgroup" / workload / "cpu.stat").open("r+b", buffering=0) as file:
                    file.write(f"usage_usec {used[workload]}\nuser_usec {used[workload]}\nsystem_usec 0\n".encode())

    worker = threading.Thread(target=work)
    worker.start()
    try:
        made.start()
        made.wait_for("berthctl log -n 20 | grep -q 'web/a now runs on'", "the first pins")
        yield made
    finally:
        made.stop()
        ended.set()
        worker.join()


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines()


def test_recorded_observations_are_those_of_a_trace(host: FileHost) -> None:
    ran = host.run("berthctl record --for 6s -o a.zst & berthctl record --json --observations --for 6s -o live.jsonl; status=$?; wait $! && exit $status")
    assert ran.returncode == 0, ran
    account = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("{")))
    live = lines_of(host.root / "live.jsonl")
    assert account["schema"] == "berth.observed/1"
    assert account["observations"] == len(live) > 0, ran.stdout
    (service,) = account["services"]
    assert (service["service"], service["response"], service["at_once"]) == ("web", "cpu", 2)

    ran = host.run("berthctl replay a.zst --observations later.jsonl")
    assert ran.returncode == 0, ran
    later = lines_of(host.root / "later.jsonl")
    times = {json.loads(line)["time"] for line in live} & {json.loads(line)["time"] for line in later}
    assert times, "the recorders have no tick in common"

    def of_these(lines: list[str]) -> list[str]:
        return [line for line in lines if json.loads(line)["time"] in times]

    assert of_these(live) == of_these(later)
    fitted = host.run("berthctl profile fit --json live.jsonl")
    assert fitted.returncode == 0, fitted
    model = json.loads(fitted.stdout)
    assert (model["service"], model["response"]) == ("web", "cpu")
    assert model["n"] > 0
