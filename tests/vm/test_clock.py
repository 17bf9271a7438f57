# SPDX-License-Identifier: Apache-2.0
"""The wall clock is set, by an hour and by eight, both ways: samples go on, and nothing is squeezed or evicted because of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from berth import LIGHT, Berth, at_once, run_command

PROGRESS = "/run/berth-test-progress"
JOB = "berth-test-job.service"
BATCH = ["berth-test-be-light.service", "berth-test-be-idle.service"]
# It is in time by far: it needs ten minutes, and has two hours.
STEADY = f"""
import os, time
done = 0.0
while True:
    done = min(0.999, done + 0.5 / 600)
    with open("{PROGRESS}.new", "w") as file:
        print(done, file=file)
    os.rename("{PROGRESS}.new", "{PROGRESS}")
    time.sleep(0.5)
"""
PROGRAM = "/usr/local/lib/berth-test-steady.py"
RULES = f"""
[[workload]]
match = "system.slice/{JOB}"
class = "latency-sensitive"
vcpus = 2
deadline = "2h"
progress = {{file = "{PROGRESS}"}}

[[workload]]
match = "system.slice/berth-test-be-*.service"
class = "best-effort"
memory = "64M"
"""
EVERY_POLICY = f"""
[straggler]
restore_hold = "5s"
[spark]
watch = true
[eviction]
evict = true
hold = "5s"
[oversell]
evict = true
warmup = "5s"
"""
# What a change of the clock must not bring.
HARMFUL = {"evict", "set-cpu-quota", "set-memory-high"}


@pytest.fixture
def clock(berth: Berth) -> Iterator[None]:
    """The guest's clock is right again afterwards, and the log has no entry of a later time: other files use this guest, too."""
    berth.guest.run("timedatectl set-ntp false", check=False)
    yield
    berth.stop()
    berth.guest.run(f"rm -rf /var/lib/berth/decisions.db*; date -s @{int(time.time())}")


@pytest.fixture
def load(berth: Berth, clock: None) -> Berth:
    commands = [run_command(BATCH[0], LIGHT, "CPUQuota=100%"), run_command(BATCH[1], "sleep infinity", "CPUQuota=100%")]
    # Entries of tests that ran here before would push those of this one out of entries().
    berth.guest.run("rm -rf /var/lib/berth/decisions.db*")
    berth.guest.run(f"cat > {PROGRAM}; rm -f {PROGRESS}*; {at_once([*commands, run_command(JOB, f'python3 {PROGRAM}')])}", input=STEADY)
    berth.start("enforce", extra=EVERY_POLICY, rules=RULES)
    berth.wait_for(*BATCH, JOB)
    berth.wait_pinned(JOB)
    return berth


def entries(berth: Berth) -> list[dict[str, Any]]:
    """The decision log, oldest first."""
    return berth.json("log", "-n", "1000")["entries"][::-1]


def newest_samples(berth: Berth) -> dict[str, float]:
    snapshot = berth.json("snapshot")
    return {w["id"]: snapshot["time"] - w["usage"][-1]["time"] for w in snapshot["workloads"]}


def windows(berth: Berth) -> dict[str, list[float]]:
    return {w["id"]: [sample["time"] for sample in w["usage"]] for w in berth.json("snapshot")["workloads"]}


def guest_time(berth: Berth) -> float:
    return float(berth.guest.run("date +%s.%N").stdout)


@pytest.mark.parametrize("step", ["+8 hours", "-1 hour"])
def test_a_clock_that_is_set_changes_printed_times_alone(load: Berth, step: str) -> None:
    load.wait_ticks(8)
    load.guest.poll(lambda: load.json("plan")["findings"]["straggler"]["tasks"][f"system.slice/{JOB}"].get("v2"), 60, what="a judgement")
    before = load.attributes()
    known = len(entries(load))
    running = load.main_pids(*BATCH, JOB)
    load.guest.run(f"date -s '{step}'")
    load.wait_ticks(8)

    for workload, age_s in newest_samples(load).items():
        assert 0 <= age_s < 30, f"{workload} has no new samples"
    for workload, times in windows(load).items():
        gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
        assert gaps, workload
        assert 0 < min(gaps), workload
        assert max(gaps) < 120, f"{workload}: the window of samples has a hole"
    said = load.json("snapshot")["time"]
    assert abs(said - guest_time(load)) < 60, "printed times are of the guest's clock"
    task = load.json("plan")["findings"]["straggler"]["tasks"][f"system.slice/{JOB}"]
    assert not task["straggler"], task["reason"]
    assert task["finish"] < task["deadline"]

    since = entries(load)[known:]
    assert not [e for e in since if e["kind"] in HARMFUL], since
    assert load.main_pids(*BATCH, JOB) == running
    now = load.attributes()
    changed = {path: (before[path], value) for path, value in now.items() if "berth-test" in path and before.get(path, value) != value}
    assert not changed


def test_a_restart_after_it_was_set_keeps_samples_and_log(load: Berth) -> None:
    load.wait_ticks(8)
    known = [e["decision"] for e in entries(load)]
    load.guest.run("date -s '+8 hours'")
    load.guest.run("systemctl restart berthd.service")
    load.wait_for(*BATCH, JOB)
    assert [e["decision"] for e in entries(load)][: len(known)] == known
    for workload, times in windows(load).items():
        assert len(times) >= 6, f"{workload} lost its samples"
    task = load.json("plan")["findings"]["straggler"]["tasks"].get(f"system.slice/{JOB}", {})
    assert not task.get("straggler"), task
