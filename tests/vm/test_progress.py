# SPDX-License-Identifier: Apache-2.0
"""Progress on a real host: reported by calling, from inside a unit and by strangers, and in files that the sandboxed berthd reads."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from berth import LIGHT, Berth

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "progress"
GUEST_EXAMPLES = "/usr/local/share/berth-test-progress"

RULES = """
[[workload]]
match = "**/berth-test-ls@*.service"
class = "latency-sensitive"
vcpus = 2
deadline = "1h"
progress = {file = "/run/%p-%i/progress"}

[[workload]]
match = "system.slice/berth-test-home.service"
class = "latency-sensitive"
vcpus = 1
progress = {file = "/home/tester/%n"}

[[workload]]
match = "system.slice/berth-test-tmp.service"
class = "latency-sensitive"
vcpus = 1
progress = {file = "/tmp/berth-test-progress"}

[[workload]]
match = "system.slice/berth-test-*.service"
class = "latency-sensitive"
vcpus = 1
"""

PARTS, PART_S = 1000, 0.05
# Works for a while, tells how far it came, and pauses for longer than a tick: then no tick comes between work and its report.
WORK = f"""
import os, sys, time
for part in range({PARTS}):
    end = time.thread_time() + {PART_S}
    while time.thread_time() < end:
        pass
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str((part + 1) / {PARTS}))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(1)
"""


def workload_of(berth: Berth, unit: str) -> str | None:
    """Its id; systemd puts the instances of a template into a slice of their own."""
    return next((workload for workload in berth.workloads() if workload.endswith(f"/{unit}")), None)


def progress_of(berth: Berth, unit: str) -> Any:
    return berth.workloads()[workload_of(berth, unit) or pytest.fail(f"{unit} is not listed")]["progress"]


def wait_until_listed(berth: Berth, unit: str) -> None:
    berth.guest.poll(lambda: workload_of(berth, unit) is not None, 60, what=f"berthd to list {unit}")


def wait_for_progress(berth: Berth, unit: str, wanted: float) -> None:
    wait_until_listed(berth, unit)
    berth.guest.poll(lambda: progress_of(berth, unit) == wanted, 60, what=f"{unit} to have progress {wanted}")


def push_examples(berth: Berth) -> None:
    berth.guest.push(EXAMPLES, GUEST_EXAMPLES)


def test_an_unprivileged_service_reports_of_itself_by_calling(berth: Berth) -> None:
    push_examples(berth)
    berth.start(rules=RULES)
    for unit, script in (("berth-test-sh.service", "progress.sh"), ("berth-test-py.service", "progress.py")):
        command = f"sh -c '{GUEST_EXAMPLES}/{script} && exec sleep infinity'"
        berth.start_unit(unit, command, "User=tester", "Environment=SECONDS_A_PART=0.5")
    for unit in ("berth-test-sh.service", "berth-test-py.service"):
        wait_for_progress(berth, unit, 1)
    path = "/org/berth/Node1/workload/system_2eslice_2fberth_2dtest_2dsh_2eservice"
    shown = berth.guest.run(f"busctl get-property org.berth.Node1 {path} org.berth.Node1.Workload Progress").stdout
    assert shown == "d 1\n"
    assert 'berth_workload_progress_ratio{workload="system.slice/berth-test-sh.service"' in berth.guest.run("berthctl metrics").stdout


def test_nobody_speaks_for_somebody_else_s_workload(berth: Berth) -> None:
    berth.start_unit("berth-test-victim.service", "sleep infinity", "User=tester")
    berth.start(rules=RULES)
    berth.wait_for("berth-test-victim.service")
    # The same user, but outside of the unit; and a unit of that user about another.
    refused = berth.guest.run("berthctl progress system.slice/berth-test-victim.service 0.9", user="tester", check=False)
    assert refused.returncode == 3, refused
    assert "org.berth.node1.report-progress" in refused.stderr
    command = "berthctl progress system.slice/berth-test-victim.service 0.9"
    within = berth.guest.run(
        f"systemd-run --quiet --wait --pipe --uid=tester --unit=berth-test-other.service {command}", check=False)
    assert within.returncode == 3, within
    homeless = berth.guest.run("berthctl progress self 0.9", user="tester", check=False)
    assert homeless.returncode == 1 and "no workload" in homeless.stderr, homeless
    assert progress_of(berth, "berth-test-victim.service") is None
    berth.guest.run("berthctl progress system.slice/berth-test-victim.service 3/4")  # root may
    wait_for_progress(berth, "berth-test-victim.service", 0.75)


def test_a_service_reports_in_a_file_that_its_rule_names(berth: Berth) -> None:
    push_examples(berth)
    # None of its reports is to be missed. A berthd that has just started loads its programs for the kernel, and takes nothing else in meanwhile.
    berth.start(rules=RULES)
    berth.wait_ticks(2)
    command = f"sh -c '{GUEST_EXAMPLES}/progress.sh /run/berth-test-ls-7/progress && exec sleep infinity'"
    unit = "berth-test-ls@7.service"
    berth.start_unit(unit, command, "User=tester", "RuntimeDirectory=berth-test-ls-7", "Environment=SECONDS_A_PART=2")
    wait_for_progress(berth, unit, 1)
    workload = workload_of(berth, unit)
    reports = next(w for w in berth.json("snapshot")["workloads"] if w["id"] == workload)["progress"]
    assert [report["fraction"] for report in reports] == [0.2, 0.4, 0.6, 0.8, 1]
    # Of the time at which they were written.
    written = float(berth.guest.run("stat -c %.Y /run/berth-test-ls-7/progress").stdout)
    assert math.isclose(reports[-1]["time"], written, abs_tol=0.001)


def test_a_service_that_starts_again_starts_at_nothing(berth: Berth) -> None:
    berth.start(rules=RULES)
    # A directory that outlives the run, with what the run before left.
    berth.guest.run("mkdir -p /run/berth-test-ls-8 && echo 1 > /run/berth-test-ls-8/progress && sleep 1")
    berth.start_unit("berth-test-ls@8.service")
    wait_until_listed(berth, "berth-test-ls@8.service")
    assert progress_of(berth, "berth-test-ls@8.service") is None
    berth.guest.run("echo 0.5 >> /run/berth-test-ls-8/progress")
    wait_for_progress(berth, "berth-test-ls@8.service", 0.5)
    berth.guest.run("rm -r /run/berth-test-ls-8")


def test_a_file_that_the_sandbox_hides_is_said(berth: Berth) -> None:
    berth.guest.run("echo 0.5 > /home/tester/berth-test-home.service; echo 0.5 > /tmp/berth-test-progress")
    berth.start_unit("berth-test-home.service")
    berth.start_unit("berth-test-tmp.service")
    berth.start(rules=RULES)
    berth.wait_for("berth-test-home.service", "berth-test-tmp.service")
    berth.guest.poll(lambda: "ProtectHome=" in berth.journal("progress file /home/tester"), 20, what="berthd to say why")
    berth.guest.poll(lambda: "PrivateTmp=" in berth.journal("progress file /tmp"), 20, what="berthd to say why")
    assert progress_of(berth, "berth-test-home.service") is None
    berth.guest.run("rm /home/tester/berth-test-home.service /tmp/berth-test-progress")


def test_explains_workloads_and_decisions(berth: Berth) -> None:
    berth.start_unit("berth-test-ls1.service", LIGHT)
    berth.start(mode="enforce")
    berth.wait_for("berth-test-ls1.service")
    berth.wait_pinned("berth-test-ls1.service")
    shown = berth.guest.run("berthctl explain system.slice/berth-test-ls1.service", user="tester").stdout
    for text in ("latency-sensitive", "where it is pinned now", "score", "k1", "cpu_sc"):
        assert text in shown, shown
    decision = berth.pin_decision("berth-test-ls1.service")
    shown = berth.guest.run(f"berthctl explain {decision}", user="tester").stdout
    assert decision in shown and "in enforce mode" in shown and "pin" in shown, shown
    missing = berth.guest.run("berthctl explain no/such", check=False)
    assert missing.returncode == 1 and "neither a workload" in missing.stderr
    mistyped = berth.guest.run("berthctl explain berth-tset-ls1", check=False)
    assert mistyped.returncode == 1 and "did you mean system.slice/berth-test-ls1.service" in mistyped.stderr, mistyped


def test_what_a_service_s_work_costs_is_recorded_and_fit(berth: Berth) -> None:
    berth.start(rules=RULES)
    berth.guest.write_file("/root/berth-test-work", WORK)
    command = "python3 /root/berth-test-work /run/berth-test-ls-9/progress"
    berth.start_unit("berth-test-ls@9.service", command, "RuntimeDirectory=berth-test-ls-9")
    wait_until_listed(berth, "berth-test-ls@9.service")
    account = berth.guest.run("berthctl record --observations --for 20s -o /root/berth-test.jsonl --json").stdout
    seen = [json.loads(line) for line in berth.guest.read_file("/root/berth-test.jsonl").splitlines()]
    assert json.loads(account)["observations"] == len(seen) >= 3, account
    assert {(o["schema"], o["instance"], o["response"]) for o in seen} == {
        ("berth.observation/1", workload_of(berth, "berth-test-ls@9.service"), "cost")
    }
    # CPU seconds of the whole task. What Python adds to each part depends on the machine. A late tick may count a piece of one part for the next.
    assert PARTS * PART_S <= statistics.median(o["y"] for o in seen) <= 10 * PARTS * PART_S, seen
    assert all(o["y"] > 0 for o in seen), seen
    model = json.loads(berth.guest.run("berthctl profile fit --json /root/berth-test.jsonl").stdout)
    assert (model["service"], model["response"], model["accepted"]) == (seen[0]["service"], "cost", False)
    assert "300" in model["why"], model
