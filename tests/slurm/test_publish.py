# SPDX-License-Identifier: Apache-2.0
"""Jobs follow what the nodes' berthd say."""

from __future__ import annotations

import json
import subprocess

import pytest
from farm import CONFIGURED, Farm, call
from waiting import until


def test_jobs_go_where_the_score_is_least(farm: Farm) -> None:
    for best in ("n2", "n3", "n1"):
        for node in farm.nodes:
            farm.say(node, score=0.1 if node == best else 0.6)
        farm.published()
        assert farm.field(best, "Weight") == "11"
        assert [farm.submit().ran_on() for _ in range(3)] == [best] * 3


def test_no_job_starts_while_no_node_takes_work(farm: Farm) -> None:
    for node in farm.nodes:
        farm.say(node, state="no-schedule")
    until(lambda: all(map(farm.drained, farm.nodes)), "drain of all nodes")
    assert farm.field("n1", "Reason").startswith("berth: cpu no-schedule, 87 % in use [")
    job = farm.submit()
    job.waits()
    farm.say("n3")
    assert job.ran_on() == "n3"
    assert farm.drained("n1") and farm.drained("n2")
    assert not farm.field("n3", "Reason").startswith("berth:")


def test_drains_of_operators_stay(farm: Farm) -> None:
    farm.update("n1", "state=drain", "reason=disk broken")
    for state in ("no-schedule", "schedule"):
        farm.say("n1", state=state, score=0.2 if state == "schedule" else 0.9)
        farm.published()
        assert farm.drained("n1")
        assert farm.field("n1", "Reason").startswith("disk broken [")


def test_a_waiting_job_starts_when_the_capacity_grows(farm: Farm) -> None:
    for node in farm.nodes:
        farm.say(node, cpu=6 if node == "n1" else 0)
    farm.published()
    assert [farm.becpu(node) for node in farm.nodes] == [6, 0, 0]
    first = farm.submit("--gres=becpu:4", script="sleep 1000")
    first.runs()
    second = farm.submit("--gres=becpu:4")
    second.waits()
    # Work that is not best-effort needs none of it.
    assert farm.submit().ran_on() in farm.nodes
    assert second.state() == "PENDING"
    farm.say("n1", cpu=12, ours=3.5)
    assert second.ran_on() == "n1"
    assert first.state() == "RUNNING"


def test_less_capacity_ends_no_job_and_starts_none(farm: Farm) -> None:
    for node in farm.nodes:
        farm.say(node, cpu=8 if node == "n1" else 0)
    farm.published()
    running = farm.submit("--gres=becpu:6", script="sleep 1000")
    running.runs()
    farm.say("n1", cpu=3)
    farm.published()
    waiting = farm.submit("--gres=becpu:1")
    waiting.waits()
    assert running.state() == "RUNNING"


def test_an_oversold_node_runs_more_jobs_than_it_has_cores(farm: Farm) -> None:
    for node in farm.nodes:
        farm.say(node, cpu=6 if node == "n1" else 0)
    farm.published()
    # A job takes a whole core of the four, unless the partition shares them.
    jobs = [farm.submit("-p", "shared", "--gres=becpu:1", "-c1", script="sleep 1000") for _ in range(7)]
    for job in jobs[:6]:
        job.runs()
    jobs[6].waits()
    farm.say("n1", cpu=7)
    jobs[6].runs()


def test_other_resources_stay(farm: Farm) -> None:
    farm.say("n1", cpu=11)
    farm.published()
    assert farm.field("n1", "Gres") == "gpu:2,becpu:11"
    assert farm.submit("--gres=gpu:2,becpu:11").ran_on() == "n1"


def test_the_extra_text_keeps_members_of_others(farm: Farm) -> None:
    farm.update("n1", 'extra={"rack":"r7","berth_becpu":99}')
    farm.say("n1", score=0.25, cpu=5)
    farm.published()
    extra = json.loads(farm.field("n1", "Extra"))
    assert extra == {"rack": "r7", "berth_state": "schedule", "berth_score": 25, "berth_becpu": 5, "berth_be_memory_gib": 2}
    farm.update("n1", "extra=rack r7")
    farm.published()
    assert farm.field("n1", "Extra") == "rack r7"
    farm.update("n1", "extra={}")


