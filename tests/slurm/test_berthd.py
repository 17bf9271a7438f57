# SPDX-License-Identifier: Apache-2.0
"""Three real berthd, each on a host of its own that is made of files, and the real Slurm."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakehost import FakeHost
from farm import Farm
from waiting import until

# Of the wrapper script; berthd's ticks are far shorter.
MAX_AGE_S = 6


@pytest.fixture
def hosts(farm: Farm, build: Path, tmp_path: Path) -> Iterator[dict[str, FakeHost]]:
    farm.set_options(f"--max-age {MAX_AGE_S}")
    made = {}
    for node in farm.nodes:
        made[node] = FakeHost(tmp_path / node, farm.state_file(node).parent)
        farm.state_file(node).unlink()
        made[node].start(build / "daemon/berthd")
    until(lambda: all(farm.state_file(node).exists() for node in farm.nodes), "state of three berthd")
    yield made
    for node, host in made.items():
        host.stop(signal.SIGTERM)
        farm.say(node)


def test_three_berthd_steer_slurm(farm: Farm, hosts: dict[str, FakeHost], build: Path) -> None:
    farm.published()
    # Empty hosts advertise their size.
    assert [farm.becpu(node) for node in farm.nodes] == [8, 8, 8]

    # The least score.
    for node, share in (("n1", 0.6), ("n2", 0.2), ("n3", 0.5)):
        hosts[node].use_memory(share)
    until(lambda: [farm.field(node, "Weight") for node in farm.nodes] == ["61", "21", "51"], "weights of the scores")
    assert farm.submit().ran_on() == "n2"

    # A host without memory takes no work; nor do the others in the end.
    hosts["n2"].use_memory(0.9)
    until(lambda: farm.drained("n2"), "drain of n2")
    assert farm.field("n2", "Reason").startswith("berth: memory no-schedule, 90 % in use")
    assert farm.submit().ran_on() == "n3"
    for node in ("n1", "n3"):
        hosts[node].use_memory(0.97)
    until(lambda: farm.drained("n1") and farm.drained("n3"), "drain of all")
    waiting = farm.submit()
    waiting.waits()
    hosts["n1"].use_memory(0.3)
    assert waiting.ran_on() == "n1"

    # A latency-sensitive workload comes: less is left for best-effort work, which does not count itself.
    hosts["n1"].add_group("web/a.service")
    hosts["n1"].add_group("system.slice/slurmstepd.scope/job_7")
    until(lambda: farm.becpu("n1") == 5, "less for best-effort work")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP], ids=["stopped", "killed", "hung"])
def test_an_ended_berthd_is_silent(farm: Farm, hosts: dict[str, FakeHost], build: Path, number: signal.Signals) -> None:
    hosts["n1"].use_memory(0.9)
    until(lambda: farm.drained("n1") and farm.becpu("n1") == 8, "drain")
    process = hosts["n1"].process
    assert process is not None
    process.send_signal(number)
    until(lambda: farm.becpu("n1") == 0 and not farm.drained("n1"), "silence")
    # The other nodes are none the wiser.
    assert farm.becpu("n2") == 8
    if number == signal.SIGSTOP:
        process.send_signal(signal.SIGCONT)
    else:
        process.wait()
        hosts["n1"].start(build / "daemon/berthd")
    until(lambda: farm.drained("n1") and farm.becpu("n1") == 8, "berthd's return")
