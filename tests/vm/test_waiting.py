# SPDX-License-Identifier: Apache-2.0
"""A pinned service whose threads wait for vCPUs: berthd names the cause, and gives more vCPUs if these are missing."""

from __future__ import annotations

from typing import Any

from berth import Berth, cpus_of

LS = "berth-test-ls1.service"
ID = f"system.slice/{LS}"
DECLARED = 2
WANTED = "/run/berth-test-wanted"
# Works with as many processes as a file says, and kills those that are too many. Only this service spins, and not for long.
LOAD = f"""
import subprocess, time
processes = []
while True:
    wanted = int(open("{WANTED}").read())
    while len(processes) < wanted:
        processes.append(subprocess.Popen(["sh", "-c", "while :; do :; done"]))
    while len(processes) > wanted:
        processes.pop().kill()
    time.sleep(0.5)
"""
# Every wait of an emulated vCPU is longer.
STRICT = 'safety.repin_cooldown = "1s"\n[interference]\nmax_runq_latency = "1us"'


def work_with(berth: Berth, processes: int) -> None:
    berth.guest.run(f"echo {processes} > {WANTED}.new && mv {WANTED}.new {WANTED}")


def start(berth: Berth, processes: int, *properties: str) -> None:
    work_with(berth, processes)
    berth.guest.write_file("/root/berth-test-load", LOAD)
    berth.start_unit(LS, "python3 /root/berth-test-load", *properties)
    berth.start("enforce", extra=STRICT)
    berth.wait_pinned(LS)


def wait_finding(berth: Berth, cause: str) -> dict[str, Any]:
    """The finding of this cause."""

    def look() -> dict[str, Any] | None:
        found = berth.json("plan")["findings"]["interference"]["waiting"].get(ID)
        return found if found and found["cause"] == cause else None

    return berth.guest.poll(look, 120, what=lambda: f"cause {cause}: {berth.json('plan')['findings']['interference']}")


def wait_vcpus(berth: Berth, low: int, high: int) -> None:
    berth.guest.poll(lambda: low <= len(cpus_of(berth.cpuset(LS))) <= high, 120, what=lambda: f"{low} to {high} vCPUs: {berth.cpuset(LS)}")


def test_a_service_that_uses_all_its_vcpus_gets_more_and_gives_them_back(berth: Berth) -> None:
    # A service that is measured above what it declares gets no pin.
    start(berth, 1)
    work_with(berth, 2 * DECLARED)
    # Twice as many as it declares are the most.
    wait_vcpus(berth, DECLARED + 1, 2 * DECLARED)
    wait_finding(berth, "vcpus")
    assert berth.journal("waits for vCPUs: ")
    work_with(berth, 0)
    wait_vcpus(berth, DECLARED, DECLARED)
    berth.stop()
    assert berth.cpuset(LS) == ""


def test_a_service_that_its_own_quota_holds_back_is_told_so_and_gets_nothing(berth: Berth) -> None:
    start(berth, DECLARED, "CPUQuota=40%")
    assert wait_finding(berth, "quota")["vcpus"] is None
    berth.guest.poll(f"berthctl explain {ID} | grep -q 'cause quota'", 60, what="berthctl explain to name the cause")
    assert len(cpus_of(berth.cpuset(LS))) == DECLARED