def test_a_run_with_nothing_to_change_changes_nothing(farm: Farm) -> None:
    def updates() -> int:
        return open("/var/log/slurmctld.log", encoding="utf-8").read().count("update_node: ")

    before = updates()
    for _ in range(3):
        done = subprocess.run(
            [farm.berth_slurm, "--state", farm.state_file("n1")], env={"SLURMD_NODENAME": "n1"}, capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == ("", "")
    assert updates() == before


def test_publishes_again_after_a_reconfiguration(farm: Farm) -> None:
    for number, node in enumerate(farm.nodes):
        farm.say(node, score=0.2 + 0.1 * number, cpu=3 + number, state="no-schedule" if node == "n3" else "schedule")
    farm.published()
    call("scontrol", "reconfigure")
    farm.published()
    assert [farm.becpu(node) for node in farm.nodes] == [3, 4, 5]
    assert [farm.field(node, "Weight") for node in farm.nodes] == ["21", "31", "41"]
    assert farm.drained("n3")


def test_a_killed_controller_loses_nothing(farm: Farm) -> None:
    farm.say("n1", score=0.1, cpu=7)
    farm.say("n2", state="no-schedule")
    farm.published()
    running = farm.submit("--gres=becpu:2", script="sleep 1000")
    running.runs()
    farm.kill_controller(running)
    # Meanwhile a run says what failed, and only that.
    done = subprocess.run(
        [farm.berth_slurm, "--node", "n1", "--state", farm.state_file("n1")], capture_output=True, text=True, env={"PATH": "/"}
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("berth-slurm: n1: ")
    farm.say("n1", score=0.3, cpu=9)
    farm.say("n2")
    farm.restart_controller()
    until(lambda: farm.field("n1", "Weight") == "31" and farm.becpu("n1") == 9 and not farm.drained("n2"), "publication")
    assert running.state() == "RUNNING"
    assert farm.submit("--gres=becpu:7", "-w", "n1").ran_on() == "n1"


@pytest.mark.parametrize("silence", ["gone", "old"])
def test_a_silent_berthd_has_nothing_for_best_effort_work(farm: Farm, silence: str) -> None:
    def said() -> int:
        """How often it was said; other tests write to the same file."""
        text = (farm.state_file("n1").parent / "said").read_text()
        return text.count("berthd does not run" if silence == "gone" else "berthd hangs")

    farm.say("n1", state="no-schedule")
    until(lambda: farm.drained("n1"), "drain")
    before = said()
    if silence == "gone":
        farm.state_file("n1").unlink()
    else:
        farm.say("n1", state="no-schedule", age_s=100_000)
    until(lambda: farm.becpu("n1") == 0 and not farm.drained("n1"), "silence")
    assert farm.field("n1", "Weight") == "51"
    # It says so once, after the change.
    until(lambda: said() > before, "message")
    farm.published()
    assert farm.submit("-w", "n1").ran_on() == "n1"
    assert said() == before + 1
    farm.say("n1", cpu=4)
    until(lambda: farm.becpu("n1") == 4, "berthd's return")


def test_more_than_slurm_conf_has_is_reported(farm: Farm) -> None:
    farm.say("n3", cpu=CONFIGURED + 4)
    farm.published()
    assert farm.becpu("n3") == CONFIGURED + 4
    # Slurm compares when the daemon registers again.
    farm.restart_daemon("n3")
    said = farm.state_file("n3").parent / "said"
    until(lambda: f"slurm.conf has becpu:{CONFIGURED} for this node" in said.read_text(), "message")
    until(lambda: farm.becpu("n3") == CONFIGURED, "smaller number")
    assert farm.drained("n3")
    farm.say("n3")
    until(lambda: farm.becpu("n3") == 8, "new number")
    farm.restart_daemon("n3")
    until(lambda: call("scontrol", "update", "nodename=n3", "state=resume", check=False) == "", "valid node")
