# SPDX-License-Identifier: Apache-2.0
"""A pinned service whose threads wait for vCPUs: berthd names the cause, and gives more vCPUs where these are what is missing."""

from __future__ import annotations

from typing import Any

from berth import ALL_CPUS, OFTEN, Berth, cpus_of

LS = "berth-test-ls1.service"
ID = f"system.slice/{LS}"
DECLARED = 2
# Works with as many processes as the file says, and forgets those that are too many.
LOAD = """
import subprocess, time
processes = []
while True:
    wanted = int(open("/run/berth-test-wanted").read())
    while len(processes) < wanted:
        processes.append(subprocess.Popen(["sh", "-c", "while :; do :; done"]))
    while len(processes) > wanted:
        processes.pop().kill()
    time.sleep(0.5)
"""
# Every wait of an emulated vCPU is longer.
STRICT = f'{OFTEN}\nsafety.repin_cooldown = "1s"\n[interference]\nmax_runq_latency = "1us"'


def work_with(berth: Berth, processes: int) -> None:
    berth.guest.write_file("/run/berth-test-wanted", f"{processes}\n")


def waiting(berth: Berth) -> dict[str, Any]:
    found: dict[str, Any] = berth.json("plan")["findings"]["interference"]["waiting"].get(ID, {})
    return found


def test_a_service_that_uses_all_its_vcpus_gets_another_and_gives_it_back(berth: Berth) -> None:
    work_with(berth, 4)
    berth.guest.write_file("/root/berth-test-load", LOAD)
    berth.start_unit(LS, "python3 /root/berth-test-load")
    berth.start("enforce", extra=STRICT)
    berth.wait_pinned(LS)
    berth.guest.poll(lambda: len(cpus_of(berth.cpuset(LS))) == DECLARED + 1, 120, what="a third vCPU")
    told = berth.guest.run(f"berthctl log -n 100 --workload {ID}").stdout
    assert "vCPUs" in told and ID in told, told

    work_with(berth, 0)
    berth.guest.poll(lambda: len(cpus_of(berth.cpuset(LS))) == DECLARED, 120, what="the service to give it back")
    berth.stop()
    assert berth.cpuset(LS) in ("", ALL_CPUS)


def test_a_service_that_its_own_quota_holds_back_is_told_so_and_gets_nothing(berth: Berth) -> None:
    work_with(berth, 2)
    berth.guest.write_file("/root/berth-test-load", LOAD)
    berth.start_unit(LS, "python3 /root/berth-test-load", "CPUQuota=40%")
    berth.start("enforce", extra=STRICT)
    berth.wait_pinned(LS)
    berth.guest.poll(lambda: waiting(berth).get("cause") == "quota", 120, what=lambda: f"the cause to be its quota: {waiting(berth)}")
    assert waiting(berth)["vcpus"] is None
    assert len(cpus_of(berth.cpuset(LS))) == DECLARED
    assert "quota" in berth.guest.run(f"berthctl explain {ID}").stdout
    assert berth.journal("quota")
